"""A cluster whose directory was removed ends by itself; one whose disk was unmounted does not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.head.state_files import GONE_SECONDS
from jupyter_gpucluster.host.processes import is_alive

from .conftest import Start, start_ready
from .driving import command_of, processes_of, record_of, until

ENOUGH = GONE_SECONDS + 30.0
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a file system")


@pytest.fixture
def mounted(home: Path) -> Iterator[Path]:
    """Mount a file system in memory, which the test unmounts."""
    place = home / "mounted"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=False, stderr=subprocess.DEVNULL)


@ROOT_ONLY
def test_only_a_removed_directory_ends_its_cluster(
    clusters: Clusters, start: Start, mounted: Path
) -> None:
    removed, renamed, kept = start(), start(), start()
    elsewhere = start_ready(Clusters(mounted / "clusters"))
    place, head = Path(renamed.directory), record_of(elsewhere).head
    assert head is not None
    workers = processes_of(removed.id)
    try:
        shutil.rmtree(removed.directory)
        place.rename(place.with_name("renamed"))
        Path(kept.directory).rename(place.with_name("for-a-while"))
        subprocess.run(["umount", "--lazy", mounted], check=True)
        # Nobody can find them now, except among the orphans.
        orphans = {int(line.split()[1]) for line in clusters.orphans()}
        assert orphans >= {pid for pid in workers if b"\0head\0" in command_of(pid)}
        place.with_name("for-a-while").rename(Path(kept.directory))
        until(lambda: not any(command_of(pid) for pid in workers), ENOUGH)
        until(lambda: not processes_of(removed.id) and not processes_of(renamed.id))
        assert clusters.get(kept.id).phase is Phase.RUNNING
        assert is_alive(head)
    finally:
        os.kill(head.pid, signal.SIGKILL)
        until(lambda: not processes_of(elsewhere.id))
