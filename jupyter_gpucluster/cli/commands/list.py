"""``list``: the clusters of this user, or what their clusters left behind."""

from __future__ import annotations

import argparse

from ...core.serialize import to_json
from ..arguments import add_json
from ..describe import cluster_table, named
from ..output import Outcome, Table, Text
from ..parsing import Parser
from ..session import Session


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("--all", action="store_true", help="also those that have ended")
    parser.add_argument(
        "--orphans", action="store_true", help="what no cluster owns any more, instead of clusters"
    )
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """List."""
    if arguments.orphans:
        orphans = session.clusters.orphans()
        rows = tuple((orphan,) for orphan in orphans)
        return Outcome({"orphans": orphans}, (Table(("ORPHAN",), rows, empty="no orphans"),))
    views, damaged = session.clusters.survey(ended=arguments.all)
    document = {
        "clusters": to_json(views),
        "damaged": [error.as_json() for error in damaged],
    }
    empty = "no clusters" if arguments.all else "no clusters; list --all shows those that ended"
    unreadable = "\n".join(f"{error.message} {error.hint}".strip() for error in damaged)
    return Outcome(
        document,
        (cluster_table(views, empty), Text(unreadable, title="Records that cannot be read")),
        clusters=named(*views),
    )
