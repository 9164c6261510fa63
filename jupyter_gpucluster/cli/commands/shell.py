"""``shell NAME [-- COMMAND]``: a shell, or one command, in the environment of a running job."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from ...batch.variables import inherited
from ...core.errors import GpuClusterError, InvalidInput
from ..output import Outcome
from ..parsing import Parser
from ..session import Session


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.usage = f"{parser.prog} NAME [--job ID | --worker WORKER] [-- COMMAND...]"
    parser.add_argument("name", metavar="NAME", help="name or id of the cluster")
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--job", metavar="ID", default="", help="the job to enter; by default the first that runs"
    )
    group.add_argument(
        "--worker", metavar="WORKER", default="", help="enter the node of this worker"
    )


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Become the command; its exit code is ours."""
    if session.program.startswith("%"):
        raise InvalidInput(
            "A notebook has no terminal for a shell.",
            hint=f"Use one: jupyter gpucluster shell {arguments.name}",
        )
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    argv = [
        *session.clusters.entry(
            arguments.name,
            arguments.passed_on,
            job=arguments.job,
            worker=arguments.worker,
            terminal=terminal,
        )
    ]
    session.note(f"runs: {shlex.join(argv)}")
    try:
        # None of a job that this terminal may be in itself.
        os.execvpe(argv[0], argv, inherited(os.environ))  # noqa: S606  # argv of our own making
    except OSError as error:
        raise GpuClusterError(
            f"{argv[0]} cannot be run here: {error.strerror}.",
            hint="Enter the job from a host that has the queueing system's commands.",
        ) from error
