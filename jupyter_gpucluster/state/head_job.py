"""The job of a head that runs in one: submit it, and watch it until the head speaks for itself."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace

from ..batch import find_backend, routed
from ..batch.base import worded
from ..batch.queue import ProcessRunner, Queue, listing_period, run_aside, submit_line
from ..batch.status_cache import AFTER_CHANGE, boot_time
from ..batch.variables import inherited
from ..core.absence import LISTINGS_UNTIL_GONE, is_unproved, since_when
from ..core.cluster import Phase, Record, heads_job
from ..core.errors import BackendUnavailable, StateError
from ..core.job import FINAL, WAITING, Job, JobState, JobStatus, Submission
from ..core.job_updates import apply_absence, apply_status, find_status
from ..core.summary import Summary, WorkerCounts, summary_of
from ..head.reconcile.listing import open_queue
from ..host.cluster_directory import ClusterDirectory, tail
from ..host.log_diagnosis import first_error, log_end
from ..host.private_files import write_private
from ..host.processes import is_alive
from ..host.startup_watch import SlowStarts
from .background import start_module

ANSWER_SECONDS = 10.0
"""Whoever looks at a cluster waits for this long at most for the batch system."""
RELAY_SECONDS = 30.0
"""A relay that has ended is not started anew more often."""
LOST_SECONDS = 180.0
"""A job whose submission was not answered, and that nothing lists by then, was never accepted."""


def submit(directory: ClusterDirectory, record: Record) -> None:
    """Submit the job that the head of a new cluster is to run in.

    Its mark is on record; an answer that is lost is made up for by `watch`.

    Raises
    ------
    BackendError
        The batch system refused.
    """
    job = known_job(directory, record)
    script = directory.script(job.mark)
    text = script.read_text("utf-8").replace("@MARK@", job.mark)
    write_private(script, text.encode())
    # Cobalt and OAR execute the file itself.
    script.chmod(0o700)
    sent = Submission(
        job.mark,
        str(script),
        gpus=record.spec.job.gpus,
        text=text,
        arguments=record.spec.job.submit_args,
    )
    runner, root = ProcessRunner(variables_of(record)), directory.root
    queue = Queue(find_backend(record.spec.backend), runner, root=root)
    write_private(directory.command(job.mark), submit_line(queue.backend, sent).encode())
    try:
        ids = run_aside(queue.submit(sent))
    except BackendUnavailable:
        ids = ()
    state = JobState.PENDING if ids else JobState.SUBMITTING
    directory.write_headjob(replace(job, id=ids[0] if ids else "", state=state))


def known_job(directory: ClusterDirectory, record: Record) -> Job:
    """Return the head's job as it was last seen."""
    job = directory.read_headjob() or heads_job(record)
    assert job is not None  # noqa: S101  # for mypy: only clusters with a head in a job come here
    return job


def variables_of(record: Record) -> dict[str, str]:
    """Return the variables of commands that ask about a cluster's jobs."""
    return routed(record.spec, inherited(os.environ))


def watch(directory: ClusterDirectory, record: Record) -> Job:
    """Return what is known of the head's job, and ask the batch system where that is old."""
    known = known_job(directory, record)
    age = age_of_answer(directory)
    if known.is_over or (age is not None and age < AFTER_CHANGE[0]):
        return known
    newer = known
    # A stalled or full file server: the next look asks again.
    with contextlib.suppress(StateError):
        newer = run_aside(ask(directory, record, known))
    return newer


def quick_queue(directory: ClusterDirectory, record: Record) -> Queue:
    """Return the cluster's batch system, whose answers are not waited for long."""
    return open_queue(
        directory, record, ProcessRunner(variables_of(record), seconds=ANSWER_SECONDS)
    )


def age_of_answer(directory: ClusterDirectory) -> float | None:
    """Return the seconds since the last answer about the job; None if there was none."""
    with contextlib.suppress(OSError):
        return abs(time.time() - directory.headjob_file.stat().st_mtime)
    return None


async def ask(directory: ClusterDirectory, record: Record, job: Job) -> Job:
    """Ask the batch system about the job, if that is due; without an answer nothing changes."""
    queue = quick_queue(directory, record)
    if (shared := queue.shared) is not None:
        shared.note_change(boot_time() - max(0.0, time.time() - job.submitted))
        if (age := age_of_answer(directory)) is not None:
            shared.seen = boot_time() - age  # an answer counts once, whichever process takes it
    ids, nameless = ([job.id], []) if job.id else ([], [job.key])
    poll = await queue.look(ids, listing_period(record), nameless=nameless)
    if poll.listing is None:
        return job
    newer = await take(queue, directory, job, poll.listing)
    directory.write_headjob(newer)
    return newer


async def take(
    queue: Queue, directory: ClusterDirectory, job: Job, listing: Mapping[str, JobStatus]
) -> Job:
    """Apply a listing to the job."""
    backend, status = queue.backend, find_status(job, listing)
    if status is None:
        return await unlisted(queue, directory, job)
    job = listed(job, status, backend.explain(status))
    if job.state is not JobState.RUNNING:
        return job
    return replace(
        job, reason=SlowStarts(directory.logs).told_of(job, time.time(), "its scheduler")
    )


