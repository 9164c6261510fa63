"""Cancel the batch jobs of a cluster that has no head any more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.absence import Evidence, is_unproved, missed
from ..core.cluster import Record, Unaccounted, heads_job, spec_of_group
from ..core.errors import GpuClusterError
from ..core.job import FINAL, Job, JobState, JobStatus
from ..core.job_updates import apply_status, end, find_status, is_ours
from ..host.cluster_directory import ClusterDirectory
from . import (
    arguments_elsewhere,
    cancel_command,
    find_backend,
    keeps_ended,
    missing_programs,
    on_this_machine,
    routed,
    routing,
)
from .queue import ProcessRunner, Queue, Runner, for_user, run_aside

SECONDS = 15.0
"""Time limit; readers of the cluster wait for it, and jobs end by themselves."""
ANSWER_SECONDS = 10.0
"""The same of a list of leftovers."""
TAG = re.compile(r"gpc-([a-z0-9]{6})-\d+")
FILES = re.compile(r"(/[^\s\"',;:=]*)/[a-z0-9]{6}/(?:jobs|logs)/gpc-")
"""The directory of cluster directories, in the path of a job's script or log."""
ROUNDS = 3
PAST_WALLTIME = 3600.0
"""So long after its time limit a job that ran counts as ended, because systems end jobs within
minutes.  Only without a head: no process asks about the job again, and `list --orphans` would name
it for ever where its system proves nothing.  A live head asks on, and waits for real proof."""
LOOK_UPS = 20
"""Jobs that the listing lacks and that are asked about one by one, at most, in each round."""


def cancel_jobs(record: Record, directory: ClusterDirectory | None = None) -> tuple[Record, str]:
    """Cancel what a dead head has left in the queue, from any process and any thread.

    Parameters
    ----------
    directory
        The cluster's, for the exit codes that its jobs left.

    Returns
    -------
    The record with its jobs as they are now, with those whose end nothing proves, and a sentence
    for the user.
    """
    if not expected(record):
        return replace(record, unaccounted=None), ""
    return run_aside(cancel_jobs_of(record, directory=directory))


def left_jobs(records: Iterable[Record], root: Path | None = None) -> list[str]:
    """Return a line for each batch job that clusters which are over still have.

    Parameters
    ----------
    root
        The directory of cluster directories, as in `Queue`.
    """
    doubtful = [record for record in records if any(not job.is_over for job in expected(record))]
    return run_aside(left_jobs_of(doubtful, root=root)) if doubtful else []


async def left_jobs_of(
    records: Iterable[Record], runner: Runner | None = None, *, root: Path | None = None
) -> list[str]:
    """Do what `left_jobs` does, on the caller's event loop and with its runner."""
    lines = (_left_of(record, _queue(record, root, runner, limited=True)) for record in records)
    return [line for some in await asyncio.gather(*lines) for line in some]


