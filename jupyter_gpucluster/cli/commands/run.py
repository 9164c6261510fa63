"""``run SCRIPT``: start a cluster, run a script with a client ready, stop the cluster."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import GpuClusterError, InvalidInput
from ...node import run_script
from ...state.control_client import ask
from ..arguments import add_allocation, add_place, add_target, request_from
from ..output import Outcome, counted
from ..parsing import Parser
from ..places import default_profile, note_problems, refuse_gpus_on
from ..session import Session
from ..signals import Signals
from ..waiting import stop_quietly

if TYPE_CHECKING:
    from ...state.view import ClusterView

RUNNER = str(run_script.__file__)
"""A file, since the cluster's Python may lack this package."""


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.usage = f"{parser.prog} SCRIPT [OPTIONS] [-- ARGS]"
    parser.add_argument(
        "script", metavar="SCRIPT", help="a Python file, run with a Dask client ready"
    )
    parser.add_argument("--profile", help="where to run; see the verb profiles")
    parser.add_argument("--name", help="a name of your own for the cluster")
    add_target(parser, least=1)
    add_place(parser)
    add_allocation(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Run the script; its exit code is ours."""
    script = Path(arguments.script)
    if not script.is_file():
        raise InvalidInput(
            f"There is no file {arguments.script}.", hint="Give the path of a Python file."
        )
    profile = arguments.profile or default_profile()
    refuse_gpus_on(profile, arguments)
    note_problems(profile, session)
    with Signals() as signals:
        request = request_from(arguments, profile, session.python, name=arguments.name, owned=True)
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
            _tell_tasks(view, session)
        except KeyboardInterrupt:
            code = 128 + signals.last
        finally:
            stop_quietly(view, session)
    return Outcome(exit_code=code)


def _tell_tasks(view: ClusterView, session: Session) -> None:
    """Say how many tasks the cluster ran, and warn where it ran none."""
    try:
        answer = ask(session.clusters.endpoint(view.id), "GET", "/gpucluster/summary")
    except GpuClusterError:
        return  # a cluster that has ended by itself tells why in its own words
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
                if interrupts > 1:  # it was asked and did not listen
                    script.kill()
                elif not signals.reached_children():
                    script.send_signal(signals.last)
        code = script.returncode
    return code if code >= 0 else 128 - code
