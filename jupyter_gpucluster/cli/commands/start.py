"""``start PROFILE``: start a cluster, and wait for its workers if asked to."""

from __future__ import annotations

import argparse

from ...core.serialize import to_json
from ..arguments import add_allocation, add_json, add_place, add_target, request_from
from ..describe import named, remarks, state
from ..output import Outcome, Text, gpu_hours
from ..parsing import Parser
from ..places import note_problems, refuse_gpus_on
from ..session import Session
from ..waiting import add_wait, wait_ready


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("profile", metavar="PROFILE", help="see the verb profiles")
    parser.add_argument("--name", help="a name of your own for the cluster")
    add_target(parser, least=1)
    add_place(parser)
    add_allocation(parser)
    add_wait(parser, "all workers are ready")
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Start the cluster."""
    request = request_from(arguments, arguments.profile, session.python, name=arguments.name)
    refuse_gpus_on(arguments.profile, arguments)
    note_problems(arguments.profile, session)
    view = session.clusters.start(request)
    if arguments.wait is not None:
        session.note(f"started cluster {view.name}")
    view, error = wait_ready(view, arguments.wait, session, "goes on", view.target)
    document = to_json(view)
    if error is not None:
        return Outcome({**error.as_json(), "cluster": document}, errors=(error,))
    hours = view.gpu_hours_estimate
    most = "" if hours is None else f"uses:    at most {gpu_hours(hours)}\n"
    where = f"inside:  {view.allocation}\n" if view.allocation else ""
    text = (
        f"{view.name}: {'; '.join((state(view), *remarks(view)))}\n{most}{where}"
        f"connect: {session.program} connect {view.name}\n"
        f"stop:    {session.program} stop {view.name}"
    )
    return Outcome(document, (Text(text, code=True),), clusters=named(view))
