"""``logs NAME`` and ``shell NAME``: into the jobs of a cluster."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ...batch.variables import inherited
from ...core.cluster import ENDED
from ...core.errors import GpuClusterError, InvalidInput
from ..arguments import Parser, whole_number
from ..output import Outcome, Session, Text

if TYPE_CHECKING:
    from ...state.view import ClusterView


LINES = 500
FOLLOWED_LINES = 10
LOOK_SECONDS = 1.0


def add_logs(parser: Parser) -> None:
    """Add the arguments of ``logs``."""
    parser.add_argument("--job", metavar="ID", default="", help="only this job; see: show")
    lines = f"the last N lines of each log ({LINES}, with --follow {FOLLOWED_LINES})"
    parser.add_argument("--lines", metavar="N", type=whole_number("--lines", 1), help=lines)
    parser.flag("--follow", "keep printing added lines until the cluster ends")


def run_logs(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Print the logs."""
    if not arguments.follow:
        log, lines = _log_of(arguments, session), arguments.lines or LINES
        text = session.clusters.logs(arguments.name, log, lines=lines)
        return Outcome({"text": text}, (Text(text, code=True),))
    if arguments.json:
        raise InvalidInput("--follow has no end, so --json cannot print one document of it.")
    view = session.clusters.get(arguments.name)
    try:
        _follow(view, arguments, session)
    except KeyboardInterrupt:
        return Outcome()
    return Outcome(blocks=(Text(f"{view.name} has ended."),))


def _follow(view: ClusterView, arguments: argparse.Namespace, session: Session) -> None:
    """Print added lines until the cluster has ended."""
    lines = arguments.lines or FOLLOWED_LINES
    log = _log_of(arguments, session)
    session.write(session.clusters.logs(view.id, log, lines=lines).rstrip("\n") + "\n")
    tail = Tail(Path(view.directory) / "logs", f"{log or '*'}.log")
    while True:
        # The phase is read first: what was written before the end is then printed after it.
        ended = session.clusters.get(view.id).phase in ENDED
        for text in tail.added():
            session.write(text)
        if ended:
            return
        time.sleep(LOOK_SECONDS)


def _log_of(arguments: argparse.Namespace, session: Session) -> str:
    """Return the name of the log of ``--job``, which may be the batch system's id."""
    for job in session.clusters.jobs(arguments.name) if arguments.job else ():
        if arguments.job == job.id:
            return job.key
    return str(arguments.job)


class Tail:
    """The growing ends of the log files in a directory."""

    def __init__(self, directory: Path, pattern: str) -> None:
        self._directory = directory
        self._pattern = pattern
        self._read = {path: path.stat().st_size for path in self._paths()}
        self._shown: Path | None = None

    def added(self) -> Iterator[str]:
        """Yield the lines added since the last look, under a heading when the file changes."""
        for path in self._paths():
            with path.open("rb") as stream:
                stream.seek(self._read.get(path, 0))
                data = stream.read()
            # Half a line, or half a character, waits for its rest.
            data = data[: data.rfind(b"\n") + 1]
            if not data:
                continue
            self._read[path] = self._read.get(path, 0) + len(data)
            if path != self._shown:
                yield f"==> {path.name} <==\n"
                self._shown = path
            yield data.decode(errors="replace")

    def _paths(self) -> list[Path]:
        return sorted(self._directory.glob(self._pattern))


def add_shell(parser: Parser) -> None:
    """Add the arguments of ``shell``."""
    parser.usage = f"{parser.prog} NAME [--job ID | --worker WORKER] [-- COMMAND...]"
    parser.passes_on = True
    group = parser.add_mutually_exclusive_group()
    job, worker = "the job to enter; by default the first that runs", "enter this worker's node"
    group.add_argument("--job", metavar="ID", default="", help=job)
    group.add_argument("--worker", metavar="WORKER", default="", help=worker)


def run_shell(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Become a shell, or one command, in the environment of a running job."""
    if session.program.startswith("%"):
        hint = f"Use one: jupyter gpucluster shell {arguments.name}"
        raise InvalidInput("A notebook has no terminal for a shell.", hint=hint)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    where = {"job": arguments.job, "worker": arguments.worker}
    argv = session.clusters.entry(arguments.name, arguments.passed_on, **where, terminal=terminal)
    session.note(f"runs: {shlex.join(argv)}")
    try:
        # Without the variables of a job that this terminal may be in itself.
        os.execvpe(argv[0], list(argv), inherited(os.environ))  # noqa: S606  # argv of our own making
    except OSError as error:
        words, hint = f"{argv[0]} cannot be run here: {error.strerror}.", "Use a host that has it."
        raise GpuClusterError(words, hint=hint) from error
