"""A cluster from outside: its processes, its sockets, its client."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from distributed import Client

from jupyter_gpucluster.client.connect import security_of
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Record, Target
from jupyter_gpucluster.core.job import Job
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.state.view import ClusterView

READY_SECONDS = 60.0
Answer = TypeVar("Answer")


def fixed(workers: int) -> Target:
    return Target(workers, workers)


def until(question: Callable[[], Answer | None], seconds: float = 30.0) -> Answer:
    """Ask again and again until the answer is true; fail after some seconds."""
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s; the last answer was {answer!r}")
        time.sleep(0.03)
    return answer


def client_of(view: ClusterView) -> Client:
    return Client(view.scheduler_address, security=security_of(view), set_as_default=False)


def record_of(view: ClusterView) -> Record:
    return ClusterDirectory(Path(view.directory)).read_record()


def head_of(view: ClusterView) -> int:
    head = record_of(view).head
    assert head is not None
    return head.pid


def job_server_of(view: ClusterView) -> int:
    """Return the process that starts and watches a local cluster's workers."""
    [pid] = [
        pid
        for pid in processes_of(view.id)
        if b"\0jobs\0" in command_of(pid) and parent_of(pid) == head_of(view)
    ]
    return pid


def live_jobs(clusters: Clusters, view: ClusterView) -> list[Job]:
    return [job for job in clusters.jobs(view.id) if job.ended is None]


def command_of(pid: int) -> bytes:
    return _read(Path(f"/proc/{pid}/cmdline"))


def parent_of(pid: int) -> int:
    return int(_read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[1])


def processes_of(id: str) -> list[int]:
    """Return every process that a cluster's id or mark leads to, itself and its heirs."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        text = _read(entry / "cmdline") + _read(entry / "environ")
        ours = f"/{id}".encode() in text or f"gpc-{id}-".encode() in text
        if ours and int(entry.name) != os.getpid() and not _over(entry):
            found.append(int(entry.name))
    return found


def ports_of(pids: list[int]) -> list[tuple[str, int]]:
    """Return address (as the kernel writes it, in hexadecimal) and port of listening sockets."""
    inodes = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(str(link.readlink()))
            except OSError:
                continue  # closed between the two looks
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, _, port = fields[1].partition(":")
                found.append((address, int(port, 16)))
    return found


def ended(clusters: Clusters, view: ClusterView) -> ClusterView | None:
    """Return the view once the cluster is over and none of its processes is left."""
    look = clusters.get(view.id)
    over = look.phase in (Phase.STOPPED, Phase.FAILED)
    return look if over and not processes_of(view.id) else None


def traces_of(id: str) -> list[str]:
    """Return what a cluster left in shared memory and in the directory for temporary files."""
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return [str(path) for place in places for path in place.glob(f"*{id}*")]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it has just ended


def _over(entry: Path) -> bool:
    return _read(entry / "stat").rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"], [])
