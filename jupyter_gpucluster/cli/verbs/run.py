"""``run SCRIPT``: start a cluster, run a script with a client ready, stop the cluster."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from ...errors import InvalidInput
from ..arguments import add_place, add_target, options_from, python_from, target_from
from ..output import Outcome
from ..parsing import Parser
from ..places import default_profile, refuse_gpus_on
from ..session import Session
from ..waiting import stop_quietly

if TYPE_CHECKING:
    from ...views import ClusterView


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.usage = f"{parser.prog} SCRIPT [OPTIONS] [-- ARGS]"
    parser.add_argument("script", metavar="SCRIPT", help="a Python file; Client() connects in it")
    parser.add_argument("--profile", help="where to run; see the verb profiles")
    parser.add_argument("--name", help="a name of your own for the cluster")
    add_target(parser, least=1)
    add_place(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Run the script; its exit code is ours."""
    script = Path(arguments.script)
    if not script.is_file():
        raise InvalidInput(
            f"There is no file {arguments.script}.", hint="Give the path of a Python file."
        )
    profile = arguments.profile or default_profile()
    refuse_gpus_on(profile, arguments)
    with Signals() as signals:
        view = session.clusters.start(
            profile,
            name=arguments.name,
            target=target_from(arguments),
            options=options_from(arguments),
            python=python_from(arguments, session.python),
            kernel=arguments.kernel or "",
            owned=True,
        )
        code = 0
        try:
            with session.progress() as progress:
                view = session.clusters.wait_ready(view.id, progress=progress)
            code = _run_script(view, [str(script), *arguments.passed_on], signals)
        except KeyboardInterrupt:
            code = 128 + signals.last
        finally:
            stop_quietly(view, session)
    return Outcome(exit_code=code)


def _run_script(view: ClusterView, command: Sequence[str], signals: Signals) -> int:
    from ...connection import client_environment

    environment = {**os.environ, **client_environment(view)}
    with subprocess.Popen([view.python, *command], env=environment) as script:
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


class Signals:
    """Turns the signals that end a command into `KeyboardInterrupt`, so that nothing is left."""

    def __init__(self) -> None:
        self.last = signal.SIGINT
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Python lets only the main thread set handlers; in others signals do not arrive anyway.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.last = signal.Signals(number)
        raise KeyboardInterrupt

    def reached_children(self) -> bool:
        """Whether the last signal came from a terminal, which sends it to the script as well."""
        if self.last is not signal.SIGINT:
            return False
        try:
            with Path("/dev/tty").open("rb") as terminal:
                return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
        except OSError:
            return False
