"""Observations that `decide` takes, actions that it returns, and figures of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...core.absence import Evidence
from ...core.cluster import Policy, Record, Unaccounted, heads_job
from ...core.job import WAITING, Job, JobState, JobStatus
from ...core.summary import IDLE_NAME, Clock, Event, WorkerCounts

DEATHS_WINDOW = 600.0
"""Seconds in which the deaths of workers are counted against the policy's replacements."""
STANDING_STILL = WAITING | {JobState.SUSPENDED}
"""Also of a job that holds what it has; its workers stay connected, yet compute nothing."""
ABSENT_SECONDS = 300.0
"""A job that is listed as running, and whose workers stay away for so long, is given up: some
systems never learn that a node is down.  A worker that finds no scheduler ends after a minute."""
LAST_SECONDS = 60.0
"""A head in a job stops so long before its job's walltime: files and jobs want to be tidied up."""

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


@dataclass(frozen=True)
class Answer:
    """The result of a submission: ids, or a refusal, or neither if the answer was lost."""

    mark: str
    ids: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class Reported(Evidence):
    """The batch system's answer, or that no question was needed."""

    listing: Mapping[str, JobStatus] | None = None
    """All jobs by id; None where the system was not asked or did not answer."""
    found: Mapping[str, JobStatus] = field(default_factory=dict)
    """Accounting of submissions whose answers were lost, by id."""
    traced: Mapping[str, float] = field(default_factory=dict)
    """Times of the last search for each job that listings lack, by id."""
    again: float = 0.0
    """Seconds until a listing is due, where none was."""
    unresponsive_since: float | None = None
    silence: float = 0.0
    """Seconds without an answer since the cluster began to stop, up to the last answer."""
    fix: str = ""
    """The fix of the silence, if it does not pass by itself."""
    personal: str = ""
    """Names files of the user that may hide jobs, if listings lack some."""


@dataclass(frozen=True)
class Observation(Reported):
    """The present state: the batch system's answers, and the scheduler's state."""

    listed: float | None = None
    """Time of the batch system's last listing of the jobs."""
    answers: tuple[Answer, ...] = ()
    system: str = "the batch system"
    """Its name for users."""
    workers: Mapping[str, int] = field(default_factory=dict)
    """The number of connected workers of each job."""
    desired: int = 0
    """The number of workers wanted now: the fixed target, or what adapting recommends."""
    most_tasks: int = 1000
    """The most jobs that one submission may hold."""
    volunteers: tuple[str, ...] = ()
    """Jobs in the order in which they had best leave."""
    retired: frozenset[str] = frozenset()
    """Jobs whose workers have handed their data over."""
    restarted: frozenset[str] = frozenset()
    """Jobs whose workers ``client.restart()`` has sent away."""
    idle_since: float | None = None
    used: float | None = None
    """Time of the last work of a task; None = no task ran yet."""
    results: Mapping[str, int] = field(default_factory=dict)
    """Bytes of results in the memory of each job's workers."""
    gpus_idle_since: float | None = None
    """Since when no GPU computes; None also where no GPU tells."""
    allocation_ends: float | None = None
    """End of the allocation whose nodes the workers use; None also if it is unknown."""
    alone_since: float | None = None
    held: str = ""
    """Why no more workers start for now, in a sentence."""
    log_hint: Callable[[str], str] = field(default=lambda key: "")
    """Finds the first error line in the log of a job."""
    unsaved: str = ""
    """Why the record cannot be saved, and the fix; empty if it is saved."""
    log_end: Callable[[str], str] = field(default=lambda key: "")
    """Returns the last lines of the log of a job, where it names no error."""
    explain: Callable[[JobStatus], str] = field(default=lambda status: status.reason)
    """Says in a sentence why a job waits or ended."""
    unproved: Callable[[tuple[str, ...]], Unaccounted | None] = field(default=lambda ids: None)
    """Returns what the record keeps of jobs whose end nothing proves, by their ids."""


@dataclass(frozen=True)
class Submit:
    """Submit ``count`` jobs under a mark that is already on record."""

    mark: str
    count: int
    group: str = ""


@dataclass(frozen=True)
class Retire:
    """Let the workers of these jobs finish, and move their data; said again until they have."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class Cancel:
    """Ask the batch system to end these jobs."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Finish:
    """Every job is confirmed to be gone: close the scheduler and end the head."""


@dataclass(frozen=True)
class Note:
    """Write a line of the timeline."""

    event: Event


Action = Submit | Retire | Cancel | Finish | Note


def given_up_unlisted(job: Job) -> bool:
    """Return whether a job was given up because listings lacked it, and may still live."""
    return not job.is_over and job.given_up and job.missing_since is not None


