"""Processes of jobs on this machine: their memory, their parents, and what they leave behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from ..host.processes import children

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ADOPTED_SECONDS = 5.0
"""Time for the end of processes that jobs left behind."""
PAGE = os.sysconf("SC_PAGE_SIZE")


def shell_of(script: Path) -> str:
    """Return the shell that a script names: bash for a prologue and for several nodes."""
    with script.open("rb") as stream:
        return "/bin/bash" if stream.readline() == b"#!/bin/bash\n" else "/bin/sh"


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def die_with(parent: int) -> None:
    """Let the kernel end this process with its parent, or end at once where that is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt() -> None:
    """Become the parent of every process of a job whose own parent ends, whatever its name."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_adopted() -> None:
    """Kill what jobs left behind, also where it hides which job it is of."""
    deadline = time.monotonic() + ADOPTED_SECONDS
    while (left := children(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)
