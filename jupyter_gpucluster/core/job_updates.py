"""Apply what a batch system reports of a job to the job: the only place that does so.

The head, readers of clusters whose head has not come, and the process that cancels the jobs of a
dead head use it alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .absence import LISTINGS_UNTIL_GONE, Evidence, missed
from .job import FINAL, WAITING, Job, JobState, JobStatus

SKEW_SECONDS = 60.0
"""Times that are impossible by more than this are those of a clock that is not ours."""
NO_OUTCOME = frozenset({JobState.FAILED, JobState.UNKNOWN})
"""States of an ended job that show neither what ended it, nor that it did its work."""


def is_ours(status: JobStatus, cluster: str) -> bool:
    """Determine whether a status can be that of a cluster's job: systems give ids out again.

    A status without a tag says nothing about that.
    """
    return not status.mark or status.mark.startswith(f"gpc-{cluster}-")


def find_status(
    job: Job, listing: Mapping[str, JobStatus], others: Mapping[str, JobStatus] | None = None
) -> JobStatus | None:
    """Return the status of a job in a listing, None if the listing lacks it.

    Parameters
    ----------
    others
        More statuses for a job whose submission's answer was lost, and that has no id yet.
    """
    if job.id:
        status = listing.get(job.id)
        cluster = job.mark.split("-")[1]
        return status if status is not None and is_ours(status, cluster) else None
    named = (*listing.values(), *(others or {}).values())
    return next((each for each in named if each.key == job.key), None)


def apply_status(
    job: Job, status: JobStatus, now: float, *, reason: str = "", same_clock: bool = False
) -> Job:
    """Return a job with the status that a listing gives it.

    Parameters
    ----------
    reason
        Why it waits or ended, in a sentence; empty = the system's own word.
    same_clock
        Whether the system's times are those of this machine's clock.
    """
    status = status if same_clock else by_our_clock(job, status, now)
    waits = status.state in WAITING
    # Where the system does not tell the start, it is when the job was first seen to run.
    seen = job.started or (now if status.state is JobState.RUNNING else None)
    newer = replace(
        job,
        id=status.id,
        state=status.state,
        reason=reason or status.reason,
        nodes=status.nodes or job.nodes,
        process=status.process or job.process,
        devices=status.devices or job.devices,
        started=status.started or (None if waits else seen),
        expected_start=_to_the_minute(status) if waits else None,
        ends=status.ends,
        missing=0,
        missing_since=job.missing_since if job.given_up else None,
    )
    return end(newer, status, "listing", now) if status.state in FINAL else newer


def apply_absence(
    job: Job, evidence: Evidence, now: float, *, same_clock: bool = False
) -> tuple[Job, JobStatus | None]:
    """Count a listing that lacks a job, which ends it only with proof.

    Returns
    -------
    The job, and the status that proves its end; None without proof.
    """
    job = missed(job, now)
    proved = evidence.of(job) if job.missing >= LISTINGS_UNTIL_GONE else None
    if proved is None:
        return job, None
    proof, status = proved
    status = status if same_clock else by_our_clock(job, status, now)
    return end(job, status, proof, now), status


def end(job: Job, status: JobStatus, proof: str, now: float) -> Job:
    """Return a job that has ended as a status says."""
    # Some systems know of a job that was cancelled only the signal, or nothing.
    cancelled = job.cancelled is not None and status.state in NO_OUTCOME
    return replace(
        job,
        state=JobState.CANCELLED if cancelled else status.state,
        exit_code=status.exit_code,
        ended=status.ended or now,
        proof=proof,
    )


def by_our_clock(job: Job, status: JobStatus, now: float) -> JobStatus:
    """Return a status whose times are possible: after the submission, and not to come.

    Else the jobs of a site whose clock is hours behind, or in another time zone, would be past
    their walltime as they start, and their deaths too old to count.
    """
    first = min(job.submitted, now)
    told = status.started if status.started is not None else status.ended
    if told is None:
        return status
    shift = 0.0
    if told < first - SKEW_SECONDS:
        shift = first - told
    elif told > now + SKEW_SECONDS:
        # The first guess stays: else it would move with every look.
        shift = (job.started or now) - told
    times = {name: getattr(status, name) for name in ("started", "ended", "ends")}
    moved = {name: time + shift for name, time in times.items() if time is not None}
    if "ended" in moved:
        moved["ended"] = min(moved["ended"], now)
    return replace(status, **moved)


def _to_the_minute(status: JobStatus) -> float | None:
    """Return the batch system's guess, which changes with every look by some seconds."""
    return None if status.expected_start is None else round(status.expected_start / 60) * 60.0
