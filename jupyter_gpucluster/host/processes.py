"""Tell a process from a later one with the same number, and end process groups."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..core.cluster import Process

if TYPE_CHECKING:
    import psutil

T = TypeVar("T")

JOB_VARIABLES = "GPUCLUSTER_"
"""Environment variables that hold a job's name begin so; all processes of the job inherit them."""
DIRECTORY_VARIABLE = "GPUCLUSTER_DIRECTORY"
MARK = re.compile(r"gpc-[a-z0-9]{6}-\d+")


_started_with: list[tuple[int, int]] = []
"""Soft and hard limit of open files before this process raised its own."""


def raise_open_files() -> None:
    """Let this process open as many files as its hard limit admits: a connection is one, too."""
    limits = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        _started_with.append(limits)


def lower_open_files() -> Callable[[], None] | None:
    """Return what a child does before its program, so that it has the limit that we came with.

    Slurm sets the limit of ``sbatch`` in the job, and some programs close all files they may open.
    None where nothing was raised.
    """
    if not _started_with:
        return None
    return functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, _started_with[0])


@functools.cache
def boot_id() -> str:
    """Return the kernel's name for this boot, empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_time(pid: int) -> int | None:
    """Return a process's start in clock ticks after boot, None if it is gone or a zombie."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)  # half the time of a file object
        try:
            text = os.read(descriptor, 4096)
        finally:
            os.close(descriptor)
    except OSError:
        return None
    # The command name may hold blanks and parentheses; the fields follow its last one (proc(5)).
    fields = text[text.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def this_process() -> Process:
    """Return the identity of the calling process."""
    pid = os.getpid()
    return Process(os.uname().nodename, boot_id(), pid, start_time(pid) or 0)


def is_alive(process: Process) -> bool | None:
    """Determine whether a process lives; None if it ran on another host."""
    if process.host != os.uname().nodename:
        return None
    return process.boot_id == boot_id() and start_time(process.pid) == process.start_time


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group that a session leader leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def leftover_processes() -> Iterator[tuple[int, str, str]]:
    """Yield this user's processes of jobs of local clusters: number, mark, cluster directory.

    Programs that a job has started inherit its name; mere forks of a worker, which is a fork
    itself, still show the job server's command, which names the cluster's directory.
    """
    return ((pid, *owner) for pid, owner in _read_each(_owner_of))


def heads() -> Iterator[tuple[int, str]]:
    """Yield this user's heads: number and cluster directory, which may be there no more."""
    return _read_each(lambda process: _option(process, "head", "--directory"))


def _read_each(read: Callable[[psutil.Process], T | None]) -> Iterator[tuple[int, T]]:
    """Yield the number of each process of this user, and what is read of it, unless it is empty."""
    import psutil  # it comes with distributed; most commands do without

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # gone, or another user's
            if process.uids().effective == os.geteuid() and (found := read(process)):
                yield process.pid, found


def _owner_of(process: psutil.Process) -> tuple[str, str] | None:
    """Return mark and cluster directory of a process, None where it is none of ours."""
    variables = process.environ()
    ours = (variables[name] for name in variables if name.startswith(JOB_VARIABLES))
    if mark := next(filter(MARK.match, ours), ""):
        return mark, variables.get(DIRECTORY_VARIABLE, "")
    directory = Path(_option(process, "jobs", "--logs")).parent
    mark = f"gpc-{directory.name}-0"
    return (mark, str(directory)) if MARK.match(mark) else None


def _option(process: psutil.Process, command: str, option: str) -> str:
    """Return an option's value in the command of a process, empty where it is no such command."""
    words = process.cmdline()
    return words[words.index(option) + 1] if command in words and option in words[:-1] else ""


def end_leftovers(directory: Path) -> None:
    """Kill what the jobs of a local cluster left behind, also in sessions of its own.

    Parameters
    ----------
    directory
        The cluster's directory; its jobs must be over or meant to be.
    """
    for pid, mark, of in leftover_processes():
        # Another user's folder, or another test's, may hold a cluster with the same id.
        ours = of and Path(of).resolve() == directory.resolve()
        if ours and mark.startswith(f"gpc-{directory.name}-") and pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill_group(pid: int, started: int) -> None:
    """Kill the group of a process if it is still the same one."""
    if start_time(pid) == started:
        signal_group(pid, signal.SIGKILL)
