"""What dask-jobqueue's Job classes write, asked of a child process that imports them."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import site
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any, cast

from ..errors import BackendError

KEPT = ("PATH", "LD_", "PYTHON", "VIRTUAL_ENV", "CONDA", "LANG", "LC_")
"""How the variables begin that a Python may need; what is written depends on no other."""
READING_SECONDS = 300
"""How long the child may take to import Dask: minutes where many jobs read one file system."""


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


def without(lines: Sequence[str], *beginnings: str) -> list[str]:
    """Return the lines that begin with none of these."""
    return [line for line in lines if not line.startswith(beginnings)]


@functools.lru_cache(maxsize=256)
def _asked(job_class: str, told: str) -> Mapping[str, Any]:
    said = _WRITER.answer(f'{{"class": {json.dumps(job_class)}, "told": {told}}}\n')
    if "error" in said:
        raise BackendError(
            f"dask-jobqueue's {job_class.rpartition('.')[2]} cannot write the job's script.",
            hint="Install dask-jobqueue anew beside jupyter_gpucluster: "
            f"{sys.executable} -m pip install --upgrade 'dask-jobqueue>=0.9'",
            detail=said["error"],
        )
    return said


class _Writer:
    """The child: started by the first question, gone some time after the last one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        """Start the child unless it runs."""
        with self.lock:
            self._living()

    def answer(self, question: str) -> dict[str, Any]:
        with self.lock:
            text = self._asked(question)
            # It may have ended for want of questions while this one was on its way.
            text = text or self._asked(question)
        if not text:
            return {"error": "its process ended or did not answer"}
        said: dict[str, Any] = json.loads(text)
        return said

    def _asked(self, question: str) -> str:
        child = self._living()
        questions, answers = cast("IO[str]", child.stdin), cast("IO[str]", child.stdout)
        try:
            questions.write(question)
            questions.flush()
        except BrokenPipeError:
            self.end()
            return ""
        ready = select.poll()
        ready.register(answers, select.POLLIN)
        text = answers.readline() if ready.poll(READING_SECONDS * 1000) else ""
        if not text:
            self.end()
        return text

    def _living(self) -> subprocess.Popen[str]:
        if self.child is None or self.child.poll() is not None:
            self.end()
            self.child = _started()
        return self.child

    def end(self) -> None:
        """End the child; it is missed by nobody."""
        if self.child is None:
            return
        self.child.kill()
        with contextlib.suppress(BrokenPipeError):
            self.child.communicate()
        self.child = None


def _started() -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.jobwriter"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # dask-jobqueue writes a file below the user's home, where packages may be, too.
        env={**kept, "HOME": os.devnull, "PYTHONUSERBASE": site.getuserbase()},
        cwd="/",  # a folder that is in use could not be removed
        text=True,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C in a terminal is not meant for it
    )


_WRITER = _Writer()
atexit.register(_WRITER.end)
