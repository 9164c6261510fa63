"""The batch system's report of a cluster's jobs: listing, accounting, or exit files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ...batch import find_backend, keeps_ended, on_this_machine
from ...batch import queue as queues
from ...batch.queue import COMMAND_SECONDS, Queue, Runner
from ...batch.status_cache import CALM
from ...core.cluster import Record
from ...core.job import FINAL, WAITING, Job, JobState
from ...core.job_updates import find_status
from ...host.cluster_directory import ClusterDirectory
from .model import Reported

KEPT = ("unresponsive_since", "silence", "fix", "traced", "unknown")
"""Parts of a report that hold until the system answers again.  Without a listing an unknown id
is not cancelled, and proves no end."""


def open_queue(directory: ClusterDirectory, record: Record, runner: Runner) -> Queue:
    """Return the batch system of a cluster; that of a site is shared with other heads."""
    root, spec = directory.root, record.spec
    shared = None if on_this_machine(spec.backend) else queues.shared_cache(root, record)
    return Queue(find_backend(spec.backend), runner, shared, spec.job.cancel_args, root)


async def ask(
    queue: Queue,
    directory: ClusterDirectory,
    record: Record,
    before: Reported,
    now: float,
    period: float,
) -> Reported:
    """Ask about a cluster's jobs, as often as the period says.

    Parameters
    ----------
    before
        The last report: since when the system is silent.
    """
    ids = [job.id for job in record.jobs if job.id and job.state not in FINAL]
    kept: dict[str, Any] = {name: getattr(before, name) for name in KEPT}
    if not ids and all(job.id or job.is_over for job in record.jobs):
        return Reported(**kept)
    lost = _lost(record, now)
    if keeps_ended(record.spec.backend):
        ids = [job.id for job in record.jobs if job.id]
    # Some systems list only what they are asked for, and a lost job has no id to ask by.
    alive = [job for job in record.jobs if job.id and not job.is_over]
    nameless = [job.key for job in lost]
    poll = await queue.look(() if lost else ids, period, [job.id for job in alive], nameless)
    if not poll.asked:
        return Reported(**kept, again=poll.again)
    if poll.listing is None:
        since = before.unresponsive_since or now
        return Reported(**kept | {"unresponsive_since": since, "fix": queue.fix})
    gone = [job for job in alive if job.id not in poll.listing]
    # The system has given such an id to another job.
    reused = {
        job.id for job in alive if job.id in poll.listing and not find_status(job, poll.listing)
    }
    due = [job for job in gone if _is_due(job, before, now)]
    # The oldest first, but none again before all have been asked about.
    due.sort(key=lambda job: before.traced.get(job.id, 0.0))
    trace = await queue.trace({job.id: job.mark for job in due})
    named = {status.mark for status in poll.listing.values()}
    marks = dict.fromkeys(job.mark for job in lost if job.mark not in named)
    return Reported(
        listing={**poll.listing, **trace.listing},
        listing_proves=queue.backend.listing_proves,
        history=trace.history,
        # What is lost may be over already.
        found=await queue.find(list(marks)) if marks else {},
        exits=await asyncio.to_thread(directory.exit_codes) if gone or marks else {},
        unknown=trace.unknown | reused,
        personal=await asyncio.to_thread(queues.personal_settings, queue.backend) if gone else "",
        silence=before.silence + _silence(record, before, now),
        traced={
            job.id: now if job.id in trace.asked else before.traced[job.id]
            for job in gone
            if job.id in trace.asked or job.id in before.traced
        },
    )


def period(record: Record, connected: Mapping[str, int]) -> float:
    """Return the seconds between two listings, which is longer while no job waits or ends.

    Parameters
    ----------
    connected
        The number of workers of each job.
    """
    calm = record.stop_requested is None and all(
        job.state is JobState.RUNNING and job.key in connected and job.retiring_since is None
        for job in record.jobs
        if not job.is_over
    )
    return queues.listing_period(record) * (CALM if calm else 1)


def doubtful(record: Record, connected: Mapping[str, int]) -> set[str]:
    """Return the jobs of which the next listing probably shows something new.

    A listing lacks them, their worker went, or their worker came although they are listed as
    waiting.
    """
    return {
        job.key
        for job in record.jobs
        if not job.is_over
        and (
            job.missing
            or (job.connected and job.key not in connected)
            or (job.state in WAITING and job.key in connected)
        )
    }


def _silence(record: Record, before: Reported, now: float) -> float:
    """Return how long the system did not answer, while the cluster stopped, up to now."""
    if record.stop_requested is None or before.unresponsive_since is None:
        return 0.0
    return now - max(record.stop_requested, before.unresponsive_since)


def _is_due(job: Job, before: Reported, now: float) -> bool:
    """Return whether to look for a job that listings lack: ever more seldom."""
    last, since = before.traced.get(job.id), job.missing_since
    return last is None or since is None or now - last >= (now - since) / 10


def _lost(record: Record, now: float) -> list[Job]:
    """Return the jobs whose submission has not been answered."""
    unnamed = [job for job in record.jobs if not job.id and not job.is_over]
    return [job for job in unnamed if now - job.submitted > COMMAND_SECONDS]
