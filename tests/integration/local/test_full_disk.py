"""A cluster on a full disk keeps running, says so, and is saved again as soon as there is room."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.core.lease import LEASE_SECONDS
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.state import control
from jupyter_gpucluster.state.view import ClusterView
from tests.mounting import ROOT_ONLY, fill, fill_inodes, mounted

from .conftest import Start
from .driving import client_of, fixed, head_of, processes_of, record_of, until
from .tasks import double

pytestmark = ROOT_ONLY
OPTIONS = "size=2m,nr_inodes=200,mode=0700"
WORDS = "no space left on device"


def use_all_bytes(place: Path) -> list[Path]:
    fill(place / "filler")
    return [place / "filler"]


@pytest.fixture
def place(clusters: Clusters) -> Iterator[Path]:
    """Put the clusters of this test on a small disk, and stop them before it goes."""
    with mounted(clusters.root, OPTIONS) as small:
        try:
            yield small
        finally:
            for filler in small.glob("filler*"):
                filler.unlink()
            for view in clusters.live():
                clusters.stop(view.id)
                clusters.wait_stopped(view.id, timeout=60)


@contextlib.contextmanager
def kept_full(place: Path, view: ClusterView) -> Iterator[None]:
    """Fill a disk so that it stays full when the cluster's files are removed."""
    kept = place / "filler-kept"
    kept.mkdir()
    for number, path in enumerate(Path(view.directory).rglob("*")):
        if path.is_file():
            os.link(path, kept / str(number))
    fill(place / "filler")
    try:
        yield
    finally:
        (place / "filler").unlink()
        shutil.rmtree(kept)


def verb(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a verb in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "jupyter_gpucluster", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("use_up", [use_all_bytes, fill_inodes])
def test_the_live_head_is_asked_and_the_record_is_current_soon_after_room_is_made(
    clusters: Clusters,
    place: Path,
    start: Start,
    use_up: Callable[[Path], list[Path]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = start(name="k")
    with client_of(view) as client:
        filler = use_up(place)
        scaled = clusters.update(view.id, target=fixed(3))
        assert scaled.target == fixed(3)
        until(lambda: clusters.get("k").unsaved_since)
        # Jobs that could not be put on record are dropped in the turn after the failed write.
        shown = until(lambda: full if (full := clusters.get("k")).phase is Phase.DEGRADED else None)
        assert shown.words.startswith("1 of 3 workers ready")
        assert shown.words.endswith(
            time.strftime("%H:%M: ", time.localtime(shown.unsaved_since)) + WORDS
        )
        assert "Free some space" in shown.reason
        monkeypatch.setattr(control, "OLD_SECONDS", 0.0)  # as after half a minute
        assert [listed.words for listed in clusters.list()] == [shown.words]
        assert "No space left on device" in clusters.why("k")
        assert [job.connected for job in clusters.jobs("k") if job.ended is None] == [True]
        assert record_of(view).target == fixed(1)
        assert client.submit(double, 21).result() == 42
        for path in filler:
            path.unlink()
        until(lambda: record_of(view).target == fixed(3))
        ready = clusters.wait_ready(view.id, timeout=60)
        assert ready.workers.ready == 3
        assert ready.unsaved_since is None
        assert "saved" not in ready.words
        assert all(job.cause == "" for job in clusters.jobs("k"))
        [summary] = [until(lambda: _summary(view, "3 of 3"))]
        assert summary["phase"] == "running"
    events = [event.message for event in clusters.events("k")]
    assert "running" in events[events.index("degraded") :]


def _summary(view: ClusterView, words: str) -> dict[str, str] | None:
    data = json.loads((Path(view.directory) / "summary.json").read_text())
    return data if data["words"].startswith(words) else None


def test_a_verb_that_waits_does_not_succeed_on_a_full_disk(
    clusters: Clusters, place: Path, start: Start
) -> None:
    start(name="k")
    fill(place / "filler")
    scaled = verb("scale", "k", "--workers", "3", "--wait")
    assert scaled.returncode == 1
    assert "1 of 3 workers ready, 2 lost, not saved since" in scaled.stderr
    assert WORDS in verb("why", "k").stdout
    assert "1 ready of 3" in verb("show", "k").stdout
    assert "warning  cluster" in verb("doctor", "k").stdout
    stopped = verb("stop", "k", "--wait")
    assert stopped.returncode == 0
    assert stopped.stdout.strip() == "k: Stopped by you."


def test_a_stop_is_a_stop_where_it_can_never_be_written(
    clusters: Clusters, place: Path, start: Start
) -> None:
    view = start(name="k")
    with kept_full(place, view):
        until(lambda: clusters.update(view.id, target=fixed(2)).unsaved_since)
        stopped = verb("stop", "k", "--wait", "--json")
        assert stopped.returncode == 0, stopped.stderr
        [shown] = json.loads(stopped.stdout)["clusters"]
        assert shown["phase"] == "stopped"
        assert not processes_of(view.id)
        # Another process, and later looks, find it the same.
        for _ in range(2):
            assert clusters.get("k").phase is Phase.STOPPED
        assert record_of(view).phase is not Phase.STOPPED
    assert clusters.get("k").phase is Phase.STOPPED
    assert record_of(view).phase is Phase.STOPPED
    assert record_of(view).reason == "Stopped by you."
    assert not ClusterDirectory(Path(view.directory)).lease.exists()


def test_a_head_that_dies_on_a_full_disk_was_not_stopped(
    clusters: Clusters, place: Path, start: Start
) -> None:
    view = start()
    with kept_full(place, view):
        until(lambda: clusters.update(view.id, target=fixed(2)).unsaved_since)
        os.kill(head_of(view), 9)
        until(lambda: not processes_of(view.id))
        assert clusters.get(view.id).phase is Phase.FAILED
    assert clusters.get(view.id).phase is Phase.FAILED


def test_the_lease_is_renewed_without_a_new_file_and_a_failure_is_shown(
    clusters: Clusters, place: Path, start: Start
) -> None:
    view = start()
    lease = ClusterDirectory(Path(view.directory)).lease
    os.utime(lease, (1, 1))
    filler = fill_inodes(place)
    until(lambda: time.time() - lease.stat().st_mtime < 60, LEASE_SECONDS + 10)
    assert str(lease) not in clusters.get(view.id).reason
    lease.unlink()
    filler += fill_inodes(place, name="filler-more")
    shown = until(lambda: full if (full := clusters.get(view.id)).unsaved_since else None)
    assert WORDS in shown.words
    assert "the cluster runs" in shown.reason
    for path in filler:
        path.unlink()
    until(lambda: clusters.get(view.id).unsaved_since is None)
    until(lease.exists, LEASE_SECONDS + 10)


def test_a_wait_outlasts_a_disk_that_is_full_for_a_moment(
    clusters: Clusters, place: Path, start: Start
) -> None:
    view = start()
    fill(place / "filler")
    clusters.update(view.id, target=fixed(2))
    timer = threading.Timer(2, (place / "filler").unlink)
    timer.start()
    assert clusters.wait_ready(view.id, timeout=60).workers.ready == 2
    timer.join()
    fill(place / "filler")
    clusters.update(view.id, target=fixed(3))
    with pytest.raises(StateError, match="2 of 3 workers ready"):
        clusters.wait_ready(view.id)
