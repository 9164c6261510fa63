"""The texts of dask-jobqueue's Job classes, from a child process that imports them."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import site
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import BackendError
from ..core.job import JobShape
from .quoting import directive_value, hours

if TYPE_CHECKING:
    from io import BufferedRWPair

WRITER = Path(__file__).resolve().with_name("job_writer.py")
KEPT = (
    "PATH", "LD_", "PYTHON", "VIRTUAL_ENV", "CONDA", "LANG", "LC_",
    # Where EasyBuild's, Guix's and Nix's Python finds packages.
    "EBPYTHON", "GUIX_PYTHON", "NIX_PYTHON",
)  # fmt: skip
"""Prefixes of variables that a Python may need; the texts depend on no others."""
READING_SECONDS = 300
"""Time for the child to import Dask: minutes if many jobs read one file system."""
ENDING_SECONDS = 5
"""Wait for a killed child: one that reads a dead file system may stay."""


def begin() -> None:
    """Have Dask imported by the time that something is asked, without waiting for it."""
    _WRITER.begin()


def head(job_class: str, told: Mapping[str, object]) -> list[str]:
    """Return the directives that a Job class writes.

    Parameters
    ----------
    job_class
        Its name within dask-jobqueue, such as ``slurm.SLURMJob``.
    told
        Arguments of its constructor; of those left out it has defaults, never the user's
        Dask configuration.

    Raises
    ------
    BackendError
        dask-jobqueue cannot be imported, or refuses the arguments.
    """
    # It wants both, also where nothing is to be asked for; below 1 KiB its Slurm fails.
    lines: list[str] = _asked(job_class, json.dumps({"cores": 1, "memory": 1024, **told}))["head"]
    return list(lines)


def command(job_class: str, told: Mapping[str, object]) -> str:
    """Return the line that starts workers, as a Job class writes it for a shell.

    Raises
    ------
    BackendError
        dask-jobqueue cannot be imported, or refuses the arguments.
    """
    line: str = _asked(job_class, json.dumps(told))["command"]
    return line


def named(job: JobShape, mark: str, account: str = "account") -> dict[str, object]:
    """Return what most classes are told alike: the job's name, queue, account and walltime.

    Parameters
    ----------
    account
        What the class calls it: ``account`` or ``project``.
    """
    told: dict[str, object] = {"job_name": directive_value(mark, "mark")}
    if job.queue:
        told["queue"] = directive_value(job.queue, "job.queue")
    if job.account:
        told[account] = directive_value(job.account, "job.account")
    if job.walltime is not None:
        told["walltime"] = hours(job.walltime)
    return told


def without(lines: Sequence[str], *beginnings: str) -> list[str]:
    """Return the lines that begin with none of these."""
    return [line for line in lines if not line.startswith(beginnings)]


@functools.lru_cache(maxsize=256)
def _asked(job_class: str, told: str) -> Mapping[str, Any]:
    said = _WRITER.answer(f'{{"class": {json.dumps(job_class)}, "told": {told}}}\n')
    if "error" in said:
        raise BackendError(
            f"dask-jobqueue's {job_class.rpartition('.')[2]} cannot write the job's script.",
            hint="Try again; where it stays so, install dask-jobqueue anew beside"
            f" jupyter_gpucluster: {sys.executable} -m pip install --upgrade"
            " 'dask-jobqueue>=0.9,<0.10'",
            detail=said["error"],
        )
    return said


class _Writer:
    """The child: started by the first question, gone some time after the last one."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin without a child; that of a process which forks is not its child's, too."""
        self.lock = threading.Lock()
        self.child: tuple[subprocess.Popen[bytes], BufferedRWPair] | None = None

    def begin(self) -> None:
        """Start the child unless it runs; skip if a question holds the lock."""
        if self.lock.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError):  # the next question gets the error
                    self._living()
            finally:
                self.lock.release()

    def answer(self, question: str) -> dict[str, Any]:
        with self.lock:
            try:
                # It may have ended for want of questions while this one was on its way.
                text = self._asked(question) or self._asked(question)
            except OSError as error:
                return {"error": f"{sys.executable}: {error.strerror or error}"}
        if not text:
            return {"error": "its process ended without an answer"}
        said: dict[str, Any] = json.loads(text)
        return said

    def _asked(self, question: str) -> bytes:
        text = b""
        try:
            line = self._living()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                line.write(question.encode())
                line.flush()
                text = line.readline()
        finally:
            # An answer that comes after a time-out or Ctrl-C would be taken for the next one.
            if not text.endswith(b"\n"):
                text = b""
                self.end()
        return text

    def _living(self) -> BufferedRWPair:
        if self.child is None or self.child[0].poll() is not None:
            self.end()
            self.child = _started()
        return self.child[1]

    def end(self) -> None:
        """End the child."""
        ended, self.child = self.child, None
        if ended is None:
            return
        child, line = ended
        child.kill()
        with contextlib.suppress(OSError):
            line.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(ENDING_SECONDS)


def _started() -> tuple[subprocess.Popen[bytes], BufferedRWPair]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(READING_SECONDS)
        child = subprocess.Popen(
            [sys.executable, "-P", str(WRITER)],
            # Both ways: what a site has each Python print at its start is no answer.
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # dask-jobqueue writes a file below the user's home, where packages may be, too.
            env={**kept, "HOME": os.devnull, "PYTHONUSERBASE": site.getuserbase()},
            start_new_session=True,  # Ctrl-C in a terminal is not meant for it
        )
        return child, ours.makefile("rwb")


_WRITER = _Writer()
atexit.register(_WRITER.end)
os.register_at_fork(after_in_child=_WRITER.forget)
