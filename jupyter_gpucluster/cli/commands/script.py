"""``script PROFILE``: what would be submitted, without submitting it."""

from __future__ import annotations

import argparse

from ...core.serialize import to_json
from ..arguments import add_allocation, add_json, add_place, add_target, request_from
from ..output import Outcome, Text, gpu_hours
from ..parsing import Parser
from ..places import note_problems, refuse_gpus_on
from ..session import Session


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("profile", metavar="PROFILE", help="see the verb profiles")
    add_target(parser, least=1)
    add_place(parser)
    add_allocation(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Print script and submit command."""
    refuse_gpus_on(arguments.profile, arguments)
    note_problems(arguments.profile, session)
    request = request_from(arguments, arguments.profile, session.python)
    script = session.clusters.script(request)
    said = f"# submitted with: {script.command}"
    if script.gpu_hours_estimate is not None:
        said += f"\n# uses at most {gpu_hours(script.gpu_hours_estimate)}"
    if script.survival:
        said += f"\n# outlives Jupyter: {script.survival}"
    if script.interactive:
        said += f"\n# the same to work in: {script.interactive}"
    return Outcome(to_json(script), (Text(script.text, code=True), Text(said, code=True)))
