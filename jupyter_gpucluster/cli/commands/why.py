"""``why NAME``: why a cluster waits, failed or ended, in plain words."""

from __future__ import annotations

import argparse

from ..arguments import add_json
from ..output import Outcome, Text
from ..parsing import Parser
from ..session import Session


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", metavar="NAME", help="name or id of the cluster")
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Explain."""
    text = session.clusters.why(arguments.name)
    return Outcome({"text": text}, (Text(text),))
