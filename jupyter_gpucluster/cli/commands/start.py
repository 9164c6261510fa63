"""``start PROFILE`` and ``script PROFILE``."""

from __future__ import annotations

import argparse

from ...core.serialize import to_json
from ..arguments import Parser, add_json, add_request, request_from
from ..describe import named, remarks, state
from ..output import Outcome, Session, Text, gpu_hours
from ..waiting import add_wait, wait_ready


def add_start(parser: Parser) -> None:
    """Add the arguments of ``start``."""
    parser.add_argument("profile", metavar="PROFILE", help="see the command profiles")
    parser.add_argument("--name", help="a name of your own for the cluster")
    add_request(parser)
    add_wait(parser, "all workers are ready")
    add_json(parser)


def run_start(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Start the cluster, and wait for its workers with ``--wait``."""
    request = request_from(arguments, arguments.profile, session, name=arguments.name)
    view = session.clusters.start(request)
    if arguments.wait is not None:
        session.note(f"started cluster {view.name}")
    view, failed = wait_ready(view, arguments.wait, session, "continues", view.target)
    if failed is not None:
        return failed
    hours = view.gpu_hours_estimate
    most = "" if hours is None else f"uses:    at most {gpu_hours(hours)}\n"
    where = f"inside:  {view.allocation}\n" if view.allocation else ""
    text = (
        f"{view.name}: {'; '.join((state(view), *remarks(view)))}\n{most}{where}"
        f"connect: {session.program} connect {view.name}\n"
        f"stop:    {session.program} stop {view.name}"
    )
    return Outcome(to_json(view), (Text(text, code=True),), clusters=named(view))


def add_script(parser: Parser) -> None:
    """Add the arguments of ``script``."""
    parser.add_argument("profile", metavar="PROFILE", help="see the command profiles")
    add_request(parser)
    add_json(parser)


def run_script(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Print script and submit command."""
    script = session.clusters.script(request_from(arguments, arguments.profile, session))
    remarks = [f"# submitted with: {script.command}"]
    if script.gpu_hours_estimate is not None:
        remarks.append(f"# uses at most {gpu_hours(script.gpu_hours_estimate)}")
    if script.survival:
        remarks.append(f"# without Jupyter: {script.survival}")
    if script.interactive:
        remarks.append(f"# interactive equivalent: {script.interactive}")
    blocks = (Text(script.text, code=True), Text("\n".join(remarks), code=True))
    return Outcome(to_json(script), blocks)
