"""Stories of a head that runs in one of its cluster's jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch.cancel import cancel_jobs_of
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.core.job import CommandResult, Job, JobState, JobStatus
from jupyter_gpucluster.head.own_job import OwnJob
from jupyter_gpucluster.head.process import begin_in_job
from jupyter_gpucluster.head.reconcile.model import Cancel, Reported, Retire, Submit
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.processes import this_process

from ..world import ID, Play, a_record, finished

OWN, FURTHER = f"gpc-{ID}-0", f"gpc-{ID}-1"
HOUR = 3600


def in_job(workers: int, **options: Any) -> Play:
    """Return a cluster whose head is up in a job, whose worker is there."""
    play = Play(workers, **options)
    play.queue.jobs["70"] = JobStatus("70", JobState.RUNNING, OWN, 0, started=1000.0)
    play.workers = {f"{OWN}_0": 1}
    job = Job(OWN, 0, JobState.RUNNING, id="70", started=1000.0)
    spec = replace(play.record.spec, backend="slurm", in_job=True)
    play.record = replace(play.record, spec=spec, jobs=(job,), phase=Phase.PENDING)
    return play


def test_the_job_of_the_head_counts_and_more_are_further_jobs() -> None:
    play = in_job(1)
    assert play.step() == []
    assert play.phase() is Phase.RUNNING
    play.desired = 3
    assert play.step() == [Submit(FURTHER, 2)]


def test_the_workers_of_the_heads_job_leave_last() -> None:
    play = in_job(2)
    play.get_ready()
    play.desired = 1
    play.volunteers = (f"{OWN}_0", f"{FURTHER}_0")
    assert play.step() == [Retire((f"{FURTHER}_0",))]
    play.retired.add(f"{FURTHER}_0")
    assert play.step() == [Cancel((play.job(f"{FURTHER}_0").id,))]
    play.desired = 0
    assert play.step() == [Cancel(("70",))]


def test_adapting_keeps_the_workers_of_the_heads_job() -> None:
    play = in_job(2)
    play.record = replace(play.record, target=Target(0, 2))
    play.get_ready()
    play.desired = 0
    assert play.step() == [Cancel((play.job(f"{FURTHER}_0").id,))]
    assert play.step() == []
    assert play.alive() == [f"{OWN}_0"]


def test_workers_of_the_heads_job_that_died_are_replaced_by_a_further_job() -> None:
    play = in_job(1)
    play.step()
    play.die(f"{OWN}_0")
    assert play.step() == [Submit(FURTHER, 1)]


def test_the_heads_job_does_not_come_back_that_is_listed_for_the_sake_of_the_head(
    root: Path,
) -> None:
    play, own = in_job(1), OwnJob(ClusterDirectory(root), 0)
    play.step()
    play.workers.clear()
    submitted = []
    for _ in range(3):
        told = own.add_to(Reported(listing=play.queue.listing()), play.record)
        submitted += [act for act in play.step(listing=told.listing) if isinstance(act, Submit)]
        assert "was found again" not in " ".join(play.notes)
    assert submitted == [Submit(FURTHER, 1)]
    assert play.job(f"{OWN}_0").state is JobState.FAILED


def test_the_cluster_stops_before_the_walltime_of_the_heads_job_and_asks_for_no_successor() -> None:
    play = in_job(1, walltime=HOUR)
    play.step(HOUR - 70)
    assert [submission for submission in play.step() if isinstance(submission, Submit)] == []
    play.step(20)
    assert play.record.stop_requested is not None
    assert "Walltime of the scheduler's job reached" in play.record.reason
    assert finished(play.step())
    assert play.phase() is Phase.STOPPED


def test_a_job_that_was_started_again_is_not_taken_for_the_first_one(root: Path) -> None:
    directory = ClusterDirectory(root)
    record = a_record()
    begun = begin_in_job(directory, record, root / "scratch")
    assert begun.spec.scratch == str(root / "scratch")
    with pytest.raises(StateError, match="restarted the scheduler's job"):
        begin_in_job(directory, replace(record, head=this_process()), root / "scratch")


def test_a_head_that_fails_cancels_all_jobs_but_the_one_that_it_is_in() -> None:
    play = in_job(2)
    play.step()
    play.step()
    cancelled: list[str] = []

    class Site:
        """A Slurm that has both jobs until they are cancelled."""

        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            if argv[0] == "scancel":
                cancelled.extend(argv[1:])
            rows = [("70", OWN), (play.job(f"{FURTHER}_0").id, FURTHER)]
            lines = [f"{id}|RUNNING||n1|||0|{mark}|" for id, mark in rows if id not in cancelled]
            if argv[0] == "scontrol":
                return CommandResult(tuple(argv), 1, "", "Invalid job id specified")
            if argv[0] == "sacct":
                return CommandResult(tuple(argv), 1, "", "Slurm accounting storage is disabled")
            return CommandResult(tuple(argv), 0, "\n".join(lines))

    asyncio.run(cancel_jobs_of(play.record, Site(), spare=OWN))
    assert cancelled == [play.job(f"{FURTHER}_0").id]
