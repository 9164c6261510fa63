"""``show NAME``: one cluster with its jobs and its timeline."""

from __future__ import annotations

import argparse

from ...core.serialize import to_json
from ..arguments import add_json
from ..describe import cluster_facts, event_table, gpu_table, job_table, named
from ..output import Outcome
from ..parsing import Parser
from ..session import Session

SHOWN_EVENTS = 20


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", metavar="NAME", help="name or id of the cluster")
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Show the cluster."""
    clusters = session.clusters
    view = clusters.get(arguments.name)
    jobs, events = clusters.jobs(view.id), clusters.events(view.id)
    document = {**to_json(view), "jobs": to_json(jobs), "events": to_json(events)}
    shown = {view.reason}
    blocks = (
        cluster_facts(view),
        gpu_table(view.gpus),
        job_table(jobs, shown),
        event_table(events[-SHOWN_EVENTS:], shown),
    )
    return Outcome(document, blocks, clusters=named(view))
