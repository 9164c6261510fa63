"""The life of a cluster: a pure ``(record, observation, now) -> (record, actions)``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from ...batch import keeps_ended
from ...core.absence import is_unproved, since_when
from ...core.cluster import BY_USER, ENDED, Phase, Record, Target, heads_job
from ...core.job import Job, JobState
from . import model
from .apply_status import News
from .model import (
    Action,
    Cancel,
    Observation,
    active,
    end_of,
    is_unused,
    jobs_wanted,
    without_successor,
)

CANCEL_AGAIN = 5.0
"""Seconds at least; a tenth of the time for which a job is to go, where that is more: a node that
is down holds its jobs for hours."""
CANCEL_SELDOM = 300.0
"""Seconds at most: a job that was unlisted for hours may be listed again, and hold its GPUs."""
CANCEL_UNSEEN = 60.0
"""So long a cancellation is not repeated before a listing shows whether it had an effect."""
ABSENT_CAUSE = (
    f"Its workers did not answer for {model.ABSENT_SECONDS / 60:.0f} min, though it is listed as"
    " running: its node may be down."
)
KEPT_JOBS = 100
BUDGET_WARNING = 0.8
"""Part of the budget of GPU-hours at which the timeline warns."""


def step(record: Record, seen: Observation, now: float) -> tuple[Record, list[Action]]:
    """Fold what is true now into the record and say what to do about it."""
    if record.phase in ENDED:
        return record, []
    stepper = _Step(record, seen, now)
    stepper.take_answers()
    stepper.take_listing()
    stepper.take_workers()
    stepper.remove_ended()
    # While the batch system is silent no job is given up.
    if seen.listing is not None and stepper.record.stop_requested is None:
        stepper.watch_absent()
        stepper.watch_unlisted()
        stepper.watch_hopeless()
    stepper.watch_clocks()
    stepper.watch_budget()
    stepper.watch_idle_gpus()
    stepper.watch_walltimes()
    if stepper.record.stop_requested is None:
        stepper.shrink()
        stepper.grow()
    # A step may itself decide to stop.
    if stepper.record.stop_requested is not None:
        stepper.stop()
    else:
        stepper.tell_phase()
    return stepper.record, stepper.actions


class _Step(News):
    """One step in the making; the order of the methods is the order of `step`."""

    def remove_ended(self) -> None:
        """Cancel what is over, too, where it is listed until somebody does."""
        if self.seen.listing is None or not keeps_ended(self.record.spec.backend):
            return
        listed = [job for job in self.record.jobs if job.id in self.seen.listing]
        self.cancel(job for job in listed if job.is_over)

    def watch_absent(self) -> None:
        """Give jobs up that only the batch system still believes in.

        It is asked to end them, too, which it may be unable to do before their node is back.
        """
        self.give_up(
            (job, ABSENT_CAUSE)
            for job in active(self.record)
            if (since := job.disconnected_since) is not None
            if self.now - since >= model.ABSENT_SECONDS
        )

    def watch_unlisted(self) -> None:
        """Give jobs up that listings lack, and whose end nothing proves; each is replaced once.

        They stay on record, and are cancelled again and again, until there is proof.
        """
        where = f"It is not in {self.seen.system}'s listing"
        unproved = [job for job in active(self.record) if is_unproved(job, self.now)]
        self.give_up(
            (
                (job, f"{where} since {since_when(job)}, and nothing proves that it has ended.")
                for job in unproved
            ),
            "cancelled and replaced",
        )

    def watch_hopeless(self) -> None:
        """Give jobs up that can never start; where there are no others, neither will the next."""
        listing = self.seen.listing or {}
        hopeless = self.give_up(
            (job, job.reason)
            for job in active(self.record)
            if (status := listing.get(job.id)) is not None and status.unsatisfiable
        )
        if hopeless and not active(self.record):
            self.end(Phase.FAILED, hopeless[0].cause)

    def give_up(self, lost: Iterable[tuple[Job, str]], words: str = "given up") -> list[Job]:
        """Let jobs go that are as good as dead, each with the cause; they are cancelled next."""
        jobs = [replace(job, given_up=True, cause=cause) for job, cause in lost]
        jobs = [replace(job, retiring_since=self.now) for job in jobs]
        self.put(jobs)
        self.died += len(jobs)
        for job in jobs:
            self.note("lost", f"{job.key} is {words}: {job.cause}", job.key)
        return jobs

    def watch_clocks(self) -> None:
        if self.record.stop_requested is None:
            for clock in model.clocks(self.record, self.seen):
                if clock.ends is not None and self.now >= clock.ends:
                    name = clock.name[0].upper() + clock.name[1:]
                    self.end(Phase.STOPPED, f"{name} reached.")
                    return

    def watch_budget(self) -> None:
        """Warn once when most of the budget of GPU-hours is used."""
        budget, used = self.record.spec.policy.gpu_hours, model.gpu_hours(self.record, self.now)
        if budget is None or self.record.budget_told or used < BUDGET_WARNING * budget:
            return
        self.change(budget_told=True)
        words = f"{used:.1f} of {budget:g} GPU-hours are used; the cluster stops when all are"
        self.note("budget", words)

    def watch_idle_gpus(self) -> None:
        """Warn of GPUs that do nothing, or let all jobs but one go; `clocks` may stop them all."""
        policy, since = self.record.spec.policy, self.seen.gpus_idle_since
        after = policy.idle_gpus_after
        if after is None or since is None or self.now - since < after:
            return
        if self.record.idle_told == since or policy.idle_gpus_action == "stop":
            return
        self.change(idle_told=since)
        words = f"No GPU has computed for {(self.now - since) // 60:.0f} min"
        one = self.record.spec.worker.per_job
        target = self.record.target
        if policy.idle_gpus_action == "shrink" and not target.adaptive and target.maximum > one:
            self.change(target=Target(one, one), expired=0)
            words += f": from {target.maximum} to {one}"
        self.note("idle", words)

    def watch_walltimes(self) -> None:
        """Ask for successors in time, and let those go that are relieved or must drain."""
        if self.record.stop_requested is not None:
            return
        unused = is_unused(self.record, self.seen.used, self.now)
        if self.record.spec.policy.while_used and not unused and self.record.expired:
            self.change(expired=0)
            self.note("walltime", "Tasks run again: jobs that reached their walltime are replaced")
        self.relieve(unused)
        wanted = jobs_wanted(self.record, self.seen.desired)
        working = [job for job in active(self.record) if job.key in self.seen.workers]
        due = {job.key for job in working if self.is_past(model.drain_time(job, self.record))}
        others = sum(job.key not in due and job.successor_requested_at is None for job in working)
        relieved = [job for job in active(self.record) if job.successor_requested_at is not None]
        spare = max(0, len(relieved) - max(0, wanted - others))
        chosen = sorted(relieved, key=lambda job: end_of(job, self.record) or 0.0)[:spare]
        # With nobody who lasts longer to take its results, a worker works on until somebody comes.
        awake = [job for job in working if job.state is not JobState.SUSPENDED]
        latest = max((end_of(job, self.record) or inf for job in awake), default=0.0)
        margin = self.record.spec.policy.drain_before or 0.0
        chosen += [
            job
            for job in working
            if job.key in due and latest - (end_of(job, self.record) or inf) >= margin
            if job not in chosen
        ]
        for job in chosen:
            self.expire(job)
            self.note("walltime", f"{job.key} leaves before its walltime ends", job.key)
        self.put(replace(job, retiring_since=self.now) for job in chosen)
        if self.record.expired and not wanted and all(job.is_over for job in self.record.jobs):
            idle = f"no task ran in the last {self.window()}"
            why = idle if unused else "`at_walltime` is `stop`"
            self.end(Phase.STOPPED, f"All jobs reached their time limit, and {why}.")

    def relieve(self, unused: bool) -> None:
        """Note whose walltime ends so soon that a successor must be asked for, if any is."""
        due = [
            job
            for job in without_successor(self.record)
            if job.connected and self.is_past(model.relief_time(job, self.record))
        ]
        if unused:
            due = [job for job in due if job.without_successor_since is None]
            self.put(replace(job, without_successor_since=self.now) for job in due)
        else:
            self.put(replace(job, successor_requested_at=self.now) for job in due)
        for job in due:
            asked = f"Requested a successor of {job.key}: its walltime ends"
            self.note("walltime", self.no_successor(job) if unused else asked, job.key)

    def no_successor(self, job: Job) -> str:
        """Return that a job gets no successor, what is lost with it, and how to keep it."""
        left = max(0.0, (end_of(job, self.record) or self.now) - self.now)
        held = self.seen.results.get(job.key, 0)
        lost = f", with {held / 2**20:.0f} MiB of results in its memory" if held else ""
        return (
            f"{job.key} ends in {left / 60:.0f} min{lost}, and gets no successor: no task ran in"
            f" the last {self.window()}. Run a task to keep the workers."
        )

    def window(self) -> str:
        seconds = model.used_window(self.record)
        return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"

    def is_past(self, time: float | None) -> bool:
        return time is not None and self.now >= time

    def shrink(self) -> None:
        stay, own = without_successor(self.record), heads_job(self.record)
        surplus = len(stay) - jobs_wanted(self.record, self.seen.desired)
        if self.record.target.adaptive and own in stay:
            # Without its workers the head's job would hold as much as with them.
            surplus = min(surplus, len(stay) - 1)
        if surplus > 0:
            ranks = {key: rank for rank, key in enumerate(self.seen.volunteers)}
            chosen = sorted(
                reversed(stay),
                # Who never connected goes first, the newest of them before the older.
                key=lambda job: (
                    job == own,
                    job.key in self.seen.workers,
                    ranks.get(job.key, len(ranks)),
                ),
            )[:surplus]
            self.put(replace(job, retiring_since=self.now) for job in chosen)
            self.note("scale", f"Ending {surplus}: {', '.join(job.key for job in chosen)}")
        alive = [job for job in self.record.jobs if not job.is_over]
        leaving = [job for job in alive if job.retiring_since is not None]
        # With nobody left to take the data there is nothing to retire to.
        working = self.seen.workers.keys() - self.seen.retired if self.seen.desired else set()
        retiring = dict.fromkeys(
            job.key for job in leaving if job.key in working and job.cancelled is None
        )
        if retiring:
            self.actions.append(model.Retire(tuple(retiring)))
        self.cancel(job for job in leaving if job.key not in retiring)

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Ask for the end of jobs, and again while they are still there.

        An id that the system does not know, or has given to another job, is left alone.
        """
        due = [
            job
            for job in jobs
            if job.id
            and job.id not in self.seen.unknown
            and (job.cancelled is None or self.now - job.cancelled >= self.patience(job))
        ]
        if due:
            self.put(replace(job, cancelled=self.now) for job in due)
            self.actions.append(Cancel(tuple(job.id for job in due)))

    def patience(self, job: Job) -> float:
        """Return after how many seconds to ask again for the end of a job."""
        since, listed = job.retiring_since or job.ended, self.seen.listed
        unseen = listed is not None and job.cancelled is not None and listed <= job.cancelled
        waited = 0.0 if since is None else min((self.now - since) / 10, CANCEL_SELDOM)
        return max(CANCEL_UNSEEN if unseen else CANCEL_AGAIN, waited)

    def grow(self) -> None:
        wanted = jobs_wanted(self.record, self.seen.desired)
        lasts = len(without_successor(self.record))
        missing = wanted - lasts
        if missing <= 0 or self.seen.unsaved:
            self.change(reason=self.seen.unsaved if missing > 0 else "")
            return
        deaths = model.recent_deaths(self.record, self.now)
        if len(deaths) > self.record.spec.policy.replacements:
            failed = f"{len(deaths)} worker{'s' if len(deaths) > 1 else ''} failed"
            why = f"{failed} within {model.DEATHS_WINDOW / 60:.0f} minutes"
            cause = next((job.cause for job in reversed(deaths) if job.cause), "")
            reason = f"{why}: {cause}" if cause else f"{why}."
            if active(self.record):
                self.change(reason=f"{reason} No more are started for now.")
            else:
                self.end(Phase.FAILED, reason)
            return
        # Each wanted job is submitted at most once more while the first may still live.
        unproved = sum(model.given_up_unlisted(job) and job.missing > 0 for job in self.record.jobs)
        missing = min(missing, 2 * wanted - lasts - unproved)
        if missing <= 0:
            system = self.seen.system[0].upper() + self.seen.system[1:]
            words = f"{system} does not list {unproved} jobs that were cancelled"
            no_more = "No more are submitted until their end is proved."
            self.change(reason=f"{words}, and nothing proves that they have ended. {no_more}")
            return
        self.change(reason="", replaced=self.record.replaced + min(missing, self.died))
        while missing > 0:
            count = min(missing, self.seen.most_tasks)
            self.submit(count)
            missing -= count

    def submit(self, count: int) -> None:
        """Put a submission on record, which is what makes it safe to send."""
        number = self.record.submissions + 1
        mark = f"gpc-{self.record.id}-{number}"
        self.change(submissions=number)
        self.put(Job(mark, task, submitted=self.now) for task in range(count))
        self.actions.append(model.Submit(mark, count))
        workers = count * self.record.spec.worker.per_job
        unit = "worker" if workers == 1 else "workers"
        self.note("submit", f"Requested {workers} {unit} (job {mark})", mark)

    def stop(self) -> None:
        self.set_phase(Phase.STOPPING)
        self.put(replace(job, retiring_since=self.now) for job in active(self.record))
        alive = [job for job in self.record.jobs if not job.is_over]
        self.cancel(alive)
        # A relay answers no more once the end is on record; what is removed now goes before it.
        removing = any(isinstance(action, Cancel) for action in self.actions)
        unproved = self.unproved_at_last(alive)
        # A job whose submission was not answered may exist: wait until it can be named.
        if (not alive or unproved) and not removing:
            left = self.seen.unproved(unproved) if unproved else None
            reason = self.record.reason or BY_USER
            if left is not None:
                reason = f"{reason} {left.words}"
            self.change(ended=self.now, reason=reason, unaccounted=left)
            self.set_phase(self.record.outcome)
            self.actions.append(model.Finish())

    def unproved_at_last(self, alive: Sequence[Job]) -> tuple[str, ...]:
        """Return the ids of what a stopping cluster waits for no longer; nothing if it waits."""
        asked, patience = self.record.stop_requested, self.record.spec.policy.unproved_after
        if self.seen.listing is None or asked is None:
            return ()
        waited = self.now - asked - self.seen.silence >= patience
        unproved = all(is_unproved(job, self.now) and job.id for job in alive)
        return tuple(job.id for job in alive) if waited and unproved else ()

    def tell_phase(self) -> None:
        counts = model.count_workers(self.record, self.seen)
        known = [*active(self.record), *model.recent_deaths(self.record, self.now)]
        if counts.ready >= counts.asked or (counts.ready and not counts.lost):
            phase = Phase.RUNNING
        elif any(job.connected for job in known):
            phase = Phase.DEGRADED
        elif counts.pending and not counts.starting:
            phase = Phase.PENDING
        else:
            phase = Phase.STARTING
        self.set_phase(phase)
        own = heads_job(self.record)
        forgotten = [job for job in self.record.jobs if job.is_over and job != own][:-KEPT_JOBS]
        if forgotten:
            kept = tuple(job for job in self.record.jobs if job not in forgotten)
            seconds = sum(model.held_seconds(job, self.now) for job in forgotten)
            self.change(jobs=kept, forgotten_seconds=self.record.forgotten_seconds + seconds)

    def set_phase(self, phase: Phase) -> None:
        if phase is not self.record.phase:
            reason = f": {self.record.reason}" if phase in ENDED and self.record.reason else ""
            self.change(phase=phase, phase_since=self.now)
            self.note("phase", f"{phase.value}{reason}")
