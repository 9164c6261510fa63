"""Cancel the batch jobs of a cluster that has no head any more."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .backends import arguments_elsewhere, cancel_command, elsewhere, find_backend
from .errors import GpuClusterError
from .records import (
    FINAL,
    KEEPS_ENDED,
    ON_THIS_MACHINE,
    Job,
    JobState,
    JobStatus,
    Record,
    heads_job,
)
from .submission import ProcessRunner, Queue, Runner, run_aside

SECONDS = 15.0
"""How long it may take; whoever looks at the cluster waits for it, and jobs end by themselves."""
ROUNDS = 3


def cancel_jobs(record: Record) -> tuple[Record, str]:
    """Cancel what a dead head has left in the queue, from any process and any thread.

    Returns
    -------
    The record with its jobs as they are now, and a sentence for the user.
    """
    if not expected(record):
        return record, ""
    return run_aside(cancel_jobs_of(record, _runner(record)))


def left_jobs(records: Iterable[Record]) -> list[str]:
    """Return a line for each batch job that clusters which are over still have."""
    doubtful = [
        record
        for record in records
        if any(job.ended is None and job.state not in FINAL for job in expected(record))
    ]
    return run_aside(left_jobs_of(doubtful)) if doubtful else []


async def left_jobs_of(records: Iterable[Record], runner: Runner | None = None) -> list[str]:
    """Do what `left_jobs` does, on the caller's event loop and with its runner."""
    told = []
    for record in records:
        queue = _queue(record, runner or _runner(record))
        try:
            async with asyncio.timeout(SECONDS):
                left = await _listed(queue, record)
        except (GpuClusterError, TimeoutError):
            left = None
        if left is None:
            silent = f"{queue.backend.title} does not answer{_why(queue)}"
            told.append(f"perhaps jobs of {record.name}: {silent}")
        else:
            told += [
                f"job {id} of {status.mark} ({status.state.value}); to end it: "
                + _typed(record, [id])
                for id, status in sorted(left.items())
            ]
    return told


def _variables(record: Record) -> dict[str, str]:
    job = record.spec.job
    return elsewhere(record.spec.backend, job)


def _runner(record: Record) -> Runner:
    return ProcessRunner({**os.environ, **_variables(record)})


def _queue(record: Record, runner: Runner) -> Queue:
    backend = find_backend(record.spec.backend)
    return Queue(backend, runner, cancel_args=record.spec.job.cancel_args)


async def cancel_jobs_of(record: Record, runner: Runner, *, spare: str = "") -> tuple[Record, str]:
    """Do what `cancel_jobs` does with a runner, on the caller's event loop.

    Parameters
    ----------
    spare
        Mark of the job that the caller itself runs in.
    """
    if not expected(record):
        return record, ""
    queue = _queue(record, runner)
    try:
        async with asyncio.timeout(SECONDS):
            asked, left = await _cancel(queue, record, spare)
    except (GpuClusterError, TimeoutError):
        asked, left = {}, None
    if left is None:
        return record, _by_hand(record, f"The queueing system does not answer{_why(queue)}")
    gone = [job for job in expected(record) if job.id and job.id not in left]
    ended = {
        (job.mark, job.task): replace(
            job, state=asked.get(job.id, JobState.UNKNOWN), ended=time.time()
        )
        for job in gone
    }
    record = replace(
        record, jobs=tuple(ended.get((job.mark, job.task), job) for job in record.jobs)
    )
    if left:
        return record, _by_hand(record, "Asked to end, they have not yet", sorted(left))
    cancelled = sorted(id for id, state in asked.items() if state is JobState.CANCELLED)
    return record, f"Its jobs were cancelled: {', '.join(cancelled)}." if cancelled else ""


def expected(record: Record) -> list[Job]:
    """Return the jobs that a queueing system may still have, of a cluster whose head is gone."""
    if record.spec.backend in ON_THIS_MACHINE:
        return []
    # The head's own job counts as ended when its workers have; it lasts as long as the head.
    own = heads_job(record)
    return [
        job for job in record.jobs if job is own or (job.ended is None and job.state not in FINAL)
    ]


def heads_job_left(record: Record) -> list[str]:
    """Return the id of the head's job where it will be listed for ever once it has ended.

    Nobody else may be there any more to see to that when the cluster is over.
    """
    own = heads_job(record)
    return [own.id] if own is not None and record.spec.backend in KEEPS_ENDED else []


async def remove(queue: Queue, ids: Sequence[str]) -> None:
    """Have jobs listed no more, and try it twice: of an end nobody sees to it later."""
    if (await queue.cancel(ids)).exit_code != 0:
        await asyncio.sleep(queue.backend.hurry_seconds)
        await queue.cancel(ids)


async def _cancel(
    queue: Queue, record: Record, spare: str
) -> tuple[dict[str, JobState], dict[str, JobStatus] | None]:
    """Cancel until nothing is listed; return how what was asked to go ends, and what is there yet.

    What is listed is None where there was no answer.
    """
    asked: dict[str, JobState] = {}
    left: dict[str, JobStatus] | None = None
    for number in range(ROUNDS):
        if number:
            await asyncio.sleep(queue.backend.hurry_seconds)
        listed = await _listed(queue, record)
        if listed is None:
            return asked, left
        left = {id: status for id, status in listed.items() if status.mark != spare}
        waited_for = [
            status
            for id, status in left.items()
            if status.state is not JobState.ENDING and not (status.state in FINAL and id in asked)
        ]
        if not waited_for:
            return asked, {}
        # What is over already is only to be listed no more.
        asked |= {
            id: status.state if status.state in FINAL else JobState.CANCELLED
            for id, status in left.items()
            if id not in asked
        }
        await queue.cancel(sorted(left))
    return asked, left


async def _listed(queue: Queue, record: Record) -> dict[str, JobStatus] | None:
    """Return the jobs of a cluster that the queueing system has; None where it does not answer."""
    # One whose submission was not answered has no id, and is found by its mark.
    nameless = any(not job.id for job in expected(record))
    listing = await queue.poll(() if nameless else tuple(job.id for job in expected(record)))
    if listing is None:
        return None
    return {
        id: status
        for id, status in listing.items()
        # Ids are given out again; only what bears the cluster's mark is ours.
        if status.mark.startswith(f"gpc-{record.id}-")
        and (status.state not in FINAL or record.spec.backend in KEEPS_ENDED)
    }


def _why(queue: Queue) -> str:
    return f" ({queue.cure.rstrip('.')})" if queue.cure else ""


def _by_hand(record: Record, why: str, ids: Sequence[str] = ()) -> str:
    ids = ids or [job.id for job in expected(record) if job.id]
    told = f"{why}: its jobs may be there yet, and end by themselves minutes after they start."
    if not ids:
        return told
    return f"{told} To end them now: {_typed(record, ids)}"


def _typed(record: Record, ids: Sequence[str]) -> str:
    """Return what to type in a shell to end jobs of a cluster; some say in arguments where."""
    by_arguments = arguments_elsewhere(record.spec.backend, record.spec.job)
    there = {} if by_arguments else _variables(record)
    where = "".join(f"{name}={shlex.quote(value)} " for name, value in there.items())
    backend = find_backend(record.spec.backend)
    return where + shlex.join(cancel_command(backend, ids, record.spec.job.cancel_args))
