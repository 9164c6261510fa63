"""``run SCRIPT`` and ``shell NAME``: the user's own programs on a cluster."""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...batch.variables import inherited
from ...core.errors import GpuClusterError, InvalidInput
from ...node import run_script
from ...state.control_client import ask
from ..arguments import Parser, add_name, add_request, default_profile, request_from
from ..output import Outcome, Session, counted
from ..signals import Signals
from ..waiting import stop_quietly

if TYPE_CHECKING:
    from ...state.view import ClusterView

RUNNER = str(run_script.__file__)
"""A file, since the cluster's Python may lack this package."""


def add_run(parser: Parser) -> None:
    """Add the arguments of ``run``."""
    parser.usage = f"{parser.prog} SCRIPT [OPTIONS] [-- ARGS]"
    parser.passes_on = True
    parser.add_argument(
        "script", metavar="SCRIPT", help="a Python file, run with a Dask client ready"
    )
    parser.add_argument("--profile", help="where to run; see the command profiles")
    parser.add_argument("--name", help="a name of your own for the cluster")
    add_request(parser)


def run_run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Start a cluster, run the script with a client ready, stop the cluster; return its code."""
    script = Path(arguments.script)
    if not script.is_file():
        raise InvalidInput(
            f"There is no file {arguments.script}.", hint="Give the path of a Python file."
        )
    profile = arguments.profile or default_profile()
    request = request_from(arguments, profile, session, name=arguments.name, owned=True)
    with Signals() as signals:
        view = session.clusters.start(request)
        code = 0
        try:
            with session.progress() as progress:
                view = session.clusters.wait_ready(view.id, progress=progress)
            session.note(
                f"{script} runs on this host ({socket.gethostname()}); "
                f"its Dask work goes to cluster {view.name} "
                f"({counted(view.workers.ready, view.unit)})"
            )
            code = _run_script(view, [str(script), *arguments.passed_on], signals)
            _note_tasks(view, session)
        except KeyboardInterrupt:
            code = 128 + signals.last
        finally:
            stop_quietly(view, session)
    return Outcome(exit_code=code)


def _note_tasks(view: ClusterView, session: Session) -> None:
    """Note the number of tasks that the cluster ran, and warn about 0."""
    try:
        answer = ask(session.clusters.endpoint(view.id), "GET", "/gpucluster/summary")
    except GpuClusterError:
        return  # a cluster that has ended by itself has its own reason
    tasks = answer.get("tasks")  # a head of an older version does not count them
    if tasks:
        session.note(f"cluster {view.name} ran {counted(tasks, 'tasks')}")
    elif tasks == 0:
        session.note(
            f"warning: cluster {view.name} ran no task; the script did its work on this host. "
            "Dask collections run on the cluster when you call compute(), functions with "
            "dask.delayed or client.submit."
        )


def _run_script(view: ClusterView, command: Sequence[str], signals: Signals) -> int:
    from ...client.connect import client_environment

    environment = {**os.environ, **client_environment(view)}
    with subprocess.Popen([view.python, RUNNER, *command], env=environment) as script:
        interrupts = 0
        while script.poll() is None:
            try:
                script.wait()
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts > 1:  # it ignored the first one
                    script.kill()
                elif not signals.reached_children():
                    script.send_signal(signals.last)
        code = script.returncode
    return code if code >= 0 else 128 - code


def add_shell(parser: Parser) -> None:
    """Add the arguments of ``shell``."""
    parser.usage = f"{parser.prog} NAME [--job ID | --worker WORKER] [-- COMMAND...]"
    parser.passes_on = True
    add_name(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--job", metavar="ID", default="", help="the job to enter; by default the first that runs"
    )
    group.add_argument(
        "--worker", metavar="WORKER", default="", help="enter the node of this worker"
    )


def run_shell(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Become a shell, or one command, in the environment of a running job."""
    if session.program.startswith("%"):
        raise InvalidInput(
            "A notebook has no terminal for a shell.",
            hint=f"Use one: jupyter gpucluster shell {arguments.name}",
        )
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    argv = session.clusters.entry(
        arguments.name,
        arguments.passed_on,
        job=arguments.job,
        worker=arguments.worker,
        terminal=terminal,
    )
    session.note(f"runs: {shlex.join(argv)}")
    try:
        # Without the variables of a job that this terminal may be in itself.
        os.execvpe(argv[0], list(argv), inherited(os.environ))  # noqa: S606  # argv of our own making
    except OSError as error:
        raise GpuClusterError(
            f"{argv[0]} cannot be run here: {error.strerror}.",
            hint="Enter the job from a host that has the batch system's commands.",
        ) from error
