"""Apply observations (submit results, listings, connected workers) to the record.

`core.job_updates` applies a status to one job; here is what follows for the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from signal import SIGKILL
from typing import Any

from ...batch import on_this_machine
from ...batch.queue import COMMAND_SECONDS
from ...core.absence import LISTINGS_UNTIL_GONE, since_when
from ...core.cluster import Phase, Record
from ...core.job import FINAL, WAITING, Job, JobState, JobStatus
from ...core.job_updates import apply_absence, apply_status, find_status
from ...core.summary import Event
from . import model
from .model import Action, Answer, Note, Observation, active, given_up_unlisted

ANSWER_GRACE = COMMAND_SECONDS + 60.0
"""Seconds from a submission to giving it up: the command may take its time to go unanswered, and
what it asked for may appear a minute later (a slow controller)."""


class News:
    """The first half of a step; its methods are called in this order by `decide.step`."""

    def __init__(self, record: Record, seen: Observation, now: float) -> None:
        self.record = record
        self.seen = seen
        self.now = now
        self.actions: list[Action] = []
        self.died = 0
        # The simulated site's clock is pushed on purpose.
        self.same_clock = on_this_machine(record.spec.backend)

    def note(self, kind: str, message: str, job: str = "") -> None:
        self.actions.append(Note(Event(self.now, kind, message, job)))

    def put(self, jobs: Iterable[Job]) -> None:
        """Replace jobs by their newer selves."""
        newer = {job.key: job for job in (*self.record.jobs, *jobs)}
        self.change(jobs=tuple(newer.values()))

    def change(self, **changes: Any) -> None:
        """Change the record."""
        self.record = replace(self.record, **changes)

    def take_answers(self) -> None:
        for answer in self.seen.answers:
            # A job that a listing has named knows better than its submission's answer.
            jobs = [job for job in self.record.jobs if job.mark == answer.mark and not job.id]
            if answer.refusal and jobs:
                self.refuse([job for job in jobs if not job.is_over], answer)
            else:
                named = [(job, id) for job in jobs for id in answer.ids[job.task : job.task + 1]]
                self.put(replace(alive(job), id=id, state=JobState.PENDING) for job, id in named)

    def refuse(self, jobs: list[Job], answer: Answer) -> None:
        """Take a refusal: the end of a cluster that has nothing else, a death to any other."""
        self.put(
            replace(job, state=JobState.FAILED, ended=self.now, cause=answer.refusal)
            for job in jobs
        )
        self.note("refused", answer.refusal, answer.mark)
        if not active(self.record) and any(job.retiring_since is None for job in jobs):
            self.end(Phase.FAILED, answer.refusal)

    def take_listing(self) -> None:
        listing = self.seen.listing
        if listing is None:
            return
        newer = []
        for job in self.record.jobs:
            status = find_status(job, listing, self.seen.found)
            if not job.is_over:
                if status is not None and self.contradicts_worker(job, status):
                    newer.append(self.confirm(replace(job, id=status.id)))
                elif status is not None:
                    newer.append(self.listed(job, status))
                elif job.id or self.now - job.submitted > ANSWER_GRACE:
                    newer.append(self.unlisted(job))
            elif status is not None and status.state not in FINAL | {JobState.ENDING}:
                # Accepted after we had given it up, requeued, or lacking in two bad listings.
                newer.append(self.listed(self.back(job), status))
        self.put(newer)

    def contradicts_worker(self, job: Job, status: JobStatus) -> bool:
        """Determine whether a job is listed as ended although a worker of it is connected.

        The worker is right.  When it goes, the next listing ends the job.  That takes 30 s at most
        after the death of a node: Dask closes connections without an answer after its TCP time-out.

        A cancelled job is the exception: the final state is the answer to our command, and the
        cluster must not wait for a connection that hangs.  If a worker lives on all the same, the
        guard in its job script ends it when the lease is no longer renewed.
        """
        return status.state in FINAL and job.key in self.seen.workers and job.cancelled is None

    def confirm(self, job: Job) -> Job:
        """Return a job that a connected worker proves to live, whatever the listing says."""
        since = job.missing_since if job.given_up else None
        return replace(job, missing=0, missing_since=since)

    def back(self, job: Job) -> Job:
        """Take back that a job has ended, or was given up."""
        self.note("back", f"{job.key} was found again", job.key)
        return alive(job)

    def listed(self, job: Job, status: JobStatus) -> Job:
        reason = self.seen.explain(status)
        newer = apply_status(job, status, self.now, reason=reason, same_clock=self.same_clock)
        if status.state in WAITING and job.started is not None:
            # Its workers start anew, which takes as long as it takes the first time.
            held = job.held + self.now - job.started
            requeued = self.now if job.connected else job.requeued
            newer = replace(newer, held=held, requeued=requeued)
            newer = replace(newer, connected=False, disconnected_since=None)
            words = f": {newer.reason}" if newer.reason else ""
            self.note("requeued", f"{job.key} waits again{words}", job.key)
        return self.ended(newer, status) if newer.is_over else newer

    def unlisted(self, job: Job) -> Job:
        """Count a listing that lacks a job; it has ended only where something proves that."""
        if job.key in self.seen.workers:
            return self.confirm(job)
        seen = self.seen
        job, status = apply_absence(job, seen, self.now, same_clock=self.same_clock)
        if status is not None:
            return self.ended(job, status)
        if job.missing == LISTINGS_UNTIL_GONE:
            told = f"not in {seen.system}'s listing since {since_when(job)}; asking again"
            self.note("missing", f"{job.key} is {told}", job.key)
        return job

    def ended(self, job: Job, status: JobStatus) -> Job:
        """Find out why a job has ended, and whether that counts as a failure."""
        key, cause, wanted = job.key, job.cause, job.retiring_since is None
        expired = model.reached(job, status, self.record)
        job = replace(job, not_counted=job.not_counted or expired or key in self.seen.restarted)
        if expired and key not in self.seen.retired and job.cancelled is None:
            self.expire(job)
            cause = "It reached its walltime; its results went with it."
            words = f"{key} ended at its walltime, before its results were moved"
            self.note("walltime", words, key)
        elif wanted and key in self.seen.restarted and model.left_in_time(job, status, self.record):
            self.expire(job)
            cause = "Its workers left by themselves before its walltime ended."
            self.note("walltime", f"{key} left by itself before its walltime ended", key)
        elif wanted and not job.not_counted:
            self.died += 1
            cause = self.find_cause(key, status)
            if not cause and not job.id:
                cause = "Its submission was not answered, and it never appeared."
            word = status.state.value.replace("_", " ")
            self.note("lost", f"{key} ended ({word}){': ' + cause if cause else ''}", key)
        else:
            self.note("left", f"{key} has left", key)
        return replace(job, cause=cause)

    def expire(self, job: Job) -> None:
        """Count a job that ends by its walltime, where none follows it."""
        unused = model.is_unused(self.record, self.seen.used, self.now)
        if job.retiring_since is None and (unused or self.record.spec.policy.at_walltime == "stop"):
            self.change(expired=self.record.expired + 1)

    def find_cause(self, key: str, status: JobStatus) -> str:
        """Return why a job ended, from the batch system or, if it ended by itself, from its log."""
        explained = self.seen.explain(status)
        by_itself = status.state not in FINAL or (
            status.state is JobState.FAILED and (status.exit_code is None or status.exit_code > 0)
        )
        hint = ""
        if by_itself or not explained:
            hint = self.seen.log_hint(key) or self.seen.log_end(key)
        return " ".join(part for part in (explained, _signal(status, explained), hint) if part)

    def take_workers(self) -> None:
        newer = []
        for job in self.record.jobs:
            if job.key not in self.seen.workers:
                here = self.should_be_here(job) and self.seen.unresponsive_since is None
                since = (job.disconnected_since or self.now) if here else None
                if since != job.disconnected_since:
                    newer.append(replace(job, disconnected_since=since))
                continue
            if job.disconnected_since is not None:
                newer.append(job := replace(job, disconnected_since=None))
            if given_up_unlisted(job) and self.record.stop_requested is None:
                newer.append(job := self.keep(job))
            doubtful = job.cancelled is None or job.state is JobState.UNKNOWN or job.missing
            if doubtful and job.is_over:
                newer.append(job := self.back(replace(job, state=JobState.UNKNOWN)))
            if not job.connected:
                newer.append(replace(job, connected=True))
                self.note("worker", f"{job.key} is ready", job.key)
        self.put(newer)

    def keep(self, job: Job) -> Job:
        """Take back that a job was given up: `shrink` cancels the newer one that still waits."""
        return replace(self.back(job), retiring_since=None, given_up=False, cancelled=None)

    def should_be_here(self, job: Job) -> bool:
        """Return whether a job is listed as running that had workers, and is to have them."""
        listed = job.state is JobState.RUNNING and not job.missing
        return listed and job.connected and job.retiring_since is None

    def end(self, outcome: Phase, reason: str) -> None:
        """Begin to stop; the first reason is the true one."""
        if self.record.stop_requested is None:
            self.change(stop_requested=self.now, outcome=outcome, reason=reason)


def alive(job: Job) -> Job:
    """Return a job that has not ended, and that no listing lacks."""
    found = replace(job, ended=None, exit_code=None, proof="", cause="")
    return replace(found, missing=0, missing_since=None)


def _signal(status: JobStatus, explained: str) -> str:
    """Name the signal that killed a worker, from the exit code of its job's script."""
    number = (status.exit_code or 0) - 128
    if not 0 < number < 65 or "signal" in explained:
        return ""
    memory = ", as when memory runs out" if number == SIGKILL else ""
    return f"Its worker was killed by signal {number}{memory}."
