"""``scale NAME``: change the number of workers, or the range in which it follows the load."""

from __future__ import annotations

import argparse

from ...core.serialize import to_json
from ..arguments import add_json, add_target, refuse_gpus_of, target_from
from ..describe import named, state, target_words
from ..output import Outcome, Text
from ..parsing import Parser
from ..session import Session
from ..waiting import add_wait, wait_ready


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", metavar="NAME", help="name or id of the cluster")
    add_target(parser, least=0, required=True)
    add_wait(parser, "all workers are ready")
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Set the target."""
    clusters = session.clusters
    target = target_from(arguments)
    view = clusters.get(arguments.name)
    refuse_gpus_of(view.unit, arguments, f"Cluster {view.name}")
    view = clusters.update(view.id, target=target)
    view, error = wait_ready(view, arguments.wait, session, "goes on to its target", target)
    document = to_json(view)
    if error is not None:
        return Outcome({**error.as_json(), "cluster": document}, errors=(error,))
    text = f"{view.name}: target {target_words(view)}; {state(view)}"
    return Outcome(document, (Text(text),), clusters=named(view))
