"""What the queueing system says of a cluster's jobs: listed, accounted for, or left in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..backends import elsewhere, find_backend
from ..records import FINAL, KEEPS_ENDED, ON_THIS_MACHINE, Job, JobStatus, Record
from ..sharing import SharedQueue
from ..store import ClusterDirectory
from ..submission import COMMAND_SECONDS, Queue, Runner, user_name
from .situation import is_alive


@dataclass(frozen=True)
class Told:
    """What the system said when it was asked, or that there was no need to ask it."""

    listing: Mapping[str, JobStatus] | None = None
    history: Mapping[str, JobStatus] = field(default_factory=dict)
    found: Mapping[str, JobStatus] = field(default_factory=dict)
    exits: Mapping[str, int] = field(default_factory=dict)
    again: float = 0.0
    """Seconds until a listing is due, where none was."""
    silent_since: float | None = None
    cure: str = ""
    """What to do about the silence, where it does not pass by itself."""


def open_queue(directory: ClusterDirectory, record: Record, runner: Runner) -> Queue:
    """Return the queueing system of a cluster; that of a site is shared with other heads."""
    backend, shared = find_backend(record.spec.backend), None
    if record.spec.backend not in ON_THIS_MACHINE:
        # A head in a job has them for commands only, and in a pod perhaps its node's name, too.
        there = elsewhere(record.spec.backend, record.spec.job)
        shared = SharedQueue(directory.path.parent, backend, user_name(), directory.id, there)
    return Queue(backend, runner, shared, record.spec.job.cancel_args)


async def ask(
    queue: Queue,
    directory: ClusterDirectory,
    record: Record,
    before: Told,
    now: float,
    period: float,
) -> Told:
    """Ask about a cluster's jobs, as often as the period says.

    Parameters
    ----------
    before
        What was told the last time: since when the system is silent.
    """
    ids = [job.id for job in record.jobs if job.id and job.state not in FINAL]
    if not ids and all(job.id or not is_alive(job) for job in record.jobs):
        return Told(silent_since=before.silent_since, cure=before.cure)
    lost = _lost(record, now)
    if record.spec.backend in KEEPS_ENDED:
        ids = [job.id for job in record.jobs if job.id]
    # Some systems list only what they are asked for, and a lost job has no id to ask by.
    poll = await queue.look(() if lost else ids, period)
    if not poll.asked:
        return Told(again=poll.again, silent_since=before.silent_since, cure=before.cure)
    if poll.listing is None:
        return Told(silent_since=before.silent_since or now, cure=queue.cure)
    gone = [job.id for job in record.jobs if job.id and is_alive(job)]
    gone = [id for id in gone if id not in poll.listing]
    named = {status.mark for status in poll.listing.values()}
    marks = dict.fromkeys(job.mark for job in lost if job.mark not in named)
    return Told(
        poll.listing,
        history=await queue.history(gone) if gone else {},
        # What is lost may be over already.
        found=await queue.find(list(marks)) if marks else {},
        exits=await asyncio.to_thread(directory.exit_codes) if gone or marks else {},
    )


def _lost(record: Record, now: float) -> list[Job]:
    """Return the jobs whose submission has not been answered."""
    unnamed = [job for job in record.jobs if not job.id and is_alive(job)]
    return [job for job in unnamed if now - job.submitted > COMMAND_SECONDS]
