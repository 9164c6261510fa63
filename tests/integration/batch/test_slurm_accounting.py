"""A real Slurm with accounting: how jobs ended that no listing knows, and memory that runs out."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.queue import ProcessRunner, Queue
from jupyter_gpucluster.batch.slurm import Slurm
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import ENDED, Phase
from jupyter_gpucluster.core.job import JobState, JobStatus

from .accounted_slurm import AccountedSlurm
from .conftest import SECONDS, WriteProfile, as_root, fixed, wait_until

EATS = "python3 -c 'import time; x = bytearray(400 * 2**20); time.sleep(60)' || exit 1"
"""Writes to all of it, so that it counts."""
NOBODY = "nobody"


@pytest.fixture(scope="module")
def site() -> Iterator[AccountedSlurm]:
    """Start a Slurm of three nodes with accounting, in place of the one that tests share."""
    with as_root(AccountedSlurm) as slurm:
        yield slurm


@pytest.fixture
def ids(site: AccountedSlurm) -> dict[str, str]:
    """Submit a job for each way to end, see to it that it ends so, and return their ids."""

    def submit(name: str, command: str, *more: str, as_user: str = "") -> str:
        argv = ("sbatch", "--parsable", "-J", name, "-o", "/dev/null", "-D", "/", *more)
        return site.run(*argv, "--mem=50M", "--wrap", command, as_user=as_user).strip()

    def running(*names: str) -> bool:
        listed = site.run("squeue", "-h", "-t", "R", "-o", "%j").split()
        return set(names) <= set(listed)

    ids = {
        "late": submit("late", "sleep 300", "-w", "c1"),
        "done": submit("done", "true"),
        "code": submit("code", "exit 3"),
        "signal": submit("signal", "kill -9 $$"),
        "eater": submit("eater", EATS),
        "theirs": submit("theirs", "sleep 300", as_user=NOBODY),
        "lost": submit("lost", "sleep 300", "--no-requeue", "-w", "c2"),
        "weak": submit("weak", "sleep 300", "--no-requeue", "-p", "scavenge", "-c", "8"),
    }
    site.wait(lambda: running("late", "theirs", "lost", "weak"))
    # Slurm looks for jobs over their time twice a minute.
    site.run("scontrol", "update", f"JobId={ids['late']}", "EndTime=now+1")
    site.run("scancel", ids["theirs"])
    site.run("scontrol", "update", "NodeName=c2", "State=DOWN", "Reason=test")
    ids["strong"] = submit("strong", "true", "-p", "gpu", "-c", "8")
    return ids


def test_accounting_tells_how_each_job_ended(ids: dict[str, str], site: AccountedSlurm) -> None:
    queue = Queue(Slurm(), ProcessRunner({**os.environ, **site.environment}))
    unended = (JobState.PENDING, JobState.RUNNING, JobState.ENDING)
    deadline = time.monotonic() + SECONDS
    told: dict[str, JobStatus] = {}
    while len(told) < len(ids) or any(job.state in unended for job in told.values()):
        assert time.monotonic() < deadline, told
        time.sleep(0.5)
        argv = Slurm().history(list(ids.values())) or []
        told = Slurm().parse_history(asyncio.run(queue.runner.run(argv)))
    ended = {job.mark: (job.state, job.exit_code) for job in told.values()}
    eaten = ended.pop("eater")
    assert ended == {
        "late": (JobState.TIMEOUT, 0),
        "done": (JobState.DONE, 0),
        "code": (JobState.FAILED, 3),
        "signal": (JobState.FAILED, -9),
        "theirs": (JobState.CANCELLED, 0),
        "lost": (JobState.NODE_FAIL, 0),
        "weak": (JobState.PREEMPTED, 0),
        "strong": (JobState.DONE, 0),
    }
    assert eaten[0] is (JobState.OUT_OF_MEMORY if site.limits_memory else JobState.FAILED)
    assert {job.id for job in told.values()} == set(ids.values())
    assert all(job.ended for job in told.values())

    # A submission whose answer was lost is found by its name alone.
    found = asyncio.run(queue.find(["code", "nosuch"]))
    assert found == {ids["code"]: told[ids["code"]]}


def test_a_cluster_whose_jobs_take_too_much_memory_stops_and_says_so(
    clusters: Clusters, home: Path, site: AccountedSlurm, write_profile: WriteProfile
) -> None:
    profile = write_profile(
        "hungry",
        f"""
        job: {{cpus: 1, memory: 100 MiB, walltime: "00:10:00", queue: cpu}}
        environment: {{prologue: ["{EATS}"]}}
        policy: {{replacements: 1}}
        """,
    )
    view = clusters.start(profile, target=fixed(1))
    view = wait_until(clusters, view.id, lambda v: v.phase in ENDED)
    assert view.phase is Phase.FAILED
    first, second = clusters.jobs(view.id)
    if site.limits_memory:
        assert {first.state, second.state} == {JobState.OUT_OF_MEMORY}
    assert "memory" in first.cause
    assert view.reason.startswith("2 workers failed within 10 minutes: ")
    assert "more memory than job.memory" in view.reason
