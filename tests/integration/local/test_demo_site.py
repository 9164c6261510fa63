"""Clusters on the simulated site: real processes, a pushed clock."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.core.summary import Loss
from jupyter_gpucluster.head.simulator import site as site_rules
from jupyter_gpucluster.profiles.search import DEMO_SWITCH
from jupyter_gpucluster.state.view import ClusterView
from tests.waiting import workers_of

from .driving import client_of, ended, fixed, head_of, job_server_of, live_jobs, until


@pytest.fixture(autouse=True)
def demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEMO_SWITCH, "1")


def push(clusters: Clusters, seconds: float) -> None:
    with site_rules.opened(site_rules.site_file(clusters.root)) as site:
        site[0] = replace(site[0], pushed=site[0].pushed + seconds)


def jobs_of_the_site(clusters: Clusters) -> list[str]:
    with site_rules.opened(site_rules.site_file(clusters.root)) as site:
        return [job.id for job in site[0].jobs]


def reach(clusters: Clusters, view: ClusterView, words: str) -> ClusterView:
    """Wait until the cluster says something."""

    def said() -> ClusterView | None:
        found = clusters.get(view.id)
        return found if words in found.reason else None

    return until(said)


def test_a_busy_queue_makes_a_cluster_wait_with_reasons_and_run_simulated_gpus(
    clusters: Clusters,
) -> None:
    view = clusters.start("demo-busy", target=fixed(4))
    waiting = reach(clusters, view, "Other jobs are before it")
    assert waiting.phase is Phase.PENDING
    assert waiting.simulated
    assert "simulated GPUs" in waiting.words
    assert "simulation" in waiting.title
    push(clusters, 30)
    reach(clusters, view, "Next in line")
    push(clusters, 30)
    ready = clusters.wait_ready(view.id, timeout=60)
    assert (ready.unit, ready.workers.ready, ready.threads, ready.gpus) == ("GPUs", 4, 4, ())
    with client_of(ready) as client:
        assert client.submit(sum, [40, 2]).result(timeout=30) == 42
        names = {w["name"] for w in workers_of(client).values()}
    assert clusters.capacity("demo-busy")["words"] == "10 of 16 simulated GPUs are free."
    [job] = live_jobs(clusters, view)
    assert names == {f"{job.mark}_0-{number}" for number in range(4)}
    # The head dies: nothing of it stays, neither processes nor held GPUs.
    os.kill(head_of(view), signal.SIGKILL)
    assert until(lambda: ended(clusters, view)).phase is Phase.FAILED
    until(lambda: jobs_of_the_site(clusters) == [])  # its job server ends a moment later


def test_a_failed_node_is_told_first_with_what_was_lost_and_what_replaces_it(
    clusters: Clusters,
) -> None:
    view = clusters.start("demo-quick", target=fixed(4))
    until(lambda: jobs_of_the_site(clusters))
    push(clusters, 5)
    ready = clusters.wait_ready(view.id, timeout=60)
    assert ready.loss is None
    nodes = {node for job in clusters.jobs(view.id) for node in job.nodes}
    with site_rules.opened(site_rules.site_file(clusters.root)) as site:
        for node in nodes:
            site[0] = site_rules.fail_node(site[0], node, 3600)

    def lost() -> Loss | None:
        found = clusters.get(view.id).loss
        return found if found and found.workers == 4 and found.waiting == 4 else None

    loss = until(lost)
    assert (set(loss.nodes), loss.unit, loss.state) == (nodes, "GPUs", JobState.NODE_FAIL)
    assert loss.connected
    push(clusters, 5)
    clusters.wait_ready(view.id, timeout=60)
    replaced = until(lambda: clusters.get(view.id).loss)
    assert (replaced.time, replaced.waiting, replaced.replaced) == (loss.time, 0, 4)
    clusters.stop(view.id)
    counts = until(lambda: clusters.get(view.id))
    assert counts.workers.lost == 0


def test_a_preempted_job_comes_back_under_another_worker_s_name(clusters: Clusters) -> None:
    view = clusters.start("demo-preempt", target=fixed(1))
    until(lambda: jobs_of_the_site(clusters))
    push(clusters, 5)
    clusters.wait_ready(view.id, timeout=60)
    push(clusters, 60)
    reach(clusters, view, "higher priority took its place")
    push(clusters, 5)
    clusters.wait_ready(view.id, timeout=60)
    [job] = clusters.jobs(view.id)
    loss = clusters.get(view.id).loss
    assert loss is not None
    assert (loss.requeued, loss.workers) == (True, 1)
    with client_of(clusters.get(view.id)) as client:
        [worker] = workers_of(client).values()
    assert worker["name"] == f"{job.mark}_0.r1"
    os.kill(job_server_of(view), signal.SIGKILL)
    # The jobs of the next job server are others.
    until(lambda: any(other.mark != job.mark for other in live_jobs(clusters, view)))
    clusters.stop(view.id)
    assert clusters.wait_stopped(view.id, timeout=60).phase is Phase.STOPPED
    until(lambda: ended(clusters, view))
    until(lambda: jobs_of_the_site(clusters) == [])


def test_a_budget_of_gpu_hours_warns_and_then_stops_the_cluster(
    clusters: Clusters, home: Path
) -> None:
    profile = home / "data" / "gpucluster" / "profiles" / "frugal.yaml"
    profile.parent.mkdir(parents=True)
    profile.write_text(
        "title: Frugal\nbackend: demo\njob: {gpus: 2, walltime: 10 h, queue: batch}\n"
        "policy: {gpu_hours: 2}\n"
    )
    view = clusters.start("frugal", target=fixed(2))
    assert (view.title, view.gpu_hours_estimate) == ("Frugal (simulation)", 2.0)
    until(lambda: jobs_of_the_site(clusters))
    push(clusters, 60)
    ready = clusters.wait_ready(view.id, timeout=60)
    assert "budget of 2 GPU-hours" in [clock.name for clock in ready.clocks]
    push(clusters, 0.85 * 3600)
    warning = "1.7 of 2 GPU-hours are used; the cluster stops when all are"
    until(lambda: warning in [event.message for event in clusters.events(view.id)])
    push(clusters, 0.15 * 3600)
    stopped = until(lambda: ended(clusters, view))
    assert (stopped.phase, stopped.reason) == (Phase.STOPPED, "Budget of 2 GPU-hours reached.")
    assert stopped.gpu_hours == pytest.approx(2, abs=0.05)


def test_refusals_and_broken_environments_are_told_with_their_words(clusters: Clusters) -> None:
    refused = clusters.start("demo-refused")
    broken = clusters.start("demo-broken")
    until(lambda: jobs_of_the_site(clusters))
    push(clusters, 5)
    reason = until(lambda: ended(clusters, refused)).reason
    # What the site said becomes a sentence, and what to change follows it.
    assert "exceeds the limit 00:30:00 of queue debug. Ask for a shorter walltime" in reason
    until(lambda: len(clusters.jobs(broken.id)) == 2 and jobs_of_the_site(clusters))
    push(clusters, 5)
    failed = until(lambda: ended(clusters, broken))
    assert failed.phase is Phase.FAILED
    assert "cuda-99.sh" in failed.reason
