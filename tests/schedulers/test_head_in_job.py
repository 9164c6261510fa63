"""Clusters whose head runs in a batch job: wait, compute, grow, shrink, end; most on Slurm."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.connection import connect
from jupyter_gpucluster.errors import BackendError, ClusterConflict
from jupyter_gpucluster.headclient import Endpoint, ask
from jupyter_gpucluster.records import ENDED, TOKEN_HEADER, JobState, Phase, Target
from jupyter_gpucluster.store import ClusterDirectory

from .conftest import WriteProfile
from .sge_site import SgeSite
from .slurm_site import SlurmSite
from .test_slurm import SECONDS, fixed, wait_until

IN_JOB = """
head: {placement: job}
job: {cpus: 1, memory: 900 MiB, walltime: "00:10:00", queue: cpu}
"""


def status_of(endpoint: Endpoint) -> int:
    """Return what the dashboard answers."""
    connection = http.client.HTTPSConnection(endpoint.host, endpoint.port, context=endpoint.tls())
    connection.request("GET", "/status", headers={TOKEN_HEADER: endpoint.token})
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_head_in_a_job_computes_grows_shrinks_and_ends_last(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    view = clusters.start(write_profile("inside", IN_JOB), target=fixed(1))
    assert view.phase in (Phase.PENDING, Phase.STARTING)
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    [own] = site.queue()
    endpoint = clusters.endpoint(view.id)
    assert endpoint.scheme == "https"
    assert ask(endpoint, "GET", "/gpucluster/summary")["summary"]["workers"]["ready"] == 1
    assert [status_of(replace(endpoint, token=t)) for t in (endpoint.token, "")] == [200, 403]
    with connect(view.name) as client:
        clusters.update(view.id, target=fixed(3))
        clusters.wait_ready(view.id, timeout=SECONDS)
        assert len(site.queue()) == 3
        kept = client.scatter(list(range(30)))
        assert sum(client.gather(client.map(lambda x: x + 1, range(10)))) == 55
        clusters.update(view.id, target=fixed(1))
        wait_until(clusters, view.id, lambda _: site.queue() == [own])
        assert client.gather(kept) == list(range(30))
    assert [clock.name for clock in view.clocks] == ["walltime of the head's job"]
    clusters.stop(view.id)
    ended = clusters.wait_stopped(view.id, timeout=SECONDS)
    assert ended.phase is Phase.STOPPED
    assert site.queue() == []


def test_a_launcher_spreads_the_workers_beside_the_head_over_all_nodes(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    spread = IN_JOB.replace("job: {cpus: 1", "launcher: srun\njob: {nodes: 2, cpus: 2")
    view = clusters.start(write_profile("spread", spread), target=fixed(2))
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    assert len(site.queue()) == 1
    with connect(view.name) as client:
        names = [str(worker["name"]) for worker in client.scheduler_info()["workers"].values()]
    assert sorted(names) == [f"gpc-{view.id}-0_0-n{rank}" for rank in range(2)]
    clusters.update(view.id, target=fixed(0))
    wait_until(clusters, view.id, lambda v: v.workers.ready == 0)
    assert len(site.queue()) == 1, "the head lives on in its job"
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=SECONDS)
    assert site.queue() == []


def test_a_head_that_waits_says_why_and_is_cancelled_by_stop(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    held = IN_JOB.replace("queue: cpu", "queue: cpu, directives: ['--hold']")
    view = clusters.start(write_profile("held", held), target=fixed(1))
    view = wait_until(clusters, view.id, lambda v: "Held by you" in v.reason)
    assert (view.phase, view.workers.pending) == (Phase.PENDING, 1)
    assert [job.state for job in clusters.jobs(view.id)] == [JobState.HELD]
    with pytest.raises(ClusterConflict, match="waits in the queue"):
        clusters.update(view.id, target=fixed(2))
    assert clusters.stop(view.id).phase is Phase.STOPPED
    assert site.queue() == []


def test_a_refused_head_leaves_no_cluster_behind(
    clusters: Clusters, root: Path, write_profile: WriteProfile
) -> None:
    profile = write_profile("nowhere", IN_JOB.replace("queue: cpu", "queue: nosuch"))
    with pytest.raises(BackendError, match="nvalid partition"):
        clusters.start(profile, target=fixed(1))
    assert clusters.list(ended=True) == []


def test_a_job_that_ends_before_its_head_is_up_says_why(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    broken = IN_JOB + "environment: {prologue: ['nosuchcommand || exit 3']}\n"
    view = clusters.start(write_profile("broken", broken), target=fixed(1))
    view = wait_until(clusters, view.id, lambda v: v.phase in ENDED)
    assert view.phase is Phase.FAILED
    for part in ("before the head was up", "exit code 3", "nosuchcommand: command not found"):
        assert part in view.reason


def test_a_head_that_is_killed_in_its_job_is_found_by_whoever_looks(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    view = clusters.start(write_profile("inside", IN_JOB), target=fixed(2))
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    head = ClusterDirectory(Path(view.directory)).read_record().head
    assert head is not None
    os.kill(head.pid, signal.SIGKILL)
    over = wait_until(clusters, view.id, lambda v: v.phase in ENDED)
    assert over.phase is Phase.FAILED
    assert "with the head" in over.reason
    clusters.wait_stopped(view.id, timeout=SECONDS)
    assert site.queue() == []


def test_a_head_whose_job_is_requeued_is_not_continued_and_says_so(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    view = clusters.start(write_profile("inside", IN_JOB), target=Target(0, 2))
    # An adaptive cluster keeps the workers of its head's job.
    view = wait_until(clusters, view.id, lambda v: v.workers.ready == 1)
    head = ClusterDirectory(Path(view.directory)).read_record().head
    site.run("scontrol", "requeue", *site.queue())
    over = wait_until(clusters, view.id, lambda v: v.phase in ENDED)
    assert over.phase is Phase.STOPPED
    assert "The head's job was told to end (SIGTERM): cancelled, requeued" in over.reason
    # It starts once more, finds that its cluster is over, and ends at once.
    wait_until(clusters, view.id, lambda _: site.queue() == [])
    assert ClusterDirectory(Path(view.directory)).read_record().head == head


def commands_but_slurms(home: Path) -> str:
    """Return a prologue for a node that has all commands but those of Slurm."""
    place = home / "bin"
    place.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name not in ("sbatch", "squeue", "scancel", "sacct"):
            (place / program.name).symlink_to(program)
    return f"environment: {{prologue: ['export PATH={place}']}}\n"


def test_a_head_on_a_node_without_sbatch_says_that_it_cannot_grow(
    clusters: Clusters, home: Path, site: SlurmSite, write_profile: WriteProfile
) -> None:
    profile = write_profile("bare", IN_JOB + commands_but_slurms(home))
    view = clusters.start(profile, target=fixed(1))
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    clusters.update(view.id, target=fixed(2))
    view = wait_until(clusters, view.id, lambda v: "cannot grow" in v.reason)
    assert "head.submit: relay" in view.reason
    assert view.workers.ready == 1
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=SECONDS)
    assert site.queue() == []


def test_a_relay_submits_and_cancels_for_a_head_on_a_node_without_sbatch(
    clusters: Clusters, home: Path, site: SlurmSite, write_profile: WriteProfile
) -> None:
    relayed = IN_JOB.replace("placement: job", "placement: job, submit: relay")
    profile = write_profile("relayed", relayed + commands_but_slurms(home))
    view = clusters.start(profile, target=fixed(2))
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    assert len(site.queue()) == 2
    relay = ClusterDirectory(Path(view.directory)).read_relay()
    assert relay is not None
    os.kill(relay.pid, signal.SIGKILL)
    begun = Path(view.directory) / ".relay.begun"
    os.utime(begun, (0, 0))
    clusters.update(view.id, target=fixed(1))
    wait_until(clusters, view.id, lambda _: len(site.queue()) == 1)
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=SECONDS)
    assert site.queue() == []


@pytest.fixture
def on_grid_engine(
    home: Path, grid_engine: SgeSite, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Clusters]:
    """Return the clusters of this test's home, on a real Grid Engine."""
    for name, value in grid_engine.environment.items():
        monkeypatch.setenv(name, value)
    mine = Clusters()
    yield mine
    for view in mine.live():
        mine.stop(view.id)
        mine.wait_stopped(view.id, timeout=60)


