"""``forget NAME...``: delete the records of ended clusters."""

from __future__ import annotations

import argparse

from ...core.errors import GpuClusterError
from ..arguments import add_json
from ..output import Outcome, Text, errors_document
from ..parsing import Parser
from ..session import Session


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("names", metavar="NAME", nargs="+", help="names or ids of ended clusters")
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Delete each; one failure does not spare the others."""
    forgotten: list[str] = []
    errors: list[GpuClusterError] = []
    for name in dict.fromkeys(arguments.names):
        try:
            session.clusters.forget(name)
            forgotten.append(name)
        except GpuClusterError as error:
            errors.append(error)
    document = {"forgotten": forgotten, **errors_document(errors)}
    text = "\n".join(f"{name}: forgotten" for name in forgotten)
    return Outcome(document, (Text(text),), tuple(errors))
