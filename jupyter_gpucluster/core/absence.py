"""Jobs that a listing lacks: what proves their end, and when one is given up without proof.

That a listing lacks a job is no evidence.  With exit code 0 real commands have left out all ids but
the first, jobs of another partition than the user's variables name, and everything while a database
failed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .job import FINAL, Job, JobState, JobStatus

LISTINGS_UNTIL_GONE = 2
"""A job has ended only when this many listings in a row lack it, even if its end is proved."""
LISTINGS_UNTIL_UNPROVED = 3
SECONDS_UNTIL_UNPROVED = 120.0
"""After so many listings and seconds a job without proof is cancelled, and replaced once."""


@dataclass(frozen=True)
class Evidence:
    """All that may prove the end of a job."""

    history: Mapping[str, JobStatus] = field(default_factory=dict)
    """Accounting's answers about jobs that the listing lacks, by id."""
    unknown: frozenset[str] = frozenset()
    """Ids of which the system says that it has no such job."""
    exits: Mapping[str, int] = field(default_factory=dict)
    """Exit codes that job scripts left behind, by job."""
    listing_proves: bool = False
    """True if the listing is complete by itself, as for processes of this machine."""

    def of(self, job: Job) -> tuple[str, JobStatus] | None:
        """Return the proof that a job has ended, and how it did; None without proof."""
        status = self.history.get(job.id)
        if status is not None and status.state in FINAL:
            return "history", status
        code = self.exits.get(job.key)
        if code is not None:
            state = JobState.FAILED if code else JobState.DONE
            return "exit file", JobStatus(job.id, state, job.mark, exit_code=code)
        gone = JobStatus(job.id, JobState.UNKNOWN, job.mark)
        if job.id and job.id in self.unknown:
            return "unknown id", gone
        # Without an id nothing can be asked about: accounting was asked for its mark.
        return ("listing", gone) if self.listing_proves or not job.id else None


@dataclass(frozen=True)
class Trace(Evidence):
    """A system's answers about jobs that its listing lacks."""

    listing: Mapping[str, JobStatus] = field(default_factory=dict)
    """Jobs that it lists when it is asked about them alone, by id."""
    asked: frozenset[str] = frozenset()
    """Ids for which there is an answer, or a command that was about them alone."""


def missed(job: Job, now: float) -> Job:
    """Return a job that one more listing lacks."""
    since = now if job.missing_since is None else job.missing_since
    return replace(job, missing=job.missing + 1, missing_since=since)


def is_unproved(job: Job, now: float) -> bool:
    """Determine whether listings have lacked a job, not known to have ended, for too long."""
    since = job.missing_since
    return (
        job.ended is None
        and job.missing >= LISTINGS_UNTIL_UNPROVED
        and since is not None
        and now - since >= SECONDS_UNTIL_UNPROVED
    )


def since_when(job: Job) -> str:
    """Return since when listings lack a job, as people read it."""
    return time.strftime("%H:%M", time.localtime(job.missing_since))
