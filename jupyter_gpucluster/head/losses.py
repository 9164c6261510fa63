"""The last loss of workers: where, when and how, and how far their replacements are."""

from __future__ import annotations

from ..core.cluster import Phase, Record, spec_of_group
from ..core.job import WAITING, Job, JobState
from ..core.summary import Loss
from .reconcile.model import DEATHS_WINDOW, lost_at

TOGETHER_SECONDS = 60.0
"""Jobs that are lost within this time of each other are one loss: a node that fails ends all of
its jobs, and a batch system reports them over several listings."""


def last_loss(record: Record, now: float) -> Loss | None:
    """Return the last loss while users need to know about it.

    That is for ten minutes, and for longer while replacements are not ready.  A stop on request
    hides it.
    """
    if record.stop_requested is not None and record.outcome is not Phase.FAILED:
        return None
    lost = [(when, job) for job in record.jobs if (when := _lost(job)) is not None]
    if not lost:
        return None
    time, last = max(lost, key=lambda item: item[0])
    together = sorted(
        (
            (when, job)
            for when, job in lost
            if time - when <= TOGETHER_SECONDS and _kind(job) == _kind(last)
        ),
        key=lambda item: item[0],
    )
    jobs = [job for _, job in together]
    loss = _describe(record, jobs, since=together[0][0], time=time)
    if now - time < DEATHS_WINDOW or loss.waiting or loss.starting or record.reason:
        return loss
    return None


def _lost(job: Job) -> float | None:
    """Return when a job was lost that held something, None where it was not."""
    if _is_requeued(job):
        return job.requeued
    ran = job.connected or job.started is not None
    return lost_at(job) if ran and not job.excused else None


def _is_requeued(job: Job) -> bool:
    return job.requeued is not None and not job.is_over and job.leaving is None


def _kind(job: Job) -> tuple[str, JobState, bool, bool]:
    requeued = _is_requeued(job)
    state = JobState.UNKNOWN if requeued or job.abandoned else job.state
    return job.group, state, job.connected or requeued, requeued


def _describe(record: Record, jobs: list[Job], *, since: float, time: float) -> Loss:
    group, state, connected, requeued = _kind(jobs[-1])
    spec = spec_of_group(record.spec, group)
    each = spec.worker.per_job
    successors = jobs if requeued else _successors(record, jobs, since)
    waiting = [job for job in successors if job.state in WAITING]
    ready = [job for job in successors if job.connected and job not in waiting]
    # A job that runs again may be on other nodes.
    known = [job for job in jobs if not requeued or job.state in WAITING]
    return Loss(
        time=time,
        workers=len(jobs) * each,
        unit="GPUs" if spec.job.gpus else "workers",
        nodes=tuple(dict.fromkeys(node for job in known for node in job.nodes)),
        state=state,
        given_up=any(job.abandoned for job in jobs),
        requeued=requeued,
        connected=connected,
        cause=next((job.cause for job in reversed(jobs) if job.cause), ""),
        waiting=len(waiting) * each,
        starting=(len(successors) - len(waiting) - len(ready)) * each,
        replaced=len(ready) * each,
    )


def _successors(record: Record, jobs: list[Job], since: float) -> list[Job]:
    """Return the jobs that were submitted in place of lost ones and are not lost themselves."""
    newer = [
        job
        for job in record.jobs
        if job.group == jobs[-1].group
        and job.submitted >= since
        and job not in jobs
        and not job.is_over
        and job.leaving is None
    ]
    return sorted(newer, key=lambda job: job.submitted)[: len(jobs)]
