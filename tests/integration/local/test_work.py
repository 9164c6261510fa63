"""One cluster of two workers that computes, grows, shrinks, loses workers and never loses data."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client
from distributed.scheduler import KilledWorker

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import ClusterConflict, InvalidInput, LimitReached, WaitTimeout
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.state.view import ClusterView
from tests.waiting import workers_of

from .conftest import put_profile, start_ready, stop_all
from .driving import client_of, fixed, live_jobs, record_of, until
from .tasks import allocate, double, double_slowly, process_id

MEMORY = 400 * 10**6
LIMIT = 5


@pytest.fixture(scope="module")
def clusters(module_home: Path) -> Iterator[Clusters]:
    found = Clusters()
    yield found
    stop_all(found)


@pytest.fixture(scope="module")
def pair(clusters: Clusters, module_home: Path) -> ClusterView:
    options = "{memory: {type: memory, field: workers.memory_limit}}"
    profile = put_profile(
        module_home,
        "small",
        f"workers: {{threads: 1}}\nlimits: {{workers: {LIMIT}}}\npolicy: {{replacements: 20}}\n"
        f"options: {options}\n",
    )
    return start_ready(clusters, profile, 2, name="pair", options={"memory": str(MEMORY)})


@pytest.fixture
def client(clusters: Clusters, pair: ClusterView, home: Path) -> Iterator[Client]:
    """Connect to the cluster as each test expects it: two workers, all ready."""
    if clusters.get(pair.id).target != fixed(2):
        clusters.update(pair.id, target=fixed(2))
    clusters.wait_ready(pair.id, timeout=60)
    with client_of(pair) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


def workers(client: Client) -> int:
    return len(workers_of(client))


def test_a_started_cluster_says_what_it_is(clusters: Clusters, pair: ClusterView) -> None:
    assert (pair.phase, pair.words) == (Phase.RUNNING, "2 of 2 workers ready")
    assert (pair.name, pair.profile, pair.backend) == ("pair", "small", "local")
    assert pair.unit == "workers"
    assert (pair.threads, pair.memory_limit) == (2, 2 * MEMORY)
    assert pair.encrypted
    assert pair.scheduler_address.startswith("tls://127.0.0.1:")
    assert pair.maximum_workers == LIMIT
    assert [view.id for view in clusters.list()] == [pair.id]


def test_it_computes(client: Client) -> None:
    assert client.gather(client.map(double, range(100))) == list(range(0, 200, 2))


def test_growing_adds_workers_that_compute(
    clusters: Clusters, pair: ClusterView, client: Client
) -> None:
    clusters.update(pair.id, target=fixed(4))
    assert clusters.wait_ready(pair.id, timeout=60).words == "4 of 4 workers ready"
    assert len(set(client.run(process_id).values())) == 4


def test_shrinking_keeps_scattered_and_computed_results_and_lets_tasks_end(
    clusters: Clusters, pair: ClusterView, client: Client
) -> None:
    clusters.update(pair.id, target=fixed(4))
    clusters.wait_ready(pair.id, timeout=60)
    client.wait_for_workers(4, timeout=30)
    scattered = client.scatter(list(range(1000, 1040)))
    computed = client.map(double, range(80))
    client.gather(computed)
    running = client.map(double_slowly, range(4), seconds=2, pure=False)
    until(lambda: sum(map(len, client.processing().values())) == 4)
    replaced = record_of(pair).replaced

    clusters.update(pair.id, target=fixed(1))

    assert client.gather(running) == [0, 2, 4, 6]
    until(lambda: workers(client) == 1)
    assert client.gather(scattered) == list(range(1000, 1040))
    assert client.gather(computed) == list(range(0, 160, 2))
    until(lambda: len(live_jobs(clusters, pair)) == 1)
    assert record_of(pair).replaced == replaced


def test_scaling_to_nothing_and_back(clusters: Clusters, pair: ClusterView, client: Client) -> None:
    view = clusters.update(pair.id, target=fixed(0))
    assert view.target == fixed(0)
    until(lambda: workers(client) == 0 and not live_jobs(clusters, pair))
    until(lambda: clusters.get(pair.id).words == "0 of 0 workers ready")
    waiting = client.submit(double, 21, pure=False)
    clusters.update(pair.id, target=fixed(2))
    assert waiting.result(timeout=60) == 42


def test_a_restart_by_a_client_keeps_the_number_of_workers_and_costs_no_replacement(
    clusters: Clusters, pair: ClusterView, client: Client
) -> None:
    before = set(client.run(process_id).values())
    replaced = record_of(pair).replaced
    client.restart(timeout=60)
    until(lambda: clusters.get(pair.id).workers.ready == 2)
    client.wait_for_workers(2, timeout=30)
    after = set(client.run(process_id).values())
    assert len(after) == 2
    assert not after & before
    assert record_of(pair).replaced == replaced
    assert client.submit(double, 21).result() == 42


def test_a_killed_worker_is_replaced_and_its_death_is_told(
    clusters: Clusters, pair: ClusterView, client: Client
) -> None:
    victim = live_jobs(clusters, pair)[0]
    os.kill(victim.process[0], signal.SIGKILL)
    [dead] = until(lambda: [j for j in clusters.jobs(pair.id) if j.id == victim.id and j.ended])
    clusters.wait_ready(pair.id, timeout=60)
    assert dead.state is JobState.FAILED
    assert "signal 9" in dead.cause
    assert any(e.kind == "lost" and e.job == victim.id for e in clusters.events(pair.id))
    assert victim.id in clusters.why(pair.id)
    assert client.submit(double, 21, pure=False).result() == 42


def test_a_worker_over_its_memory_limit_is_ended_replaced_and_the_cause_told(
    clusters: Clusters, pair: ClusterView, client: Client
) -> None:
    greedy = client.submit(allocate, 3 * MEMORY, pure=False, retries=0)
    with pytest.raises(KilledWorker):
        greedy.result(timeout=120)
    clusters.wait_ready(pair.id, timeout=60)
    dead = [job for job in clusters.jobs(pair.id) if job.state is JobState.OUT_OF_MEMORY]
    assert dead
    assert all("memory limit" in job.cause for job in dead)
    assert "memory limit" in clusters.why(pair.id)
    assert client.submit(double, 21, pure=False).result() == 42


def test_renaming_changes_the_name_alone(clusters: Clusters, pair: ClusterView) -> None:
    assert clusters.update("pair", new_name="other").id == pair.id
    assert clusters.update("other", new_name="pair").name == "pair"
    with pytest.raises(InvalidInput):
        clusters.update("pair", new_name="../x")
    assert clusters.get(pair.id).name == "pair"


@pytest.mark.parametrize(
    "target",
    [fixed(-1), Target(3, 2), fixed(1.5), fixed(True), fixed("2")],  # type: ignore[arg-type]  # what front ends may pass on
)
def test_a_target_that_makes_no_sense_is_refused(
    clusters: Clusters, pair: ClusterView, target: Target
) -> None:
    before = clusters.get(pair.id).target
    with pytest.raises(InvalidInput) as caught:
        clusters.update(pair.id, target=target)
    assert caught.value.detail == "target"
    assert clusters.get(pair.id).target == before


def test_more_workers_than_the_profile_allows_are_refused(
    clusters: Clusters, pair: ClusterView
) -> None:
    with pytest.raises(LimitReached) as caught:
        clusters.update(pair.id, target=fixed(LIMIT + 1))
    assert str(LIMIT) in caught.value.message
    assert caught.value.hint


def test_the_dask_form_of_the_client_code_connects_without_this_package(
    clusters: Clusters, pair: ClusterView, client: Client
) -> None:
    code = clusters.client_code(pair.id)["dask"]
    assert "jupyter_gpucluster" not in code
    names: dict[str, Client] = {}
    exec(code, names)  # noqa: S102  # what a user would run
    with names["client"] as connected:
        assert connected.submit(double, 21).result() == 42


def test_logs_hold_the_head_first_then_every_job(clusters: Clusters, pair: ClusterView) -> None:
    job = live_jobs(clusters, pair)[0]
    text = clusters.logs(pair.id)
    assert text.startswith("==> head.log <==")
    assert f"==> {job.mark}_{job.task}.log <==" in text
    assert "distributed" in clusters.logs(pair.id, job.key)
    assert "head.log" in clusters.logs(pair.id, "head")


def test_waiting_has_an_end(clusters: Clusters, pair: ClusterView) -> None:
    with pytest.raises(WaitTimeout) as caught:
        clusters.wait_stopped(pair.id, timeout=0.2)
    assert caught.value.exit_code == 3


def test_a_living_cluster_cannot_be_forgotten(clusters: Clusters, pair: ClusterView) -> None:
    with pytest.raises(ClusterConflict):
        clusters.forget(pair.id)
    assert clusters.get(pair.id).phase is Phase.RUNNING