def jobs_wanted(record: Record, workers: int) -> int:
    """Return how many whole jobs hold that many workers, without those that none is to follow."""
    each = record.spec.worker.per_job
    wanted = -(-workers // each)
    if record.expired:
        wanted = min(wanted, -(-record.target.maximum // each) - record.expired)
    return max(0, wanted)


def active(record: Record) -> list[Job]:
    """Return the jobs that the cluster has and wants to keep."""
    return [job for job in record.jobs if not job.is_over and job.retiring_since is None]


def without_successor(record: Record) -> list[Job]:
    """Return the jobs to keep that need no successor yet."""
    return [job for job in active(record) if job.successor_requested_at is None]


def recent_deaths(record: Record, now: float) -> list[Job]:
    """Return the jobs that ended, or were given up, lately without a request.

    What was given up and is still listed holds its nodes: it counts until it is gone.  That the
    system's listing lacks a job is not the job's failure.
    """
    return [
        job
        for job in record.jobs
        if (when := lost_at(job)) is not None
        and (now - when < DEATHS_WINDOW or (job.given_up and not job.is_over))
        and not job.not_counted
        and not (job.given_up and job.missing_since is not None)
    ]


def lost_at(job: Job) -> float | None:
    """Return when a job was lost that was wanted; None = it was not."""
    if job.given_up:
        return job.retiring_since
    return job.ended if job.retiring_since is None else None


def count_workers(record: Record, seen: Observation) -> WorkerCounts:
    """Count workers by how far they are; whole jobs may hold more than were asked for.

    A cluster that stops loses nothing: its jobs are ending.
    """
    each = record.spec.worker.per_job
    wanted = jobs_wanted(record, seen.desired)
    if record.stop_requested is not None:
        ending = sum(not job.is_over for job in record.jobs)
        return WorkerCounts(wanted * each, ending=ending * each)
    stay = active(record)
    pending = starting = ready = 0
    lost = max(0, wanted - len(stay)) * each
    for job in stay:
        suspended = job.state is JobState.SUSPENDED
        connected = 0 if suspended else min(seen.workers.get(job.key, 0), each)
        ready += connected
        if job.state in STANDING_STILL:
            pending += each - connected
        elif job.connected and not connected:
            lost += each
        else:
            starting += each - connected
    return WorkerCounts(wanted * each, pending, starting, ready, lost)


def end_of(job: Job, record: Record) -> float | None:
    """Return when the batch system will end a job, by its own word or by what was asked for."""
    walltime = record.spec.job.walltime
    if job.ends is not None:
        return job.ends
    return None if walltime is None or job.started is None else job.started + walltime


def idle_gpus_limit(policy: Policy) -> float | None:
    """Return after how many seconds of idle GPUs the cluster stops; None = it does not."""
    return policy.idle_gpus_after if policy.idle_gpus_action == "stop" else None


def clocks(record: Record, seen: Observation) -> list[Clock]:
    """Return what ends the cluster by itself, and when."""
    policy = record.spec.policy
    found = []
    for kind, name, seconds, since in (
        ("idle", IDLE_NAME, policy.idle_timeout, seen.idle_since),
        ("no client", "time-out without a client", policy.no_client_timeout, seen.alone_since),
        ("lifetime", "maximum lifetime", policy.max_lifetime, record.created),
        ("idle gpus", "time-out of idle GPUs", idle_gpus_limit(policy), seen.gpus_idle_since),
    ):
        if seconds is not None:
            ends = None if since is None else since + seconds
            found.append(Clock(name, seconds, ends, kind=kind))
    own = heads_job(record)
    end = None if own is None else end_of(own, record)
    if own is not None and own.started is not None and end is not None:
        last = max(own.started, end - LAST_SECONDS)
        name = "walltime of the scheduler's job"
        found.append(Clock(name, last - own.started, last, kind="head walltime"))
    held = record.spec.allocation
    if held is not None and seen.allocation_ends is not None:
        seconds = max(0.0, seen.allocation_ends - record.created)
        name = f"end of {held.name}"
        found.append(Clock(name, seconds, seen.allocation_ends, kind="allocation"))
    if record.spec.job.gpus and policy.gpu_hours is not None:
        name = f"budget of {policy.gpu_hours:g} GPU-hours"
        found.append(Clock(name, 0.0, budget_end(record), kind="gpu hours"))
    return found


def gpu_hours(record: Record, now: float) -> float:
    """Return what the cluster's jobs have held so far: GPUs times hours, running ones up to now."""
    seconds = record.forgotten_seconds + sum(held_seconds(job, now) for job in record.jobs)
    return record.spec.job.gpus * seconds / 3600


def held_seconds(job: Job, now: float) -> float:
    """Return how long a job has held its devices, also before it was requeued."""
    if job.started is None:
        return job.held
    if job.ended is None and job.missing and job.missing_since is not None:
        now = job.missing_since  # the last time at which it was seen
    end = job.ended if job.ended is not None else now if not job.is_over else job.started
    return job.held + max(0.0, end - job.started)


def budget_end(record: Record) -> float | None:
    """Return when the budget of GPU-hours is used up at the rate of now; None = nothing is held."""
    budget, gpus = record.spec.policy.gpu_hours, record.spec.job.gpus
    running = [
        job.started
        for job in record.jobs
        if not job.is_over and job.started is not None and job.state not in WAITING
    ]
    if budget is None or not running:
        return None
    # Since the last of them started all of them hold their GPUs.
    last = max(running)
    return last + (budget - gpu_hours(record, last)) * 3600 / (gpus * len(running))


# Walltime: when jobs reach it, and from when on it is prepared for.


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
        for job in active(record)
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
    if not follows and len(active(record)) == 1:
        return Clock("walltime", seconds, end, kind="walltime")
    words = "a new one follows" if follows else "no new one follows"
    name = f"end of job {job.key}, {words}"
    return Clock(name, seconds, end, job.key, follows, kind="walltime")
