"""Many clusters one after the other leave nothing behind but their history."""

from __future__ import annotations

import os
from pathlib import Path

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from tools.leftovers import processes_of as of_home

from .conftest import Start
from .driving import ports_of, processes_of, traces_of

TIMES = 20


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def shared_memory_of(pids: list[int]) -> set[str]:
    """Return the named shared memory that processes have mapped."""
    return {
        line.split(maxsplit=5)[5].removesuffix(" (deleted)")
        for pid in pids
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
        if "/dev/shm/" in line
    }


def listening(home: Path) -> set[int]:
    # Elsewhere another test may have been given a port that has just become free.
    return {port for _, port in ports_of([os.getpid(), *of_home(home)])}


def test_twenty_starts_and_stops_leave_only_history(
    clusters: Clusters, start: Start, home: Path, temporary: Path
) -> None:
    files, ids = 0, []
    for number in range(TIMES):
        # Earlier tests of this process may have left sockets that still close.
        before = listening(home)
        view = start()
        pids = processes_of(view.id)
        ports, shared = ports_of(pids), shared_memory_of(pids)
        clusters.stop(view.id)
        assert clusters.wait_stopped(view.id, timeout=30).phase is Phase.STOPPED
        assert not processes_of(view.id)
        assert not traces_of(view.id)
        assert not {port for _, port in ports} & listening(home) - before
        assert not [path for path in shared if Path(path).exists()]
        ids.append(view.id)
        if number == 0:
            files = open_files()
    assert open_files() <= files
    assert not list(temporary.iterdir())
    assert clusters.list() == []
    history = clusters.list(ended=True)
    assert [view.id for view in history] == ids
    assert {path.name for path in clusters.root.iterdir()} == {*ids, ".lock"}
    for view in history:
        size = sum(path.stat().st_size for path in Path(view.directory).rglob("*"))
        assert size < 200_000
        clusters.forget(view.id)
    assert clusters.list(ended=True) == []
    assert {path.name for path in clusters.root.iterdir()} == {".lock"}