def test_a_head_in_a_job_of_grid_engine_grows_and_shrinks_through_the_relay(
    home: Path, grid_engine: SgeSite, on_grid_engine: Clusters, write_profile: WriteProfile
) -> None:
    job = 'job: {walltime: "00:10:00", queue: all.q}'
    profile = write_profile("relayed", f"head: {{placement: job, submit: relay}}\n{job}\n")
    path = home / f"data/gpucluster/profiles/{profile}.yaml"
    path.write_text(path.read_text().replace("backend: slurm", "backend: sge"))
    clusters = on_grid_engine
    view = clusters.wait_ready(clusters.start(profile, target=fixed(1)).id, timeout=SECONDS)
    [own] = grid_engine.queue()
    with connect(view.name) as client:
        clusters.update(view.id, target=fixed(3))
        clusters.wait_ready(view.id, timeout=SECONDS)
        assert len(grid_engine.queue()) == 3
        kept = client.scatter(list(range(30)))
        clusters.update(view.id, target=fixed(1))
        wait_until(clusters, view.id, lambda v: "leaving" not in v.words)
        assert grid_engine.queue() == [own]
        assert client.gather(kept) == list(range(30))
    states = [(job.state, bool(job.nodes)) for job in clusters.jobs(view.id)]
    assert states == [(JobState.RUNNING, True), *[(JobState.CANCELLED, True)] * 2]
    clusters.stop(view.id)
    assert clusters.wait_stopped(view.id, timeout=SECONDS).phase is Phase.STOPPED
    assert grid_engine.queue() == []
