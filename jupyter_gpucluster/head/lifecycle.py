"""The life of a cluster: a pure ``(record, observation, now) -> (record, actions)``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..records import ENDED, FINAL, Event, Job, JobState, JobStatus, Phase, Record
from ..submission import COMMAND_SECONDS
from .situation import (
    DEATHS_WINDOW,
    Action,
    Answer,
    Cancel,
    Finish,
    Note,
    Observation,
    Retire,
    Submit,
    clocks,
    count_workers,
    is_alive,
    jobs_wanted,
    key_of,
    recent_deaths,
    staying,
)

ANSWER_GRACE = COMMAND_SECONDS + 60.0
"""Seconds from a submission to giving it up: the command may take its time to go unanswered, and
what it asked for may appear a minute later (a slow controller)."""
LISTINGS_UNTIL_GONE = 2
"""A job is gone only when this many listings in a row lack it and no worker of it is connected."""
CANCEL_AGAIN = 5.0
KEPT_JOBS = 100


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
        self.died = 0

    def note(self, kind: str, message: str, job: str = "") -> None:
        self.actions.append(Note(Event(self.now, kind, message, job)))

    def put(self, jobs: Iterable[Job]) -> None:
        """Replace jobs by their newer selves."""
        newer = {key_of(job): job for job in jobs}
        kept = tuple(newer.pop(key_of(job), job) for job in self.record.jobs)
        self.record = replace(self.record, jobs=(*kept, *newer.values()))

    def take_answers(self) -> None:
        for answer in self.seen.answers:
            # A job that a listing has named knows better than its submission's answer.
            jobs = [job for job in self.record.jobs if job.mark == answer.mark and not job.id]
            if answer.refusal:
                self.refuse([job for job in jobs if is_alive(job)], answer)
            else:
                self.put(
                    replace(
                        job,
                        id=answer.ids[job.task],
                        state=JobState.PENDING,
                        ended=None,
                        missing=0,
                        cause="",
                    )
                    for job in jobs
                    if job.task < len(answer.ids)
                )

    def refuse(self, jobs: list[Job], answer: Answer) -> None:
        """Take a refusal: the end of a cluster that has nothing else, a death to any other."""
        self.put(
            replace(job, state=JobState.FAILED, ended=self.now, cause=answer.refusal)
            for job in jobs
        )
        self.note("refused", answer.refusal, answer.mark)
        if not staying(self.record) and any(job.leaving is None for job in jobs):
            self.end(Phase.FAILED, answer.refusal)

    def take_listing(self) -> None:
        listing = self.seen.listing
        if listing is None:
            return
        # A job whose submission's answer was lost has no id yet.
        places = {(status.mark, status.task): status for status in listing.values()}
        newer = []
        for job in self.record.jobs:
            status = listing.get(job.id) if job.id else places.get((job.mark, job.task))
            if is_alive(job):
                if status is not None:
                    newer.append(self.listed(job, status))
                elif job.id or self.now - job.submitted > ANSWER_GRACE:
                    newer.append(self.unlisted(job))
            elif status is not None and status.state not in FINAL:
                # Accepted after we had given it up, requeued, or lacking in two bad listings.
                newer.append(self.listed(self.back(job), status))
        self.put(newer)

    def back(self, job: Job) -> Job:
        """Take back that a job has ended."""
        self.note("back", f"{key_of(job)} is there after all", key_of(job))
        return replace(job, ended=None, exit_code=None, missing=0, cause="")

    def listed(self, job: Job, status: JobStatus) -> Job:
        newer = replace(
            job,
            id=status.id,
            state=status.state,
            reason=self.seen.explain(status) or status.reason,
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
        key = key_of(job)
        status = self.seen.history.get(job.id)
        if status is None or status.state not in FINAL:
            code = self.seen.exits.get(key)
            ended = JobState.UNKNOWN if code is None else JobState.FAILED if code else JobState.DONE
            status = JobStatus(job.id, ended, job.mark, exit_code=code)
        return self.ended(replace(job, exit_code=status.exit_code), status)

    def ended(self, job: Job, status: JobStatus) -> Job:
        key = key_of(job)
        job = replace(job, state=status.state, ended=status.ended or self.now)
        job = replace(job, excused=job.excused or key in self.seen.restarted)
        if job.leaving is None and not job.excused:
            self.died += 1
            cause = self.find_cause(key, status)
            if not cause and not job.id:
                cause = "Its submission was not answered, and it never appeared."
            job = replace(job, cause=cause)
            word = status.state.value.replace("_", " ")
            self.note("lost", f"{key} ended ({word}){': ' + cause if cause else ''}", key)
        else:
            self.note("left", f"{key} has left", key)
        return job

    def find_cause(self, key: str, status: JobStatus) -> str:
        """Say why a job ended in the backend's words, and the log's where it ended by itself."""
        explained = self.seen.explain(status)
        by_itself = status.state not in FINAL or (
            status.state is JobState.FAILED and (status.exit_code is None or status.exit_code > 0)
        )
        hint = self.seen.log_hint(key) if by_itself or not explained else ""
        return f"{explained} {hint}".strip()

    def take_workers(self) -> None:
        newer = []
        for job in self.record.jobs:
            if key_of(job) not in self.seen.workers:
                continue
            if job.state is JobState.UNKNOWN and not is_alive(job):
                newer.append(job := self.back(job))
            if not job.connected:
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
        surplus = len(staying(self.record)) - jobs_wanted(self.record, self.seen.desired)
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
            self.note("scale", f"{surplus} fewer: {', '.join(map(key_of, chosen))}")
        leaving = [job for job in self.record.jobs if is_alive(job) and job.leaving is not None]
        # With nobody left to take the data there is nothing to retire to.
        working = self.seen.workers.keys() - self.seen.retired if self.seen.desired else set()
        retiring = dict.fromkeys(
            key_of(job) for job in leaving if key_of(job) in working and job.cancelled is None
        )
        if retiring:
            self.actions.append(Retire(tuple(retiring)))
        self.cancel(job for job in leaving if key_of(job) not in retiring)

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
        missing = jobs_wanted(self.record, self.seen.desired) - len(staying(self.record))
        if missing <= 0 or self.record.stop_requested is not None:
            if self.record.stop_requested is None:
                self.record = replace(self.record, reason="")
            return
        deaths = recent_deaths(self.record, self.now)
        if len(deaths) > self.record.spec.policy.replacements:
            why = f"{len(deaths)} workers failed within {DEATHS_WINDOW / 60:.0f} minutes"
            cause = next((job.cause for job in reversed(deaths) if job.cause), "")
            reason = f"{why}: {cause}" if cause else f"{why}."
            if staying(self.record):
                self.record = replace(self.record, reason=f"{reason} No more are started for now.")
            else:
                self.end(Phase.FAILED, reason)
            return
        replaced = min(missing, self.died)
        self.record = replace(self.record, reason="", replaced=self.record.replaced + replaced)
        while missing > 0:
            count = min(missing, self.seen.most_tasks)
            self.submit(count)
            missing -= count

    def submit(self, count: int) -> None:
        """Put a submission on record, which is what makes it safe to send."""
        number = self.record.submissions + 1
        mark = f"gpc-{self.record.id}-{number}"
        self.record = replace(self.record, submissions=number)
        self.put(Job(mark, task, submitted=self.now) for task in range(count))
        self.actions.append(Submit(mark, count))
        self.note("submit", f"{count} asked for as {mark}", mark)

    def stop(self) -> None:
        alive = [job for job in self.record.jobs if is_alive(job)]
        self.set_phase(Phase.STOPPING)
        leaving = [
            job if job.leaving is not None else replace(job, leaving=self.now) for job in alive
        ]
        self.put(leaving)
        self.cancel(leaving)
        # A job whose submission was not answered may exist: wait until it can be named.
        if not alive:
            self.record = replace(self.record, ended=self.now)
            self.set_phase(self.record.outcome)
            self.actions.append(Finish())

    def tell_phase(self) -> None:
        counts = count_workers(self.record, self.seen)
        if counts.ready >= counts.asked or (counts.ready and not counts.lost):
            phase = Phase.RUNNING
        elif any(
            job.connected for job in (*staying(self.record), *recent_deaths(self.record, self.now))
        ):
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