async def _left_of(record: Record, queue: Queue) -> list[str]:
    found = None
    with contextlib.suppress(GpuClusterError, TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            found = await _look(queue, record)
    if found is None:
        silent = f"{queue.backend.title} does not answer{_why(queue)}"
        return [f"perhaps jobs of {record.name}: {silent}"]
    left = {id: f"{each.mark} ({each.state.value})" for id, each in found.left.items()}
    doubts = found.doubtful.items()
    left |= {id: f"{mark} (not listed, end not confirmed)" for id, mark in doubts}
    return [
        f"job {id} of {words}; to end it: {_typed(record, [id])}"
        for id, words in sorted(left.items())
    ]


def stray_jobs(
    systems: Iterable[tuple[str, Mapping[str, str]]], looked_after: Set[str], root: Path
) -> list[str]:
    """Return a line for each job with a tag of ours that no live cluster of this root has.

    Parameters
    ----------
    systems
        Backends, each with the variables by which its commands find the system.
    looked_after
        Ids of clusters whose jobs are known.
    root
        The directory of cluster directories; jobs with files elsewhere are another root's.
    """

    async def ask() -> list[str]:
        lines = (_strays(name, where, looked_after, root) for name, where in systems)
        return [line for some in await asyncio.gather(*lines) for line in some]

    return run_aside(ask())


async def _strays(
    name: str, variables: Mapping[str, str], looked_after: Set[str], root: Path
) -> list[str]:
    backend = find_backend(name)
    if missing_programs(backend):
        return []  # a profile for another host
    there = {**os.environ, **variables}
    queue = Queue(backend, for_user(backend, ProcessRunner(there), root, there), root=root)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            listing = await queue.poll(())
            if listing is None:
                raise TimeoutError
            strays = [
                status
                for status in listing.values()
                if (found := TAG.match(status.mark)) and found[1] not in looked_after
                if status.state not in FINAL
            ]
            origins = [await _origin(queue, status.id, root) for status in strays]
    except TimeoutError:
        return [f"perhaps jobs: {backend.title} does not answer{_why(queue)}"]
    return [
        f"job {status.id} of {status.mark} ({status.state.value}), {origin}; to end it: "
        + _shell(variables, backend.cancel([status.id]))
        for status, origin in zip(strays, origins, strict=True)
    ]


async def _origin(queue: Queue, id: str, root: Path) -> str:
    """Return where a job was started, from the paths that its batch system keeps of it."""
    backend = queue.backend
    argv = backend.look_up(id) or backend.status(queue.user, [id])
    text = (await queue.runner.run(argv)).stdout
    place = FILES.search(text)
    if place is not None and Path(place[1]) == root:
        return "without a scheduler"
    host = backend.submit_host.search(text) if backend.submit_host else None
    words = f"started from {place[1] if place else 'another directory'}"
    return f"{words} on {host[1]}" if host else words


def _queue(
    record: Record, root: Path | None, runner: Runner | None = None, *, limited: bool = False
) -> Queue:
    """Return the batch system of a cluster, perhaps with the limits of what users start."""
    backend, there = find_backend(record.spec.backend), routed(record.spec, os.environ)
    runner = runner or ProcessRunner(there)
    if limited and root is not None:
        runner = for_user(backend, runner, root, there)
    return Queue(backend, runner, cancel_args=record.spec.job.cancel_args, root=root)


async def cancel_jobs_of(
    record: Record,
    runner: Runner | None = None,
    *,
    spare: str = "",
    directory: ClusterDirectory | None = None,
) -> tuple[Record, str]:
    """Do what `cancel_jobs` does with a runner, on the caller's event loop.

    Parameters
    ----------
    spare
        Mark of the job that the caller itself runs in.
    directory
        As in `cancel_jobs`.
    """
    record = replace(record, unaccounted=None)
    if not expected(record):
        return record, ""
    queue = _queue(record, None if directory is None else directory.root, runner)
    exits = {} if directory is None else directory.exit_codes()
    found: _Found | None = None
    with contextlib.suppress(GpuClusterError, TimeoutError):
        async with asyncio.timeout(SECONDS):
            found = await _cancel(queue, record, spare, exits)
    if found is None:
        jobs = [job for job in expected(record) if job.mark != spare]
        words = _by_hand(record, f"The batch system does not answer{_why(queue)}")
        ids, tags = [job.id for job in jobs if job.id], {job.mark for job in jobs}
    else:
        record = _with_jobs(record, found.jobs)
        words = " ".join(
            filter(None, (_perhaps_submitted(record, found.unanswered), _outcome(record, found)))
        )
        ids = sorted([*found.left, *found.doubtful])
        tags = {status.mark for status in found.left.values()}
        tags = tags.union(found.doubtful.values(), found.unanswered)
    return replace(record, unaccounted=_unaccounted(record, ids, tags, words)), words


def _outcome(record: Record, found: _Found) -> str:
    """Describe the result for the jobs that were cancelled."""
    if found.left:
        ids = sorted([*found.left, *found.doubtful])
        return _by_hand(record, "Its jobs were cancelled, but some are still listed", ids)
    if found.doubtful:
        return _unproved_words(record, list(found.doubtful))
    cancelled = sorted(found.asked)
    return f"Its jobs were cancelled: {', '.join(cancelled)}." if cancelled else ""


def _unaccounted(
    record: Record, ids: Sequence[str], tags: Set[str], words: str
) -> Unaccounted | None:
    """Return what the record keeps of jobs whose end nothing proves; None without such jobs."""
    if not ids and not tags:
        return None
    command = _typed(record, ids) if ids else ""
    return Unaccounted(tuple(ids), tuple(sorted(tags - {""})), command, words)


def unproved(record: Record, ids: Sequence[str]) -> Unaccounted | None:
    """Return what the record keeps of jobs of a cluster that stops without proof of their end."""
    tags = {job.mark for job in record.jobs if job.id in ids}
    return _unaccounted(record, ids, tags, _unproved_words(record, ids))


def expected(record: Record) -> list[Job]:
    """Return the jobs that a batch system may still have, of a cluster whose head is gone."""
    if on_this_machine(record.spec.backend):
        return []
    # The head's own job counts as ended when its workers have; it lasts as long as the head.
    own = heads_job(record)
    return [job for job in record.jobs if job is own or not job.is_over]


def heads_job_left(record: Record) -> list[str]:
    """Return the id of the head's job where it will be listed for ever once it has ended.

    Nobody else may be there any more to see to that when the cluster is over.
    """
    own = heads_job(record)
    return [own.id] if own is not None and keeps_ended(record.spec.backend) else []


async def remove(queue: Queue, ids: Sequence[str]) -> None:
    """Have jobs listed no more, and try it twice: of an end nobody sees to it later."""
    if (await queue.cancel(ids)).exit_code != 0:
        await asyncio.sleep(queue.backend.hurry_seconds)
        await queue.cancel(ids)


@dataclass(frozen=True)
class _Found:
    """The answer of a batch system about the jobs of a cluster."""

    left: Mapping[str, JobStatus]
    """Jobs that it lists, by id."""
    jobs: Mapping[str, Job]
    """The jobs of the record as they are now, by key: ended, or without proof of an end."""
    doubtful: Mapping[str, str]
    """The marks of jobs that it does not list, and whose end nothing proves, by id."""
    unanswered: frozenset[str]
    """Marks whose submission was not answered, and of which it lists no job."""
    asked: frozenset[str] = frozenset()
    """Ids of the jobs that were listed and alive when they were cancelled."""


async def _cancel(
    queue: Queue, record: Record, spare: str, exits: Mapping[str, int]
) -> _Found | None:
    """Cancel until all is over; return what was found at last, None without any answer."""
    asked: set[str] = set()
    tried: set[str] = set()
    found: _Found | None = None
    for number in range(ROUNDS):
        if number:
            await asyncio.sleep(queue.backend.hurry_seconds)
        now = await _look(queue, record, spare, exits)
        if now is None:
            break
        # A job that was listed once is cancelled, and is no longer listed in the next round.
        seen = now.unanswered if found is None else now.unanswered & found.unanswered
        found = replace(now, unanswered=seen)
        waited_for = [
            id
            for id, status in found.left.items()
            if status.state is not JobState.ENDING and not (status.state in FINAL and id in tried)
        ]
        if not waited_for and not found.doubtful:
            found = replace(found, left={})
            break
        # What is over already is only to be listed no more.
        asked.update(id for id, status in found.left.items() if status.state not in FINAL)
        tried.update(found.left)
        record = _asked_to_end(_with_jobs(record, found.jobs), asked)
        await queue.cancel(sorted([*found.left, *found.doubtful]))
    if found is None:
        return None
    record = _with_jobs(record, found.jobs)
    gone = (
        end(job, JobStatus(job.id, JobState.UNKNOWN), "", time.time())
        for job in record.jobs
        if job.id and not job.is_over and job.id not in {*found.left, *found.doubtful}
    )
    record = _with_jobs(record, {job.key: job for job in gone})
    return replace(found, jobs={job.key: job for job in record.jobs}, asked=frozenset(asked))


def _with_jobs(record: Record, newer: Mapping[str, Job]) -> Record:
    return replace(record, jobs=tuple(newer.get(job.key, job) for job in record.jobs))


def _asked_to_end(record: Record, ids: Set[str]) -> Record:
    """Return the record with the time of our command at each job that it named."""
    now = time.time()
    jobs = (replace(job, cancelled=now) if job.id in ids else job for job in record.jobs)
    return replace(record, jobs=tuple(jobs))


async def _look(
    queue: Queue, record: Record, spare: str = "", exits: Mapping[str, int] | None = None
) -> _Found | None:
    """Look for the jobs of a cluster; None where the batch system does not answer."""
    jobs = {job.id: job for job in expected(record) if job.id}
    # One whose submission was not answered has no id, and is found by its mark.
    nameless = [job for job in expected(record) if not job.id]
    keys = [job.key for job in nameless]
    listing = await queue.poll(() if nameless else tuple(jobs), tuple(jobs), keys)
    if listing is None:
        return None
    lacking = {id: job.mark for id, job in jobs.items() if id not in listing and job.mark != spare}
    trace = await queue.trace(lacking, LOOK_UPS)
    listing = {**listing, **trace.listing}
    evidence = replace(trace, exits=exits or {})
    now, known, doubtful = time.time(), {}, {}
    for id, job in jobs.items():
        status = find_status(job, listing)
        if status is not None:
            job = apply_status(job, status, now)
        elif id in lacking and (proved := _proof(record, job, evidence, now)) is not None:
            # How it ended may be known from when it was listed.
            job = job if job.state in FINAL else end(job, proved[1], proved[0], now)
        elif id in lacking and id not in listing:
            doubtful[id] = job.mark
            if job.state not in FINAL:
                known[job.key] = replace(job, ended=None)
            continue
        if job.is_over:
            known[job.key] = job
    keeps = keeps_ended(record.spec.backend)
    left = {
        id: status
        for id, status in listing.items()
        if (id in jobs or status.mark)
        and is_ours(status, record.id)
        and (status.state not in FINAL or keeps)
        and (not spare or status.mark != spare)
    }
    listed = {status.mark for status in listing.values()}
    unanswered = set()
    for job in nameless:
        if job.mark not in listed:
            job = missed(job, now)
            if is_unproved(job, now):  # nothing else can be asked about it
                job = end(job, JobStatus("", JobState.UNKNOWN, job.mark), "listing", now)
            else:
                unanswered.add(job.mark)
            known[job.key] = job
    return _Found(left, known, doubtful, frozenset(unanswered))


def _proof(
    record: Record, job: Job, evidence: Evidence, now: float
) -> tuple[str, JobStatus] | None:
    """Return the proof that a job has ended, as far as there can be one without a head."""
    if (proved := evidence.of(job)) is not None:
        return proved
    ends, walltime = job.ends, spec_of_group(record.spec, job.group).job.walltime
    if ends is None and job.started is not None and walltime is not None:
        ends = job.started + walltime
    if ends is not None and now > ends + PAST_WALLTIME:
        return "walltime", JobStatus(job.id, JobState.UNKNOWN, job.mark)
    return None


def _perhaps_submitted(record: Record, marks: Iterable[str]) -> str:
    """Warn of jobs that may appear: their submission was under way when the head ended."""
    named = ", ".join(sorted(marks))
    if not named:
        return ""
    return (
        f"{find_backend(record.spec.backend).title} had not answered the submission of {named} and "
        "does not list it: its jobs may appear later. To see them: "
        "jupyter gpucluster list --orphans."
    )


def _unproved_words(record: Record, ids: Sequence[str]) -> str:
    """Report that the end of jobs is not proved, and name the command that ends them."""
    title, jobs = find_backend(record.spec.backend).title, "jobs" if len(ids) > 1 else "job"
    named = f"{jobs} {', '.join(ids)}"
    return _by_hand(record, f"{title} does not list {named}, and nothing proves the end", ids)


def _why(queue: Queue) -> str:
    return f" ({queue.fix.rstrip('.')})" if queue.fix else ""


def _by_hand(record: Record, why: str, ids: Sequence[str] = ()) -> str:
    ids = ids or [job.id for job in expected(record) if job.id]
    told = f"{why}: jobs may be left; they end by themselves minutes after they start."
    if not ids:
        return told
    return f"{told} To end them now: {_typed(record, ids)}"


def _typed(record: Record, ids: Sequence[str]) -> str:
    """Return what to type in a shell to end jobs of a cluster; some say in arguments where."""
    by_arguments = arguments_elsewhere(record.spec.backend, record.spec.job)
    there = {} if by_arguments else routing(record.spec)
    backend = find_backend(record.spec.backend)
    return _shell(there, cancel_command(backend, ids, record.spec.job.cancel_args))


def _shell(variables: Mapping[str, str], argv: Sequence[str]) -> str:
    return " ".join([*(f"{k}={shlex.quote(v)}" for k, v in variables.items()), shlex.join(argv)])
