"""Processes that are stopped (SIGSTOP) are told as such, and can be ended or go on."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import BackendUnavailable, HeadUnreachable
from jupyter_gpucluster.state import control_client
from jupyter_gpucluster.state.view import ClusterView

from .conftest import Start, StartHead
from .driving import client_of, ended, fixed, head_of, job_server_of, processes_of, until
from .tasks import double


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stop processes for a while; a thread of theirs may still run just after the signal."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: all(state_of(task) == b"T" for pid in pids for task in tasks_of(pid)))
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def tasks_of(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def state_of(task: Path) -> bytes:
    """Return the letter of a thread's state, `T` when it is stopped."""
    return (task / "stat").read_bytes().rpartition(b")")[2].split()[0]


def age(view: ClusterView, seconds: float) -> None:
    """Let a head appear not to have renewed its lease for so long."""
    lease = Path(view.directory) / "lease"
    then = lease.stat().st_mtime - seconds
    os.utime(lease, (then, then))


def test_a_stopped_head_is_unreachable_until_it_goes_on(
    clusters: Clusters, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_client, "REMEMBERED_SECONDS", 3.0)
    view = start()
    head = head_of(view)
    with stopped(head):
        age(view, 60)
        begun = time.monotonic()
        [seen] = clusters.list()
        assert time.monotonic() - begun < 3.0
        assert seen.phase is Phase.UNREACHABLE
        assert str(head) in seen.reason
        assert f"stop --force {view.name}" in seen.reason
        assert clusters.get(view.id).phase is Phase.UNREACHABLE
        begun = time.monotonic()
        assert clusters.list()[0].phase is Phase.UNREACHABLE  # what was seen is remembered
        assert time.monotonic() - begun < 1.0
    until(lambda: clusters.list()[0].phase is Phase.RUNNING)
    with client_of(view) as client:
        assert client.submit(double, 21).result(timeout=30) == 42


def test_a_head_that_answers_is_reachable_however_old_its_lease(
    clusters: Clusters, start: Start
) -> None:
    view = start()
    age(view, 100)
    assert clusters.get(view.id).phase is Phase.RUNNING
    assert [seen.phase for seen in clusters.list()] == [Phase.RUNNING]


def test_many_stopped_heads_are_asked_at_once(clusters: Clusters, start_head: StartHead) -> None:
    views = [start_head() for _ in range(4)]
    with stopped(*map(head_of, views)):
        for view in views:
            age(view, 60)
        begun = time.monotonic()
        assert {view.phase for view in clusters.list()} == {Phase.UNREACHABLE}
        assert time.monotonic() - begun < 5.0
        for view in views:
            assert clusters.stop(view.id, force=True).phase is Phase.STOPPED
        until(lambda: not any(processes_of(view.id) for view in views))


@pytest.mark.usefixtures("impatient")
def test_a_stopped_head_and_job_server_can_be_ended_by_force(
    clusters: Clusters, start: Start
) -> None:
    view = start(workers=2)
    with stopped(head_of(view), job_server_of(view)):
        with pytest.raises(HeadUnreachable) as caught:
            clusters.stop(view.id)
        assert "stop --force" in caught.value.hint
        over = clusters.stop(view.id, force=True)
        assert (over.phase, over.reason) == (Phase.STOPPED, "Stopped by force.")
        until(lambda: not processes_of(view.id))


def test_a_stopped_job_server_is_told_to_who_scales(clusters: Clusters, start: Start) -> None:
    view = start()
    server = job_server_of(view)
    with stopped(server):
        with pytest.raises(BackendUnavailable) as caught:
            clusters.update(view.id, target=fixed(2))
        assert f"kill -CONT {server}" in caught.value.hint
        until(lambda: clusters.get(view.id).stale_since)
        assert f"kill -CONT {server}" in clusters.get(view.id).reason
    assert clusters.wait_ready(view.id, timeout=60).target == fixed(2)
    until(lambda: clusters.get(view.id).stale_since is None)
    assert clusters.get(view.id).workers.ready == 2
    assert not clusters.get(view.id).reason


def test_a_cluster_with_a_stopped_job_server_can_be_stopped(
    clusters: Clusters, start: Start
) -> None:
    view = start(workers=2)
    with stopped(job_server_of(view)):
        clusters.stop(view.id)
        assert clusters.wait_stopped(view.id, timeout=60).phase is Phase.STOPPED
        until(lambda: ended(clusters, view))


def test_a_head_that_dies_while_it_is_asked_to_stop_has_stopped(
    clusters: Clusters, start_head: StartHead
) -> None:
    view = start_head()
    head = head_of(view)
    with stopped(head), ThreadPoolExecutor(1) as thread:
        stop = thread.submit(clusters.stop, view.id)
        until(lambda: (Path(view.directory) / "asked-to-stop").exists())
        time.sleep(0.5)
        os.kill(head, signal.SIGKILL)
        assert stop.result().phase is Phase.STOPPED
    over = until(lambda: ended(clusters, view))
    assert over.phase is Phase.STOPPED
    assert "while the cluster stopped" in over.reason


@pytest.mark.usefixtures("impatient")
def test_a_stop_that_came_to_nothing_is_forgotten(
    clusters: Clusters, start_head: StartHead
) -> None:
    view = start_head()
    head = head_of(view)
    with stopped(head), pytest.raises(HeadUnreachable):
        clusters.stop(view.id)
    assert not (Path(view.directory) / "asked-to-stop").exists()