def listed(job: Job, status: JobStatus, reason: str) -> Job:
    """Apply a status to the job; one that can never start is over, and gets cancelled so."""
    now = time.time()
    job = apply_status(job, status, now, reason=reason)
    if status.unsatisfiable:
        job = replace(job, state=JobState.FAILED, ended=now)
    return replace(job, cause=job.reason) if job.is_over else job


async def unlisted(queue: Queue, directory: ClusterDirectory, job: Job) -> Job:
    """Return the job that a listing lacks, ended with proof; one bad listing is no proof."""
    backend, now = queue.backend, time.time()
    if not job.id:
        if now - job.submitted < LOST_SECONDS:
            return job
        cause = f"{backend.title} did not answer its submission and has no such job."
        return replace(job, state=JobState.FAILED, ended=now, cause=cause)
    trace = await queue.trace({job.id: job.mark})
    if (status := find_status(job, trace.listing)) is not None:
        return listed(job, status, backend.explain(status))
    job, proof = apply_absence(job, replace(trace, exits=directory.exit_codes()), now)
    if proof is not None:
        return replace(job, cause=backend.explain(proof))
    if job.missing < LISTINGS_UNTIL_GONE:
        return job
    told = f"not in {backend.title}'s listing since {since_when(job)}"
    if not is_unproved(job, now):
        return replace(job, reason=f"Its scheduler's job is {told}; asking again.")
    await queue.cancel([job.id])
    cause = f"It is {told}, and nothing proves that it has ended; it was cancelled."
    return replace(job, state=JobState.UNKNOWN, ended=now, cause=cause)


def begun(directory: ClusterDirectory, record: Record) -> tuple[Record, Summary]:
    """Return record and summary of a cluster whose head is there and has said nothing yet."""
    job = replace(known_job(directory, record), state=JobState.RUNNING, reason="")
    return waiting(record, job)


def waiting(record: Record, job: Job) -> tuple[Record, Summary]:
    """Return the record and the summary of a cluster whose head has not come yet."""
    phase = Phase.PENDING if job.state in WAITING else Phase.STARTING
    wanted = -(-record.target.minimum // record.spec.worker.per_job) * record.spec.worker.per_job
    if phase is Phase.PENDING:
        words = "its scheduler waits in the queue, in one job with the first workers"
        counts = WorkerCounts(wanted, pending=wanted)
    else:
        words = "its scheduler's job has begun"
        counts = WorkerCounts(wanted, starting=wanted)
    since = (job.started or record.phase_since) if phase is Phase.STARTING else record.created
    record = replace(record, phase=phase, phase_since=since, reason=job.reason, jobs=(job,))
    summary = summary_of(record, words, time.time())
    return record, replace(summary, workers=counts, expected_start=job.expected_start)


def keep_relay(directory: ClusterDirectory, record: Record) -> None:
    """See to it that the relay runs, where the head needs one; on its own host only."""
    if not record.spec.relayed:
        return
    relay = directory.read_relay()
    if relay is not None and is_alive(relay) is not False:
        return
    begun = directory.path / ".relay.begun"
    with contextlib.suppress(OSError):
        if time.time() - begun.stat().st_mtime < RELAY_SECONDS:
            return
    log = directory.logs / "relay.log"
    with contextlib.suppress(OSError, StateError):
        begun.touch(mode=0o600)
        directory.relay.mkdir(mode=0o700, exist_ok=True)
        if not log.exists():
            write_private(log, b"")
        with log.open("ab") as stream:
            start_module("relay", directory, stream.fileno())


def wait_gone(directory: ClusterDirectory, record: Record, seconds: float) -> None:
    """Wait until the batch system has ended the job of a head that has said its last word."""
    job = heads_job(record)
    if job is None or not job.id:
        return
    queue = quick_queue(directory, record)
    if queue.shared is not None:
        queue.shared.note_change()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        poll = run_aside(queue.look([job.id], listing_period(record)))
        status = find_status(job, poll.listing or {})
        if poll.asked and (status is None or status.state in FINAL):
            return  # also without an answer: the script ends by itself
        time.sleep(min(poll.again or AFTER_CHANGE[0], max(0.0, deadline - time.monotonic())))


def end_reason(directory: ClusterDirectory, record: Record, job: Job) -> str:
    """Return why a cluster is over whose head was in this job."""
    when = (
        "ended before the scheduler was up" if record.head is None else "is gone with the scheduler"
    )
    state = f" ({job.state.value.replace('_', ' ')})" if job.is_over else ""
    code = "" if job.exit_code is None else f" Exit code {worded(job.exit_code)}."
    name = f"Its scheduler's job {job.id}" if job.id else "Its scheduler's job"
    told = f"{name} {when}{state}."
    cause = job.cause or job.reason if job.is_over else ""
    parts = (told, cause, code.strip() if str(job.exit_code) not in cause else "")
    said = first_error(log_lines(directory, job))
    if not said and (not cause or (job.exit_code or 0) > 0):
        said = log_end(log_lines(directory, job))
    return " ".join(part for part in (*parts, said) if part)


def log_lines(directory: ClusterDirectory, job: Job) -> list[str]:
    """Return the last lines of each log of the head and of its job."""
    key = job.key
    names = ("head.log", f"{key}.log", f"{job.mark}.{job.task}.out", f"{job.mark}.out")
    return [line for name in names for line in tail(directory.logs / name, 50).splitlines()]
