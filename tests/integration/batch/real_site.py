"""The base of real batch systems: commands, waiting for them, an end by process id."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from tools.leftovers import parent

UP_SECONDS = 60.0
END_SECONDS = 20.0
NEUTRAL = {"PATH": os.environ["PATH"], "HOME": "/root"}
"""Not the home of a test, whose processes are ended with it: daemons outlive tests."""
OPEN_TO_ALL = tempfile.gettempdir()
"""Not below a test's own home: daemons run as other users, and outlive a test."""

AnySite = TypeVar("AnySite", bound="RealSite")


@dataclass
class RealSite(ABC):
    """Daemons of a batch system on this host, on loopback and without systemd."""

    base: Path
    """Folder of their files."""
    user: ClassVar[str] = "nobody"
    """An ordinary user, whom every Debian has; the system must run jobs of such users."""

    @property
    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Variables that the system's commands need."""

    @abstractmethod
    def start(self) -> None:
        """Start the daemons; return when jobs can run."""

    @abstractmethod
    def stop(self) -> None:
        """End all jobs, then the daemons."""

    @abstractmethod
    def queue(self) -> list[str]:
        """Return the ids of the jobs that wait or run, one for each array task."""

    @abstractmethod
    def silence(self) -> contextlib.AbstractContextManager[None]:
        """Let no command that lists jobs be answered for a while."""

    def run(self, *argv: str, check: bool = True, as_user: str = "") -> str:
        """Run a command as root, or as another user, and return what it prints."""
        prefix = ["runuser", "-u", as_user, "--"] if as_user else []
        result = subprocess.run(
            [*prefix, *argv],
            env=NEUTRAL | self.environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if check and result.returncode:
            raise RuntimeError(f"{argv}: {result.stdout}{result.stderr}")
        return result.stdout

    def wait(self, reached: Callable[[], bool], seconds: float = UP_SECONDS) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{type(self).__name__} did not get there")
            time.sleep(0.1)

    def take_turns(self, lock: Path) -> None:
        """Wait until no tests of another checkout use what a machine has but once."""
        self.lock = lock.open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)


@contextlib.contextmanager
def running(kind: Callable[[Path], AnySite]) -> Iterator[AnySite]:
    """Bring a system up in a folder of its own, and leave nothing of it behind."""
    base = Path(tempfile.mkdtemp(prefix="site-", dir=OPEN_TO_ALL))
    base.chmod(0o755)
    site = kind(base)
    try:
        site.start()
        yield site
    finally:
        site.stop()
        shutil.rmtree(base, ignore_errors=True)


def written(paths: Iterable[Path], program: str) -> list[int]:
    """Return the processes that daemons wrote down and that still are such daemons."""
    found = []
    for path in paths:
        with contextlib.suppress(ValueError, IndexError, OSError):
            pid = int(path.read_text().split()[0])
            if program.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def end(pids: Iterable[int]) -> None:
    """Ask processes to end, and wait until they have."""
    left = list(pids)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while any(lives(pid) for pid in left) and time.monotonic() < deadline:
        time.sleep(0.1)


def below(pid: int) -> list[int]:
    """Return the children of a process and theirs."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        children.setdefault(parent(int(entry.name)), []).append(int(entry.name))
    found = list(children.get(pid, ()))
    for each in found:
        found += children.get(each, ())
    return found


def lives(pid: int) -> bool:
    """Tell whether a process is there and no zombie: this machine's init may reap none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return not stat.rpartition(")")[2].lstrip().startswith("Z")


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            found.append(int(listener.getsockname()[1]))
        return found


def host_name() -> str:
    """Return this host's name without its domain."""
    return socket.gethostname().split(".")[0]
