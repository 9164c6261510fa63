"""Actions of a real Slurm on jobs: refuse, preempt, lose a node, end them at a limit."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.job import Job, JobState

from .conftest import SECONDS, Run, WriteProfile, fixed, wait_until
from .slurm_site import SlurmSite


def test_what_steers_a_user_s_own_commands_hides_no_job_and_no_gpu(
    clusters: Clusters,
    site: SlurmSite,
    write_profile: WriteProfile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steering = {
        "SQUEUE_PARTITION": "short", "SQUEUE_STATES": "SUSPENDED", "SINFO_PARTITION": "cpu",
        "SCANCEL_STATE": "SUSPENDED", "SCANCEL_INTERACTIVE": "1", "SLURM_TIME_FORMAT": "%s",
        "SBATCH_WAIT": "1", "SBATCH_PARTITION": "short",
    }  # fmt: skip
    for name, value in steering.items():
        monkeypatch.setenv(name, value)
    gpus = """
        job: {cpus: 1, memory: 400 MiB, walltime: "00:10:00", queue: gpu, directives: [--hold]}
    """
    profile = write_profile("steered", gpus)
    assert clusters.capacity(profile)["words"] == "gpu: 40 of 40 GPUs free."
    view = clusters.start(profile, target=fixed(2))
    wait_until(
        clusters, view.id, lambda _: [bool(job.id) for job in clusters.jobs(view.id)] == [True] * 2
    )
    first = {job.id for job in clusters.jobs(view.id)}
    # A listing has shown them: it alone says why they wait.
    wait_until(clusters, view.id, lambda v: "Held by you" in v.reason)
    jobs = clusters.jobs(view.id)
    assert {job.id for job in jobs} == first == set(site.queue())
    assert {(job.state, job.missing) for job in jobs} == {(JobState.HELD, 0)}
    site.run("scontrol", "release", *first)
    clusters.wait_ready(view.id, timeout=SECONDS)
    assert {job.id for job in clusters.jobs(view.id)} == first
    # The listing that follows the start says when they end.
    wait_until(clusters, view.id, lambda _: all(job.ends for job in clusters.jobs(view.id)))
    with connect(view.name) as client:
        assert client.submit(lambda: 42).result() == 42


def test_a_preempted_job_waits_and_comes_back(
    clusters: Clusters, site: SlurmSite, run: Run
) -> None:
    view = run('job: {cpus: 8, memory: 500 MiB, walltime: "00:10:00", queue: scavenge}\n')
    nodes = str(site.gpu_nodes)
    better = ["sbatch", "--parsable", "-p", "gpu", "-N", nodes, "-n", nodes, "-c8", "-o/dev/null"]
    winner = site.run(*better, "--wrap", "sleep 60").strip()
    wait_until(clusters, view.id, lambda v: v.workers.ready == 0 and v.workers.pending == 1)
    [job_now] = clusters.jobs(view.id)
    assert job_now.state is JobState.PENDING
    site.run("scancel", winner)
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    assert len(clusters.jobs(view.id)) == 1
    assert ".r1 on " in clusters.logs(view.id)


def test_each_way_to_lose_a_job_has_its_own_words(
    clusters: Clusters, site: SlurmSite, run: Run
) -> None:
    text = """
        job: {cpus: 1, memory: 400 MiB, walltime: "00:10:00", queue: cpu,
              directives: ["--no-requeue"]}
        workers: {extra_args: [--no-nanny, --memory-limit, "0"]}
        policy: {at_walltime: stop, drain_before: null}
    """
    view = run(text, 3)
    first, second, third = clusters.jobs(view.id)
    # Slurm looks for jobs over their time twice a minute: it goes on meanwhile.
    site.run("scontrol", "update", f"JobId={first.id}", "EndTime=now+5")
    with connect(view.name) as client:
        worker = {str(each["name"]): address for address, each in client.scheduler_info()[
            "workers"].items()}[second.key]  # fmt: skip
        eat = client.submit(
            lambda: (b"x" * 900_000_000, __import__("time").sleep(60)), workers=[worker], retries=0
        )
        lost = wait_for_end(clusters, view.id, second)
        eat.cancel()
    assert lost.state in (JobState.OUT_OF_MEMORY, JobState.FAILED)
    assert "memory" in lost.cause
    lost = wait_for_end(clusters, view.id, first)
    assert lost.state is JobState.TIMEOUT
    assert "walltime" in lost.cause
    node = next(job.nodes[0] for job in clusters.jobs(view.id) if job.id == third.id)
    site.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    try:
        lost = wait_for_end(clusters, view.id, third)
        assert lost.state is JobState.NODE_FAIL
        assert "Its node failed" in lost.cause
    finally:
        # It returns by itself (ReturnToService), perhaps it already has.
        site.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
    # What failed is replaced; what had its time is not, as the profile says.
    view = wait_until(clusters, view.id, lambda v: v.workers.ready == v.workers.asked == 2)
    assert view.phase is Phase.RUNNING


def wait_for_end(clusters: Clusters, name: str, job: Job) -> Job:
    def ended() -> Job | None:
        found = (each for each in clusters.jobs(name) if each.id == job.id)
        return next((each for each in found if each.ended is not None), None)

    wait_until(clusters, name, lambda _: ended() is not None)
    found = ended()
    assert found is not None
    return found
