"""The life of a cluster as one pure function: ``(record, observation, now) -> (record, actions)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..records import (
    ENDED,
    FINAL,
    Clock,
    Event,
    Job,
    JobState,
    JobStatus,
    Phase,
    Record,
    Summary,
    WorkerCounts,
)

ANSWER_GRACE = 60.0
"""Seconds in which a submission whose answer was lost may still appear (a slow controller)."""
LISTINGS_UNTIL_GONE = 2
"""A job is gone only when this many listings in a row lack it and no worker of it is connected."""
CANCEL_AGAIN = 5.0
DEATHS_WINDOW = 600.0
"""Seconds in which the deaths of workers are counted against the policy's replacements."""
KEPT_JOBS = 100


@dataclass(frozen=True)
class Answer:
    """What came of a submission: ids, or a refusal, or neither where the answer was lost."""

    mark: str
    ids: tuple[str, ...] = ()
    refusal: str = ""


@dataclass(frozen=True)
class Observation:
    """What is true now."""

    listing: Mapping[str, JobStatus] | None = None
    """All jobs by id; None where the queueing system was not asked or did not answer."""
    silent_since: float | None = None
    answers: tuple[Answer, ...] = ()
    workers: Mapping[str, str] = field(default_factory=dict)
    """Addresses of connected workers by worker name."""
    desired: int = 0
    """The number of workers wanted now: the fixed target, or what adapting recommends."""
    volunteers: tuple[str, ...] = ()
    """Jobs in the order in which they had best leave."""
    retired: frozenset[str] = frozenset()
    """Jobs whose workers have handed their data over."""
    restarted: frozenset[str] = frozenset()
    """Jobs whose workers ``client.restart()`` has sent away."""
    idle_since: float | None = None
    clients: int = 0
    alone_since: float | None = None
    threads: int = 0
    memory_used: int = 0
    memory_limit: int = 0
    log_hint: Callable[[str], str] = field(default=lambda key: "")
    """Finds the first error line in the log of a job."""


@dataclass(frozen=True)
class Submit:
    """Submit ``count`` jobs under a mark that is already on record."""

    mark: str
    count: int


@dataclass(frozen=True)
class Retire:
    """Let the workers of these jobs finish, and move their data."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class Cancel:
    """Ask the queueing system to end these jobs."""

    ids: tuple[str, ...]


@dataclass(frozen=True)
class Finish:
    """Every job is confirmed to be gone: close the scheduler and end the head."""


@dataclass(frozen=True)
class Note:
    """Write a line of the timeline."""

    event: Event


Action = Submit | Retire | Cancel | Finish | Note


def key_of(job: Job) -> str:
    """Return the name of a job within its cluster, which is also its (first) worker's name."""
    return f"{job.mark}_{job.task}"


def is_alive(job: Job) -> bool:
    """Tell whether a job holds, or will hold, something."""
    return job.state not in FINAL and not (job.state is JobState.UNKNOWN and job.ended is not None)


def staying(record: Record) -> list[Job]:
    """Return the jobs that the cluster has and wants to keep."""
    return [job for job in record.jobs if is_alive(job) and job.leaving is None]


def step(record: Record, seen: Observation, now: float) -> tuple[Record, list[Action]]:
    """Fold what is true now into the record and say what to do about it."""
    if record.phase in ENDED:
        return record, []
    stepper = _Step(record, seen, now)
    stepper.take_answers()
    stepper.take_listing()
    stepper.take_workers()
    stepper.watch_clocks()
    if stepper.record.stop_requested is None:
        stepper.shrink()
        stepper.grow()
    # A step may itself decide to stop.
    if stepper.record.stop_requested is not None:
        stepper.stop()
    else:
        stepper.tell_phase()
    return stepper.record, stepper.actions


