"""Clusters on Slurm whose head runs in a batch job: wait, compute, grow, shrink, end."""

from __future__ import annotations

import http.client
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import ENDED, TOKEN_HEADER, Phase, Target
from jupyter_gpucluster.core.errors import BackendError, ClusterConflict
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.state.control_client import Endpoint, ask

from .conftest import SECONDS, Run, WriteProfile, fixed, wait_until
from .slurm_site import SlurmSite

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
    assert endpoint.url("").startswith("https:")
    assert ask(endpoint, "GET", "/gpucluster/summary")["summary"]["workers"]["ready"] == 1
    assert [status_of(replace(endpoint, token=t)) for t in (endpoint.token, "")] == [200, 403]
    written = json.loads((Path(view.directory) / "scheduler.json").read_text())
    assert written["gpucluster"] == {"job": own}
    with connect(view.name) as client:
        clusters.update(view.id, target=fixed(3))
        clusters.wait_ready(view.id, timeout=SECONDS)
        assert len(site.queue()) == 3
        kept = client.scatter(list(range(30)))
        assert sum(client.gather(client.map(lambda x: x + 1, range(10)))) == 55
        clusters.update(view.id, target=fixed(1))
        wait_until(clusters, view.id, lambda _: site.queue() == [own])
        assert client.gather(kept) == list(range(30))
    assert [clock.name for clock in view.clocks] == ["walltime of the scheduler's job"]
    clusters.stop(view.id)
    ended = clusters.wait_stopped(view.id, timeout=SECONDS)
    assert ended.phase is Phase.STOPPED
    assert site.queue() == []


STANDS_FOR_DASK_CUDA = """
from distributed.cli.dask_worker import main
if __name__ == "__main__":
    main()
"""


def devices() -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]


def test_a_head_has_a_gpu_of_its_own_beside_those_of_its_workers(
    clusters: Clusters, home: Path, site: SlurmSite, run: Run
) -> None:
    package = home / "modules/dask_cuda"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(STANDS_FOR_DASK_CUDA)
    text = f"""
        head: {{placement: job, gpus: 1}}
        job: {{gpus: 1, cpus: 2, memory: 1 GiB, walltime: "00:10:00", queue: gpu}}
        environment: {{variables: {{PYTHONPATH: "{package.parent}"}}}}
    """
    view = run(text)
    with connect(view.name) as client:
        theirs, own = client.run(devices), client.run_on_scheduler(devices)
    [card] = theirs.values()
    assert {card, own} == {"0", "1"}
    [given] = site.run("squeue", "-h", "-o", "%b").split()
    assert given.endswith("gpu:2")


def test_a_launcher_spreads_the_workers_beside_the_head_over_all_nodes(
    clusters: Clusters, site: SlurmSite, run: Run
) -> None:
    spread = IN_JOB.replace("job: {cpus: 1", "launcher: srun\njob: {nodes: 2, cpus: 2")
    view = run(spread, 2)
    assert len(site.queue()) == 1
    with connect(view.name) as client:
        names = [str(worker["name"]) for worker in client.scheduler_info()["workers"].values()]
    assert sorted(names) == [f"gpc-{view.id}-0_0-n{rank}" for rank in range(2)]
    clusters.update(view.id, target=fixed(0))
    wait_until(clusters, view.id, lambda v: v.workers.ready == 0)
    assert len(site.queue()) == 1, "the head lives on in its job"


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


def test_a_head_that_is_killed_in_its_job_is_found_by_whoever_looks(
    clusters: Clusters, site: SlurmSite, run: Run
) -> None:
    view = run(IN_JOB, 2)
    head = ClusterDirectory(Path(view.directory)).read_record().head
    assert head is not None
    os.kill(head.pid, signal.SIGKILL)
    over = wait_until(clusters, view.id, lambda v: v.phase in ENDED)
    assert over.phase is Phase.FAILED
    assert "with the scheduler" in over.reason
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
    assert "The scheduler's job has to end (SIGTERM): cancelled, requeued" in over.reason
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
    clusters: Clusters, home: Path, site: SlurmSite, run: Run
) -> None:
    view = run(IN_JOB + commands_but_slurms(home))
    clusters.update(view.id, target=fixed(2))
    view = wait_until(clusters, view.id, lambda v: "cannot grow" in v.reason)
    assert "head.submit: relay" in view.reason
    assert view.workers.ready == 1


def test_a_relay_submits_and_cancels_for_a_head_on_a_node_without_sbatch(
    clusters: Clusters, home: Path, site: SlurmSite, run: Run
) -> None:
    relayed = IN_JOB.replace("placement: job", "placement: job, submit: relay")
    view = run(relayed + commands_but_slurms(home), 2)
    assert len(site.queue()) == 2
    relay = ClusterDirectory(Path(view.directory)).read_relay()
    assert relay is not None
    os.kill(relay.pid, signal.SIGKILL)
    begun = Path(view.directory) / ".relay.begun"
    os.utime(begun, (0, 0))
    clusters.update(view.id, target=fixed(1))
    wait_until(clusters, view.id, lambda _: len(site.queue()) == 1)
