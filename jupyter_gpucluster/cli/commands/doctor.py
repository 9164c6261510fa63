"""``doctor [PROFILE|NAME]``: check a machine, a profile or a cluster, suggest fixes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...core.errors import ClusterNotFound, InvalidInput, ProfileNotFound
from ..arguments import Parser, add_place, options_from, python_from
from ..output import Outcome, Session, Text
from ..waiting import Signals, add_wait

if TYPE_CHECKING:
    from ... import doctor


def add_doctor(parser: Parser) -> None:
    """Add the arguments of ``doctor``."""
    parser.add_argument(
        "subject",
        metavar="PROFILE|NAME",
        nargs="?",
        help="a profile, or a cluster by name or id; without one this machine",
    )
    parser.add_argument(
        "--job",
        action="store_true",
        help="also submit a job of five minutes at most, which checks its nodes",
    )
    parser.add_argument(
        "--fix", action="store_true", help="change your own profile file; shows the change and asks"
    )
    parser.add_argument(
        "--yes", action="store_true", help="submit the job, or change, without asking"
    )
    add_place(parser)
    add_wait(parser, "the job of --job has started (600 s if left out)")


def run_doctor(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Check."""
    from ... import doctor

    subject = arguments.subject
    if subject is None:
        if arguments.job:
            raise InvalidInput("--job needs a profile.", hint=f"{session.program} profiles")
        report = doctor.examine_machine(session.clusters)
    else:
        report = _examine(subject, arguments, session)
    text = Text("\n".join(report.lines()), code=True)
    if arguments.fix and subject is not None:
        text = Text(f"{text.text}\n{_fix(subject, report, arguments, session)}", code=True)
    failed = report.result is doctor.Result.FAILED
    if report.late is not None:
        document = {**report.late.as_json(), **report.as_json()}
        return Outcome(document, (text,), errors=(report.late,))
    return Outcome(report.as_json(), (text,), exit_code=1 if failed else 0)


def _examine(subject: str, arguments: argparse.Namespace, session: Session) -> doctor.Report:
    from ... import doctor
    from ...launch.request import Request

    python = python_from(arguments, session.python)
    options = options_from(arguments)
    request = Request(subject, options=options, python=python, kernel=arguments.kernel)
    wait = doctor.WAIT_SECONDS if arguments.wait is None else arguments.wait
    try:
        with Signals():  # the job ends with this process
            return doctor.examine_profile(
                session.clusters,
                request,
                job=arguments.job,
                wait=wait,
                note=session.note,
                agrees=lambda cost: _agrees(f"Submit {cost}?", arguments, session),
            )
    except ProfileNotFound as unknown:
        try:
            report = doctor.examine_cluster(session.clusters, subject)
        except ClusterNotFound:
            raise InvalidInput(
                f"There is no profile and no cluster named {subject!r}.", hint=unknown.hint
            ) from None
    if arguments.job:
        raise InvalidInput(
            f"{subject} is a cluster; --job is for profiles.",
            hint=f"Its profile: {session.clusters.get(subject).profile}",
        )
    return report


def _agrees(question: str, arguments: argparse.Namespace, session: Session) -> bool:
    """Ask, if there is a terminal; without one `--job` alone is the user's agreement."""
    answer = None if arguments.yes else session.ask(f"{question} [y/N] ")
    return answer is None or answer.lower() in ("y", "yes")


def _fix(
    subject: str, report: doctor.Report, arguments: argparse.Namespace, session: Session
) -> str:
    """Change the user's profile file, if a check found a value; return what was done."""
    from ...doctor.fix import find_fix

    if (fix := find_fix(subject, report.findings)) is None:
        return "Nothing to fix: no check found another value."
    session.note(fix.diff)
    answer = "y" if arguments.yes else session.ask(f"Change {fix.file}? [y/N] ")
    if (answer or "").lower() not in ("y", "yes"):
        return "The file was not changed. --yes changes it without asking."
    return f"Changed {fix.file}; the old file is {fix.apply()}."
