"""``doctor [PROFILE|NAME]``: check a machine, a profile or a cluster, suggest fixes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...core.errors import ClusterNotFound, InvalidInput, ProfileNotFound
from ..arguments import Parser, add_place, options_from, python_from
from ..output import Outcome, Session, Text
from ..waiting import Signals, add_wait

if TYPE_CHECKING:
    from ...doctor.findings import Report


def add_doctor(parser: Parser) -> None:
    """Add the arguments of ``doctor``."""
    subject = "a profile, or a cluster by name or id; without one this machine"
    parser.add_argument("subject", metavar="PROFILE|NAME", nargs="?", help=subject)
    parser.flag("--job", "also submit a job of five minutes at most, which checks its nodes")
    parser.flag("--fix", "change your own profile file; shows the change and asks")
    parser.flag("--yes", "submit the job, or change, without asking")
    add_place(parser)
    add_wait(parser, "the job of --job has started (600 s if left out)")


def run_doctor(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Check."""
    from ...doctor.checkup import examine_machine
    from ...doctor.findings import Result

    subject = arguments.subject
    if subject is None:
        if arguments.job:
            raise InvalidInput("--job needs a profile.", hint=f"{session.program} profiles")
        report = examine_machine(session.clusters)
    else:
        report = _examine(subject, arguments, session)
    lines, document = report.lines(), report.as_json()
    if arguments.fix and subject is not None:
        lines.append(_fix(subject, report, arguments, session))
    blocks = (Text("\n".join(lines), code=True),)
    if report.late is not None:
        return Outcome({**report.late.as_json(), **document}, blocks, errors=(report.late,))
    return Outcome(document, blocks, exit_code=1 if report.result is Result.FAILED else 0)


def _examine(subject: str, arguments: argparse.Namespace, session: Session) -> Report:
    from ...doctor.checkup import WAIT_SECONDS, examine_profile
    from ...doctor.cluster import examine_cluster
    from ...launch.request import Request

    python = python_from(arguments, session.python)
    options = options_from(arguments)
    request = Request(subject, options=options, python=python, kernel=arguments.kernel)
    wait = WAIT_SECONDS if arguments.wait is None else arguments.wait
    try:
        with Signals():  # the job ends with this process
            return examine_profile(
                session.clusters,
                request,
                job=arguments.job,
                wait=wait,
                note=session.note,
                # Without a terminal --job alone is the user's agreement.
                agrees=lambda cost: arguments.yes or session.agrees(f"Submit {cost}?") is not False,
            )
    except ProfileNotFound as unknown:
        try:
            report = examine_cluster(session.clusters, subject)
        except ClusterNotFound:
            raise InvalidInput(
                f"There is no profile and no cluster named {subject!r}.", hint=unknown.hint
            ) from None
    if arguments.job:
        hint = f"Its profile: {session.clusters.get(subject).profile}"
        raise InvalidInput(f"{subject} is a cluster; --job is for profiles.", hint=hint)
    return report


def _fix(subject: str, report: Report, arguments: argparse.Namespace, session: Session) -> str:
    """Change the user's profile file, if a check found a value; return what was done."""
    from ...doctor.fix import find_fix

    if (fix := find_fix(subject, report.findings)) is None:
        return "Nothing to fix: no check found another value."
    session.note(fix.diff)
    if not (arguments.yes or session.agrees(f"Change {fix.file}?")):
        return "The file was not changed. --yes changes it without asking."
    return f"Changed {fix.file}; the old file is {fix.apply()}."
