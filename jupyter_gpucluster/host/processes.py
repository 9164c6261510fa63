"""Tell a process from a later one with the same number, and end process groups."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..core.cluster import Process

JOB_VARIABLES = b"GPUCLUSTER_"
"""Environment variables that hold a job's name begin so; all processes of the job inherit them."""
DIRECTORY_VARIABLE = b"GPUCLUSTER_DIRECTORY"
MARK = re.compile(rb"gpc-[a-z0-9]{6}-\d+")


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


def children(parent: int) -> list[int]:
    """Return the children of a process, also those that were not waited for yet."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (entry / "stat").read_bytes()
            if int(text[text.rindex(b")") + 2 :].split()[1]) == parent:
                found.append(int(entry.name))
    return found


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


def heirs() -> Iterator[tuple[int, str, str]]:
    """Yield this user's processes of jobs of local clusters: number, mark, cluster directory.

    Programs that a job has started inherit its name; mere forks of a worker, which is a fork
    itself, still show the job server's command, which names the cluster's directory.
    """
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone, or another user's
            if (owner := _owner_of(entry)) and entry.stat().st_uid == os.geteuid():
                yield int(entry.name), *owner


def heads() -> Iterator[tuple[int, str]]:
    """Yield this user's heads: number and cluster directory, which may be there no more."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            ours = b"head" in words and b"--directory" in words[:-1]
            if ours and entry.stat().st_uid == os.geteuid():
                yield int(entry.name), os.fsdecode(words[words.index(b"--directory") + 1])


def _owner_of(entry: Path) -> tuple[str, str] | None:
    """Return mark and cluster directory of a process, None where it is none of ours."""
    variables = dict(
        variable.split(b"=", 1)
        for variable in (entry / "environ").read_bytes().split(b"\0")
        if variable.startswith(JOB_VARIABLES) and b"=" in variable
    )
    mark = next((value for value in variables.values() if MARK.match(value)), b"")
    if mark:
        return os.fsdecode(mark), os.fsdecode(variables.get(DIRECTORY_VARIABLE, b""))
    words = (entry / "cmdline").read_bytes().split(b"\0")
    if b"jobs" in words and b"--logs" in words[:-1]:
        directory = Path(os.fsdecode(words[words.index(b"--logs") + 1])).parent
        if MARK.match(f"gpc-{directory.name}-0".encode()):
            return f"gpc-{directory.name}-0", str(directory)
    return None


def end_heirs(directory: Path) -> None:
    """Kill what the jobs of a local cluster left behind, also in sessions of its own.

    Parameters
    ----------
    directory
        The cluster's directory; its jobs must be over or meant to be.
    """
    for pid, mark, of in heirs():
        # Another user's folder, or another test's, may hold a cluster with the same id.
        ours = mark.startswith(f"gpc-{directory.name}-") and of and _same(Path(of), directory)
        if ours and pid != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def kill_group(pid: int, started: int, *, grace: float = 1.0) -> None:
    """End the group of a process if it is still the same one: politely, then for good."""
    if start_time(pid) != started:
        return
    signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and start_time(pid) == started:
        time.sleep(0.05)
    signal_group(pid, signal.SIGKILL)
