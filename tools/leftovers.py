"""Find and end processes that still belong to a home which was only lent to them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Set
from pathlib import Path

HELPERS = (b"multiprocessing.resource_tracker", b"batch/job_writer.py")
"""Processes of Python's and of ours that serve one that goes on."""
GRACE_SECONDS = 5.0
"""Time for processes that already end."""


def running() -> frozenset[int]:
    """Return the ids of all processes."""
    return frozenset(int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal())


def end_processes(home: Path, before: Set[int] = frozenset()) -> list[str]:
    """Kill what still runs with this home after a moment's grace; return one line for each.

    Parameters
    ----------
    before
        Processes older than the home, which cannot name it: each look at one takes time.
    """
    deadline = time.monotonic() + GRACE_SECONDS
    while (found := processes_of(home, before)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"{pid} {command}" for pid, command in found.items()]


def processes_of(home: Path, before: Set[int] = frozenset()) -> dict[int, str]:
    """Return the command lines of other processes that name this home, or whose variables do."""
    found = {}
    for pid in running() - before:
        entry = Path(f"/proc/{pid}")
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue  # it has just ended, or belongs to another user
        mine = os.fsencode(home) in command or os.fsencode(home) in environment
        # These end with pytest itself.
        helper = any(name in command for name in HELPERS) and parent(pid) == os.getpid()
        if mine and not helper and pid != os.getpid():
            found[pid] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def parent(pid: int) -> int:
    """Return a process's parent, 0 when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])
