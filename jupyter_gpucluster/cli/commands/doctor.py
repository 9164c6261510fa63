"""``doctor [PROFILE|NAME]``: check a machine, a profile or a cluster, suggest fixes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ...core.errors import ClusterNotFound, InvalidInput, ProfileNotFound
from ..arguments import Parser, add_place, options_from, python_from
from ..output import Outcome, Session, Text
from ..waiting import Signals, add_wait, timeout_from

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
    wait = doctor.WAIT_SECONDS if arguments.wait is None else timeout_from(arguments.wait)
    try:
        with Signals():  # the job ends with this process
            return doctor.examine_profile(
                session.clusters, request, job=arguments.job, wait=wait, note=session.note
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
