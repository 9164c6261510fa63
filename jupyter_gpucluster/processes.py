"""Tell a process from a later one with the same number, and end process groups."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

from .records import Process


def boot_id() -> str:
    """Return the kernel's name for this boot, empty where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_time(pid: int) -> int | None:
    """Return when a process started in clock ticks after boot, or None if it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command name may hold blanks and parentheses; the fields follow its last one (proc(5)).
    fields = text[text.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def this_process() -> Process:
    """Return the identity of the calling process."""
    pid = os.getpid()
    return Process(socket.gethostname(), boot_id(), pid, start_time(pid) or 0)


def is_alive(process: Process) -> bool | None:
    """Tell whether a process lives; None where it cannot be known because it ran on another host."""
    if process.host != socket.gethostname():
        return None
    return process.boot_id == boot_id() and start_time(process.pid) == process.start_time


def signal_group(pid: int, number: int) -> None:
    """Send a signal to the process group that a session leader leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def kill_group(pid: int, started: int, *, grace: float = 1.0) -> None:
    """End the group of a process if it is still the same one: politely, then for good."""
    if start_time(pid) != started:
        return
    signal_group(pid, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline and start_time(pid) == started:
        time.sleep(0.05)
    signal_group(pid, signal.SIGKILL)