class _Step:
    """One step in the making; the order of the methods is the order of `step`."""

    def __init__(self, record: Record, seen: Observation, now: float) -> None:
        self.record = record
        self.seen = seen
        self.now = now
        self.actions: list[Action] = []

    def note(self, kind: str, message: str, job: str = "") -> None:
        self.actions.append(Note(Event(self.now, kind, message, job)))

    def put(self, jobs: Iterable[Job]) -> None:
        """Replace jobs by their newer selves."""
        newer = {key_of(job): job for job in jobs}
        kept = tuple(newer.pop(key_of(job), job) for job in self.record.jobs)
        self.record = replace(self.record, jobs=(*kept, *newer.values()))

    def take_answers(self) -> None:
        for answer in self.seen.answers:
            jobs = [job for job in self.record.jobs if job.mark == answer.mark]
            if answer.refusal:
                self.put(
                    replace(job, state=JobState.FAILED, ended=self.now, cause=answer.refusal)
                    for job in jobs
                )
                self.note("refused", answer.refusal, answer.mark)
                self.end(Phase.FAILED, answer.refusal)
            elif answer.ids:
                self.put(
                    replace(job, id=answer.ids[job.task], state=JobState.PENDING, missing=0)
                    for job in jobs
                    if job.task < len(answer.ids)
                )

    def take_listing(self) -> None:
        listing = self.seen.listing
        if listing is None:
            return
        newer = []
        for job in filter(is_alive, self.record.jobs):
            status = listing.get(job.id) if job.id else self.find_lost(job, listing)
            if status is not None:
                newer.append(self.listed(job, status))
            elif job.id or self.now - job.submitted > ANSWER_GRACE:
                newer.append(self.unlisted(job))
        self.put(newer)

    def find_lost(self, job: Job, listing: Mapping[str, JobStatus]) -> JobStatus | None:
        """Find a job whose submission's answer was lost, by its mark."""
        known = {other.id for other in self.record.jobs}
        found = sorted(s.id for s in listing.values() if s.mark == job.mark and s.id not in known)
        return listing[found[0]] if found else None

    def listed(self, job: Job, status: JobStatus) -> Job:
        newer = replace(
            job,
            id=status.id,
            state=status.state,
            reason=status.reason,
            nodes=status.nodes or job.nodes,
            process=status.process or job.process,
            devices=status.devices or job.devices,
            started=status.started or job.started,
            missing=0,
        )
        if status.state not in FINAL:
            return newer
        return self.ended(replace(newer, exit_code=status.exit_code), status)

    def unlisted(self, job: Job) -> Job:
        if key_of(job) in self.seen.workers:
            return replace(job, missing=0)
        if job.missing + 1 < LISTINGS_UNTIL_GONE:
            return replace(job, missing=job.missing + 1)
        return self.ended(job, JobStatus(job.id, JobState.UNKNOWN, job.mark))

    def ended(self, job: Job, status: JobStatus) -> Job:
        key = key_of(job)
        job = replace(job, state=status.state, ended=status.ended or self.now)
        job = replace(job, excused=job.excused or key in self.seen.restarted)
        if job.leaving is None and not job.excused:
            cause = job.cause or self.seen.log_hint(key)
            job = replace(job, cause=cause)
            word = status.state.value.replace("_", " ")
            self.note("lost", f"{key} ended ({word}){': ' + cause if cause else ''}", key)
        else:
            self.note("left", f"{key} has left", key)
        return job

    def take_workers(self) -> None:
        newer = []
        for job in self.record.jobs:
            if not job.connected and key_of(job) in self.seen.workers:
                newer.append(replace(job, connected=True))
                self.note("worker", f"{key_of(job)} is ready", key_of(job))
        self.put(newer)

    def watch_clocks(self) -> None:
        if self.record.stop_requested is None:
            for clock in clocks(self.record, self.seen):
                if clock.ends is not None and self.now >= clock.ends:
                    self.end(Phase.STOPPED, f"{clock.name.capitalize()} reached.")
                    return

    def end(self, outcome: Phase, reason: str) -> None:
        """Begin to stop; the first reason is the true one."""
        if self.record.stop_requested is None:
            self.record = replace(
                self.record, stop_requested=self.now, outcome=outcome, reason=reason
            )

    def shrink(self) -> None:
        surplus = len(staying(self.record)) - self.seen.desired
        if surplus > 0:
            ranks = {key: rank for rank, key in enumerate(self.seen.volunteers)}
            candidates = sorted(
                enumerate(staying(self.record)),
                # Who never connected goes first, the newest of them before the older.
                key=lambda item: (
                    key_of(item[1]) in self.seen.workers,
                    ranks.get(key_of(item[1]), len(ranks)),
                    -item[0],
                ),
            )
            chosen = [job for _, job in candidates[:surplus]]
            self.put(replace(job, leaving=self.now) for job in chosen)
            working = tuple(key_of(job) for job in chosen if key_of(job) in self.seen.workers)
            # With nobody left to take the data there is nothing to retire to.
            if working and self.seen.desired:
                self.actions.append(Retire(working))
            self.note("scale", f"{surplus} fewer: {', '.join(map(key_of, chosen))}")
        self.cancel(
            job
            for job in self.record.jobs
            if job.leaving is not None
            and (
                key_of(job) in self.seen.retired
                or key_of(job) not in self.seen.workers
                or not self.seen.desired
            )
        )

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Ask for the end of jobs, and again while they are still there."""
        due = [
            job
            for job in jobs
            if is_alive(job)
            and job.id
            and (job.cancelled is None or self.now - job.cancelled >= CANCEL_AGAIN)
        ]
        if due:
            self.put(replace(job, cancelled=self.now) for job in due)
            self.actions.append(Cancel(tuple(job.id for job in due)))

    def grow(self) -> None:
        missing = self.seen.desired - len(staying(self.record))
        if missing <= 0 or self.record.stop_requested is not None:
            return
        deaths = recent_deaths(self.record, self.now)
        if len(deaths) > self.record.spec.policy.replacements:
            why = f"{len(deaths)} workers died within {DEATHS_WINDOW / 60:.0f} minutes"
            cause = next((job.cause for job in reversed(deaths) if job.cause), "")
            reason = f"{why}: {cause}" if cause else f"{why}."
            if staying(self.record):
                self.record = replace(self.record, reason=f"{reason} No more are started for now.")
            else:
                self.end(Phase.FAILED, reason)
            return
        number = self.record.submissions + 1
        mark = f"gpc-{self.record.id}-{number}"
        jobs = [Job(mark, task, submitted=self.now) for task in range(missing)]
        replaced = min(missing, len(deaths)) if deaths else 0
        self.record = replace(
            self.record,
            submissions=number,
            reason="",
            replaced=self.record.replaced + replaced,
        )
        self.put(jobs)
        self.actions.append(Submit(mark, missing))
        self.note("submit", f"{missing} asked for as {mark}", mark)

    def stop(self) -> None:
        alive = [job for job in self.record.jobs if is_alive(job)]
        self.set_phase(Phase.STOPPING)
        leaving = [job if job.leaving else replace(job, leaving=self.now) for job in alive]
        self.put(leaving)
        self.cancel(leaving)
        # A job whose submission was not answered may exist: wait until it can be named.
        if not alive:
            self.record = replace(self.record, ended=self.now)
            self.set_phase(self.record.outcome)
            self.actions.append(Finish())

    def tell_phase(self) -> None:
        counts = count_workers(self.record, self.seen)
        if counts.ready >= counts.asked:
            phase = Phase.RUNNING
        elif counts.ready and not counts.lost:
            phase = Phase.RUNNING
        elif any(job.connected for job in self.record.jobs):
            phase = Phase.DEGRADED
        elif counts.pending and not counts.starting:
            phase = Phase.PENDING
        else:
            phase = Phase.STARTING
        self.set_phase(phase)
        ended = [job for job in self.record.jobs if not is_alive(job)]
        if len(ended) > KEPT_JOBS:
            forgotten = {key_of(job) for job in ended[:-KEPT_JOBS]}
            kept = tuple(job for job in self.record.jobs if key_of(job) not in forgotten)
            self.record = replace(self.record, jobs=kept)

    def set_phase(self, phase: Phase) -> None:
        if phase is not self.record.phase:
            reason = f": {self.record.reason}" if phase in ENDED and self.record.reason else ""
            self.record = replace(self.record, phase=phase, phase_since=self.now)
            self.note("phase", f"{phase.value}{reason}")


def recent_deaths(record: Record, now: float) -> list[Job]:
    """Return the jobs that ended lately although nobody wanted it."""
    return [
        job
        for job in record.jobs
        if job.ended is not None
        and now - job.ended < DEATHS_WINDOW
        and job.leaving is None
        and not job.excused
    ]


def count_workers(record: Record, seen: Observation) -> WorkerCounts:
    """Count workers by how far they are."""
    stay = staying(record)
    ready = sum(key_of(job) in seen.workers for job in stay)
    waiting = sum(
        job.state in (JobState.PENDING, JobState.HELD, JobState.SUBMITTING) for job in stay
    )
    lost = max(0, seen.desired - len(stay)) + sum(
        job.connected and key_of(job) not in seen.workers for job in stay
    )
    starting = sum(
        job.state not in (JobState.PENDING, JobState.HELD, JobState.SUBMITTING)
        and not job.connected
        and key_of(job) not in seen.workers
        for job in stay
    )
    return WorkerCounts(seen.desired, waiting, starting, ready, lost)


def clocks(record: Record, seen: Observation) -> list[Clock]:
    """Return what ends the cluster by itself, and when."""
    policy = record.spec.policy
    found = []
    for name, seconds, since in (
        ("idle time-out", policy.idle_timeout, seen.idle_since),
        ("time-out without a client", policy.no_client_timeout, seen.alone_since),
        ("maximum lifetime", policy.max_lifetime, record.created),
    ):
        if seconds is not None:
            found.append(Clock(name, seconds, None if since is None else since + seconds))
    return found


def describe(record: Record, counts: WorkerCounts, leaving: int) -> str:
    """Say in a few words how far the cluster is."""
    unit = "GPUs" if record.spec.job.gpus else "workers"
    if record.phase is Phase.STOPPING:
        return f"stopping, waiting for {leaving} of its jobs" if leaving else "stopping"
    if record.phase in ENDED:
        return record.phase.value
    parts = [f"{counts.ready} of {counts.asked} {unit} ready"]
    if counts.pending:
        parts.append(f"{counts.pending} waiting")
    if counts.starting:
        parts.append(f"{counts.starting} starting")
    if counts.lost:
        parts.append(f"{counts.lost} lost, being replaced")
    if leaving:
        parts.append(f"{leaving} leaving when their tasks are done")
    return ", ".join(parts)


def summarise(record: Record, seen: Observation, now: float) -> Summary:
    """Return what ``summary.json`` says."""
    counts = count_workers(record, seen)
    leaving = sum(is_alive(job) and job.leaving is not None for job in record.jobs)
    ended = record.phase in ENDED
    return Summary(
        id=record.id,
        name=record.name,
        profile=record.spec.profile,
        phase=record.phase,
        phase_since=record.phase_since,
        reason=record.reason,
        words=describe(record, counts, leaving),
        revision=record.revision,
        written=now,
        workers=WorkerCounts() if ended else counts,
        target=record.target,
        clients=seen.clients,
        threads=seen.threads,
        memory_used=seen.memory_used,
        memory_limit=seen.memory_limit,
        clocks=() if ended else tuple(clocks(record, seen)),
        stale_since=seen.silent_since,
    )
