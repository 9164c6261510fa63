"""The head's word about a cluster: numbers, the last loss, and the sentence that users read."""

from __future__ import annotations

from ..core.absence import LISTINGS_UNTIL_GONE, since_when
from ..core.cluster import ENDED, Phase, Record, spec_of_group
from ..core.job import WAITING, Job, JobState
from ..core.serialize import copied
from ..core.summary import Loss, Summary, WorkerCounts
from .reconcile import model
from .reconcile.groups import count_group, own_part
from .reconcile.model import Observation, active, given_up_unlisted

DAY = 86400.0
RESTART_SECONDS = 15.0
"""A worker that its nanny or ``client.restart()`` starts anew is away for less."""


def describe(
    record: Record, counts: WorkerCounts, leaving: int, starts_in: float | None = None
) -> str:
    """Describe the cluster's state in a few words.

    Parameters
    ----------
    leaving
        How many of its jobs are to go and are still there.
    starts_in
        Seconds until the first waiting job may start, if the batch system reports it.
    """
    unit = "GPUs" if record.spec.job.gpus else "workers"
    if record.spec.simulated:
        unit = f"simulated {unit}"
    if record.phase is Phase.STOPPING:
        jobs = "1 job" if leaving == 1 else f"{leaving} jobs"
        return f"stopping: {jobs} still ending" if leaving else "stopping"
    if record.phase in ENDED:
        return str(record.phase.value)
    unproved = sum(given_up_unlisted(job) and job.missing > 0 for job in record.jobs)
    given_up = sum(not job.is_over and job.given_up for job in record.jobs) - unproved
    parts = (
        (counts.pending, f"waiting{_in_about(starts_in)}"),
        (counts.starting, "starting"),
        (counts.lost, "lost" if record.reason else "lost, being replaced"),
        (leaving - unproved - given_up, "leaving when tasks are done"),
        (unproved, "cancelled, end not confirmed"),
        (given_up, "given up and still listed"),
        (
            sum(job.successor_requested_at is not None for job in active(record)),
            "to be replaced before the walltime ends",
        ),
        (record.expired * record.spec.worker.per_job, "gone at the walltime and not replaced"),
    )
    one = unit.removesuffix("s") if counts.asked == 1 else unit
    ready = f"{counts.ready} of {counts.asked} {one} ready"
    return ", ".join([ready, *(f"{number} {words}" for number, words in parts if number > 0)])


def _in_about(seconds: float | None) -> str:
    """Return a rough duration; the numbers that systems give are guesses."""
    if seconds is None or seconds <= 0:
        return ""
    if seconds < 3600:
        return f" (may start in about {max(1, round(seconds / 60))} min)"
    if seconds < 2 * DAY:
        return f" (may start in about {round(seconds / 3600)} h)"
    return f" (may start in about {round(seconds / DAY)} days)"


def group_words(record: Record, seen: Observation) -> list[str]:
    """Describe the state of each worker group."""
    counts = {group.name: count_group(record, group, seen) for group in record.spec.groups}
    return [f"{count.ready} of {count.asked} {name} workers" for name, count in counts.items()]


def absence(record: Record, now: float) -> str:
    """Name the jobs that do not answer, and the next step; a worker may restart within moments."""
    absent = [
        job.key
        for job in active(record)
        if job.disconnected_since is not None and now - job.disconnected_since > RESTART_SECONDS
    ]
    if not absent:
        return ""
    does, is_ = ("does", "it is") if len(absent) == 1 else ("do", "they are")
    minutes = f"{model.ABSENT_SECONDS / 60:.0f} min"
    return (
        f"{', '.join(absent)} {does} not answer, though {is_} listed as running: the node may be"
        f" down. Jobs that do not answer for {minutes} are replaced."
    )


def unlisted(record: Record, seen: Observation) -> str:
    """Name the jobs that the system's listings lack."""
    missing = [job for job in record.jobs if not job.is_over and job.missing >= LISTINGS_UNTIL_GONE]
    if not missing:
        return ""
    first = min(missing, key=lambda job: job.missing_since or 0.0)
    is_ = "is" if len(missing) == 1 else "are"
    keys = ", ".join(job.key for job in missing[:3]) + (", ..." if len(missing) > 3 else "")
    words = f"{keys} {is_} not in {seen.system}'s listing since {since_when(first)}; asking again."
    return f"{words} {seen.personal}".rstrip()


def summarise(record: Record, seen: Observation, now: float) -> Summary:
    """Return what ``summary.json`` says."""
    leaving = sum(not job.is_over and job.retiring_since is not None for job in record.jobs)
    ended = record.phase in ENDED
    others = [] if ended else group_words(record, seen)
    loss = last_loss(record, now)
    record = own_part(record)
    counts = WorkerCounts() if ended else model.count_workers(record, seen)
    # Workers may come before the listing that says that their job runs.
    waiting = [
        job
        for job in active(record)
        if job.state in model.STANDING_STILL
        and (job.state is JobState.SUSPENDED or job.key not in seen.workers)
    ]
    starts = min((job.expected_start for job in waiting if job.expected_start), default=None)
    words = describe(record, counts, leaving, None if starts is None else starts - now)
    first = model.first_to_end(record, seen.used, now)
    clocks = [*model.clocks(record, seen), *filter(None, [first])]
    return copied(
        Summary,
        seen,
        record,
        profile=record.spec.profile,
        reason=record.reason
        or seen.fix
        or seen.held
        or absence(record, now)
        or ("" if ended else unlisted(record, seen))
        or next((job.reason for job in waiting), ""),
        words=", ".join([words, *others]),
        written=now,
        workers=counts,
        clocks=() if ended else tuple(clocks),
        expected_start=None if ended else starts,
        stale_since=seen.unresponsive_since,
        loss=loss,
        unaccounted=record.unaccounted is not None,
    )


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
    lost.sort(key=lambda item: item[0])
    time = lost[-1][0]
    last = next(job for when, job in lost if when == time)
    together = [
        (when, job)
        for when, job in lost
        if time - when <= TOGETHER_SECONDS and _kind(job) == _kind(last)
    ]
    loss = _describe(record, [job for _, job in together], since=together[0][0], time=time)
    recent = now - time < model.DEATHS_WINDOW
    return loss if recent or loss.waiting or loss.starting or record.reason else None


def _lost(job: Job) -> float | None:
    """Return when a job was lost that held something, None where it was not."""
    if _is_requeued(job):
        return job.requeued
    ran = job.connected or job.started is not None
    return model.lost_at(job) if ran and not job.not_counted else None


def _is_requeued(job: Job) -> bool:
    return job.requeued is not None and not job.is_over and job.retiring_since is None


def _kind(job: Job) -> tuple[str, JobState, bool, bool]:
    requeued = _is_requeued(job)
    state = JobState.UNKNOWN if requeued or job.given_up else job.state
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
        given_up=any(job.given_up for job in jobs),
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
        for job in active(record)
        if job.group == jobs[-1].group and job.submitted >= since and job not in jobs
    ]
    return sorted(newer, key=lambda job: job.submitted)[: len(jobs)]
