"""Jobs that do not end although their batch system was asked for that are reported once."""

from __future__ import annotations

from dataclasses import replace

from jupyter_gpucluster.core.cluster import Record, Spec, Target
from jupyter_gpucluster.core.job import CommandResult, Job, JobState
from jupyter_gpucluster.head.submissions import TRIES, VainCancels

MARK = "gpc-abc123-1"


def a_record(*jobs: Job) -> Record:
    spec = Spec(profile="p", title="P", backend="slurm", python="python")
    return Record("abc123", "c", spec, Target(1, 1), created=0.0, jobs=jobs)


def reports(record: Record, result: CommandResult, tries: int = 2 * TRIES) -> list[str]:
    vain = VainCancels()
    ids = [job.id for job in record.jobs]
    return [
        event.message
        for number in range(tries)
        for event in vain.note(record, ids, result, "Slurm", float(number))
    ]


def test_a_job_that_stays_is_reported_once_with_the_command_s_words() -> None:
    job = Job(MARK, 0, JobState.RUNNING, id="7")
    denied = CommandResult(("scancel", "7"), 1, "", "scancel: error:\n Access denied.\n")
    assert reports(a_record(job), denied) == [
        "Slurm was asked 4 times to end job 7, and still lists it. scancel exited with code 1 and"
        " wrote: scancel: error: Access denied."
    ]
    quiet = CommandResult(("scancel", "7"), 0)
    assert reports(a_record(job), quiet)[0].endswith("exited with code 0 and wrote nothing.")
    hangs = CommandResult(("scancel", "7"), None)
    assert reports(a_record(job), hangs)[0].endswith("scancel did not answer.")
    assert reports(a_record(job), quiet, TRIES - 1) == []


def test_a_job_that_ends_or_is_not_listed_is_not() -> None:
    quiet = CommandResult(("scancel", "7"), 0)
    job = Job(MARK, 0, JobState.RUNNING, id="7")
    for other in (
        replace(job, state=JobState.ENDING),
        replace(job, state=JobState.DONE, ended=1.0),
        replace(job, missing=1),
    ):
        assert reports(a_record(other), quiet) == []
