"""Walltime: when jobs reach it, and from when on it is prepared for."""

from __future__ import annotations

from ...core.cluster import Record, heads_job
from ...core.job import Job, JobState, JobStatus
from ...core.summary import Clock
from .model import end_of, staying

STARTUP_SECONDS = 60.0
"""From a job's start to its worker's connection: imports from a shared file system take long."""
SLACK_SECONDS = 5.0
"""Some systems end jobs a little early, or count from another second."""
MOSTLY = 0.5
"""A job works for at least this part of its walltime before anything is prepared."""
OWN_END_SECONDS = 120.0
"""Workers that leave by themselves later than so long before the walltime leave because of it."""
USED_SECONDS = 4 * 3600.0
"""A cluster without tasks for so long, or for the walltime if that is shorter, is not used."""
OTHER_CAUSES = frozenset({JobState.DONE, JobState.OUT_OF_MEMORY, JobState.NODE_FAIL})


def drain_time(job: Job, record: Record) -> float | None:
    """Return when to begin to move a job's results to others; None = never."""
    before = record.spec.policy.drain_before
    return None if before is None else _before_end(job, record, before)


def is_unused(record: Record, used: float | None, now: float) -> bool:
    """Determine whether no task ran lately, so that no job gets a successor."""
    return record.spec.policy.while_used and (used is None or now - used > used_window(record))


def used_window(record: Record) -> float:
    """Return the seconds in which a task must have run for a job to get a successor."""
    return min(USED_SECONDS, record.spec.job.walltime or USED_SECONDS)


def relief_time(job: Job, record: Record) -> float | None:
    """Return when to ask for a job's successor, so that it is there in time; None = never.

    It is expected to wait as long as the longest wait of this cluster so far.
    """
    policy, end = record.spec.policy, end_of(job, record)
    if policy.at_walltime != "replace" or end is None:
        return None
    if policy.max_lifetime is not None and record.created + policy.max_lifetime <= end:
        return None
    waited = max((j.started - j.submitted for j in record.jobs if j.started is not None), default=0)
    return _before_end(job, record, waited + STARTUP_SECONDS + (policy.drain_before or 0.0))


def _before_end(job: Job, record: Record, seconds: float) -> float | None:
    end = end_of(job, record)
    # The head's own job has no successor: the cluster stops with it.
    if end is None or job.started is None or job == heads_job(record):
        return None
    return max(end - seconds, job.started + MOSTLY * (end - job.started))


def reached(job: Job, status: JobStatus, record: Record) -> bool:
    """Determine whether a job that worked was ended by its walltime; not every system says so."""
    if not job.connected or job.ended is None or status.state in OTHER_CAUSES:
        return False
    end = end_of(job, record)
    in_time = end is not None and job.ended >= end - SLACK_SECONDS
    return status.state is JobState.TIMEOUT or in_time


def left_in_time(job: Job, status: JobStatus, record: Record) -> bool:
    """Determine whether a job's workers left by themselves because of its walltime.

    They know the walltime that was asked for; an administrator may have changed it since.
    """
    walltime, started, ended = record.spec.job.walltime, job.started, job.ended
    if status.state is not JobState.DONE or walltime is None or started is None or ended is None:
        return False
    return ended >= started + max(walltime - OWN_END_SECONDS, MOSTLY * walltime)


def first_to_end(record: Record, used: float | None, now: float) -> Clock | None:
    """Return the clock of the job that ends first by its walltime."""
    ends = [
        (end, job)
        for job in staying(record)
        if (end := end_of(job, record)) is not None
        and job.started is not None
        and job != heads_job(record)
    ]
    if not ends:
        return None
    end, job = min(ends, key=lambda item: item[0])
    seconds = end - (job.started or end)
    unused = is_unused(record, used, now)
    follows = record.spec.policy.at_walltime == "replace" and not unused
    if not follows and len(staying(record)) == 1:
        return Clock("walltime", seconds, end, kind="walltime")
    words = "a new one follows" if follows else "no new one follows"
    name = f"end of job {job.key}, {words}"
    return Clock(name, seconds, end, job.key, follows, kind="walltime")
