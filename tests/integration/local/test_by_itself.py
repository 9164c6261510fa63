"""A cluster acts by itself: it adapts, ends at its deadlines, and explains why it gives up."""

from __future__ import annotations

import time

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import GpuClusterError

from .conftest import Start, WriteProfile
from .driving import client_of, ended, fixed, live_jobs, traces_of, until
from .tasks import double, double_slowly


def test_an_adaptive_cluster_grows_with_the_work_and_shrinks_after_it(
    clusters: Clusters, start: Start, write_profile: WriteProfile
) -> None:
    view = start(write_profile("slim", "workers: {threads: 1}\n"), target=Target(1, 3))
    assert view.words == "1 of 1 worker ready"
    with client_of(view) as client:
        kept = client.submit(double, 21)
        assert kept.result() == 42
        work = client.map(double_slowly, range(30), seconds=0.5, pure=False)
        until(lambda: clusters.get(view.id).workers.ready == 3)
        assert client.gather(work) == list(range(0, 60, 2))
        until(lambda: len(live_jobs(clusters, view)) == 1)
        assert kept.result() == 42
        assert not any(e.kind == "lost" for e in clusters.events(view.id))


def test_an_adaptive_cluster_may_start_from_nothing(clusters: Clusters, start: Start) -> None:
    view = start(target=Target(0, 2))
    until(lambda: clusters.get(view.id).words == "0 of 0 workers ready")
    with client_of(view) as client:
        assert client.submit(double, 21).result(timeout=60) == 42
        until(lambda: not live_jobs(clusters, view))
    clusters.update(view.id, target=fixed(1))
    assert clusters.wait_ready(view.id, timeout=60).words == "1 of 1 worker ready"


def test_an_idle_cluster_ends_but_not_while_a_task_runs(
    clusters: Clusters, start: Start, write_profile: WriteProfile
) -> None:
    view = start(write_profile("idle", "policy: {idle_timeout: 3 s}\n"))
    with client_of(view) as client:
        began = time.time()
        assert client.submit(double_slowly, 21, seconds=5).result() == 42
        [clock] = clusters.get(view.id).clocks
        assert (clock.name, clock.seconds) == ("idle time-out", 3)
        until(lambda: clusters.get(view.id).phase in (Phase.STOPPING, Phase.STOPPED))
        assert time.time() - began > 8
    over = until(lambda: ended(clusters, view))
    assert over.phase is Phase.STOPPED
    assert over.reason == "Idle time-out reached."


def test_a_kept_cluster_has_another_hour(
    clusters: Clusters, start: Start, write_profile: WriteProfile
) -> None:
    view = start(write_profile("idle", "policy: {idle_timeout: 20 min}\n"))

    def ends() -> float:
        return clusters.get(view.id).clocks[0].ends or 0.0

    until(lambda: 0 < ends() - time.time() <= 1200)
    clusters.update(view.id, keep=True)
    until(lambda: 3500 < ends() - time.time() <= 3600)


def test_a_cluster_without_a_client_ends_but_not_while_one_is_connected(
    clusters: Clusters, start: Start, write_profile: WriteProfile
) -> None:
    view = start(write_profile("alone", "policy: {no_client_timeout: 4 s}\n"))
    with client_of(view):
        until(lambda: clusters.get(view.id).clocks[0].ends is None)
        time.sleep(5)
        assert clusters.get(view.id).phase is Phase.RUNNING
    over = until(lambda: ended(clusters, view))
    assert over.reason == "Time-out without a client reached."


def test_a_cluster_ends_with_its_maximum_lifetime_whatever_runs(
    clusters: Clusters, start: Start, write_profile: WriteProfile
) -> None:
    view = start(write_profile("mortal", "policy: {max_lifetime: 8 s}\n"))
    [clock] = view.clocks
    assert clock.ends == view.created + 8
    assert "maximum lifetime" in clusters.why(view.id)
    client = client_of(view)
    task = client.submit(double_slowly, 1, seconds=600)
    over = until(lambda: ended(clusters, view))
    assert (over.phase, over.reason) == (Phase.STOPPED, "Maximum lifetime reached.")
    del task
    client.close(timeout=0.5)


def test_a_cluster_ends_with_its_scheduler_when_a_client_shuts_that_down(
    clusters: Clusters, start: Start
) -> None:
    view = start()
    with client_of(view) as client:
        client.shutdown()
    over = until(lambda: ended(clusters, view))
    assert over.phase is Phase.STOPPED
    assert over.reason.startswith("Its scheduler was shut down")
    assert not any(e.kind == "lost" for e in clusters.events(view.id))
    assert not traces_of(view.id)


def test_what_nobody_foresaw_in_a_submission_ends_the_cluster_in_words(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE", "'95%'")
    view = clusters.start("local", target=fixed(1))
    over = until(lambda: ended(clusters, view))
    assert over.phase is Phase.FAILED
    assert over.reason.startswith("The submission failed: ")


def test_workers_that_die_at_once_end_the_cluster_with_their_log_s_error(
    clusters: Clusters, write_profile: WriteProfile
) -> None:
    variables = "{DASK_DISTRIBUTED__WORKER__PRELOAD: '[\"no.such.module\"]'}"
    hollow = write_profile("hollow", f"environment:\n  variables: {variables}\n")
    view = clusters.start(hollow, target=fixed(2))
    over = until(lambda: ended(clusters, view), 60)
    assert over.phase is Phase.FAILED
    assert "within 10 minutes" in over.reason
    assert "ModuleNotFoundError: No module named 'no'" in over.reason
    assert "No module named" in clusters.why(view.id)
    with pytest.raises(GpuClusterError) as caught:
        clusters.wait_ready(view.id, timeout=5)
    assert over.reason in caught.value.message
    assert "logs" in caught.value.hint
    assert not traces_of(view.id)


def test_a_python_that_breaks_in_the_workers_environment_ends_the_cluster_in_words(
    clusters: Clusters, write_profile: WriteProfile
) -> None:
    broken = "environment:\n  variables: {PYTHONHOME: /no/such/place}\n"
    view = clusters.start(write_profile("broken", broken), target=fixed(1))
    over = until(lambda: ended(clusters, view), 60)
    assert over.phase is Phase.FAILED
    assert "job server" in over.reason
    assert "encodings" in clusters.logs(view.id, "head")
