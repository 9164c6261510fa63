"""Random worlds against the pure lifecycle: nothing leaks, nothing is submitted twice."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from jupyter_gpucluster.core.cluster import ENDED, Phase, Policy, Record, Unaccounted
from jupyter_gpucluster.core.job import FINAL, JobState, JobStatus
from jupyter_gpucluster.core.serialize import to_json
from jupyter_gpucluster.head.reconcile import decide, model
from jupyter_gpucluster.head.reconcile.apply_status import ANSWER_GRACE
from jupyter_gpucluster.head.reconcile.model import (
    DEATHS_WINDOW,
    Action,
    Answer,
    Cancel,
    Finish,
    Observation,
    Retire,
    Submit,
)

from ..world import Queue, a_record

MOST_WORKERS = 5
LIVELY = frozenset({Phase.PENDING, Phase.STARTING, Phase.RUNNING, Phase.DEGRADED})
ARROWS = {
    **dict.fromkeys(LIVELY, LIVELY | {Phase.STOPPING, *ENDED}),
    Phase.STOPPING: frozenset({Phase.STOPPING, *ENDED}),
    Phase.STOPPED: frozenset({Phase.STOPPED}),
    Phase.FAILED: frozenset({Phase.FAILED}),
}
WALLTIME = 2000
"""Seconds; less than a world lasts, more than it takes to settle."""
SETTLING = 1.2 * (DEATHS_WINDOW + ANSWER_GRACE)
"""Seconds.  A submission without an answer is a death two listings after the grace, and a listing
after the window of that death the next job is submitted; `behave` makes 30 listings."""
PICK = st.integers(0, 1000)
TIMES = st.sampled_from([0.05, 1.0, 4.0, 30.0, ANSWER_GRACE + 5, DEATHS_WINDOW + 5])


@dataclass
class InFlight:
    """A submission that the batch system has not decided upon."""

    submit: Submit
    since: float


@dataclass
class Seen:
    """Observations of the steps so far."""

    desired: int = 0
    finished: bool = False
    submits: list[Submit] = field(default_factory=list)


class World(RuleBasedStateMachine):
    """A scheduler, a network and a user that do what they like, one thing at a time.

    What they may not do is what nothing can defend against: accept a submission later than the
    grace, or leave one out of two listings in a row whose answer was lost.
    """

    def __init__(self) -> None:
        super().__init__()
        policy = Policy(replacements=3, drain_before=120.0)
        self.record: Record = a_record(2, policy=policy, walltime=WALLTIME)
        self.now = 1000.0
        self.desired = 2
        self.queue = Queue()
        self.in_flight: dict[str, InFlight] = {}
        self.answers: list[Answer] = []
        self.workers: dict[str, int] = {}
        self.retiring: set[str] = set()
        self.retired: set[str] = set()
        self.restarted: set[str] = set()
        self.asked: set[str] = set()
        self.bad_listing = False
        self.seen = Seen()
        self.looks = 0
        self.looks_help = True
        """True if the system reports a job that it no longer has as unknown."""

    @initialize(begun=st.booleans())
    def it_begins(self, begun: bool) -> None:
        """Let the first jobs be accepted in half of the worlds."""
        if begun:
            self.a_good_listing(1.0, heard=True)
            self.it_accepts(0, answered=True)
            self.a_good_listing(1.0, heard=True)

    # The head looks.

    def look(self, *, listing: dict[str, JobStatus] | None, heard: bool = True) -> None:
        """Take one step; `heard` tells whether the scheduler hears a cancellation."""
        self.looks += 1
        listed = self.queue.listing()
        over = frozenset(self.queue.jobs.keys() - listed.keys())
        self.seen.desired = max(self.seen.desired, self.desired)
        answers, self.answers = tuple(self.answers), []
        observation = Observation(
            listing=listing,
            answers=answers,
            workers=dict(self.workers),
            desired=self.desired,
            retired=frozenset(self.retired),
            restarted=frozenset(self.restarted),
            unknown=over if self.looks_help else frozenset(),
            unproved=lambda ids: Unaccounted(ids, (), "", "Not proved."),
        )
        before, text = self.record, json.dumps(to_json(self.record))
        after, actions = decide.step(before, observation, self.now)
        assert json.dumps(to_json(before)) == text, "a step changed its input"
        assert decide.step(before, observation, self.now) == (after, actions)
        self.record = after
        self.check_step(before, after, actions)
        for action in actions:
            self.act(action, heard)

    def act(self, action: Action, heard: bool) -> None:
        if isinstance(action, Submit):
            self.seen.submits.append(action)
            self.in_flight[action.mark] = InFlight(action, self.now)
        elif isinstance(action, Retire):
            self.retiring.update(action.keys)
        elif isinstance(action, Cancel):
            self.asked.update(action.ids)
            if heard:
                self.queue.cancel(action.ids)
                self.drop_dead()
        elif isinstance(action, Finish):
            self.seen.finished = True

    def check_step(self, before: Record, after: Record, actions: list[Action]) -> None:
        assert after.phase in ARROWS[before.phase]
        if after.phase is before.phase:
            assert after.phase_since == before.phase_since
        else:
            assert after.phase_since == self.now
        jobs = {job.key: job for job in after.jobs}
        assert len(jobs) == len(after.jobs)
        earlier = {submit.mark for submit in self.seen.submits}
        for action in actions:
            if isinstance(action, Submit):
                assert action.mark not in earlier
                assert after.stop_requested is None
                self.check_twice(after)
                for task in range(action.count):
                    assert jobs[f"{action.mark}_{task}"].state is JobState.SUBMITTING
            elif isinstance(action, Cancel):
                self.check_cancel(action, after)
            elif isinstance(action, Finish):
                assert after.phase in ENDED
                assert after.ended == self.now
                left = () if after.unaccounted is None else after.unaccounted.ids
                assert left == tuple(job.id for job in after.jobs if not job.is_over)
        assert (after.phase in ENDED) == (
            before.phase in ENDED or any(isinstance(a, Finish) for a in actions)
        )

    def check_twice(self, after: Record) -> None:
        """A wanted job that may live is submitted once more at most, when it was cancelled."""
        unproved = [job for job in after.jobs if model.given_up_unlisted(job) and job.missing > 0]
        assert all(job.cancelled is not None for job in unproved)
        assert len(model.without_successor(after)) + len(unproved) <= 2 * self.desired

    def check_cancel(self, action: Cancel, after: Record) -> None:
        by_id = {job.id: job for job in after.jobs}
        for id in action.ids:
            job = by_id[id]
            assert job.retiring_since is not None
            name = job.key
            if name in self.workers and self.desired and after.stop_requested is None:
                assert name in self.retired or id in self.asked

    @rule(seconds=TIMES, heard=st.booleans())
    def a_good_listing(self, seconds: float, heard: bool) -> None:
        self.pass_time(seconds)
        self.bad_listing = False
        self.look(listing=self.queue.listing(), heard=heard)

    @rule(seconds=TIMES)
    def no_listing(self, seconds: float) -> None:
        self.pass_time(seconds)
        self.look(listing=None)

    @precondition(lambda self: not self.bad_listing and self.queue.listing())
    @rule(pick=PICK)
    def a_listing_that_lacks_a_job(self, pick: int) -> None:
        self.pass_time(1.0)
        self.bad_listing = True
        listing = self.queue.listing()
        del listing[sorted(listing)[pick % len(listing)]]
        self.look(listing=listing)

    @precondition(lambda self: self.queue.listing())
    @rule(seconds=TIMES, times=st.integers(1, 5), kept=st.sets(PICK, max_size=2))
    def listings_lie(self, seconds: float, times: int, kept: set[int]) -> None:
        """Leave out jobs that have an id, whether they live or not."""
        for _ in range(times):
            self.pass_time(seconds)
            ids = sorted(self.queue.listing())
            told = {ids[pick % len(ids)] for pick in kept if ids}
            told |= set(ids) - {job.id for job in self.record.jobs}
            self.look(listing={id: self.queue.listing()[id] for id in told}, heard=False)

    @precondition(lambda self: self.wrongly_ended())
    @rule(seconds=TIMES, times=st.integers(1, 5), state=st.sampled_from(sorted(FINAL)))
    def listings_call_working_jobs_ended(self, seconds: float, times: int, state: JobState) -> None:
        """List jobs in a final state while their workers are connected."""
        for _ in range(times):
            self.pass_time(seconds)
            wrong = {id: replace(self.queue.jobs[id], state=state) for id in self.wrongly_ended()}
            self.look(listing={**self.queue.listing(), **wrong}, heard=False)

    def wrongly_ended(self) -> list[str]:
        """Return the ids of live jobs whose workers are connected, and that are not cancelled."""
        working = {job.id for job in self.record.jobs if job.cancelled is None}
        live = [status for status in self.queue.live() if status.key in self.workers]
        return [status.id for status in live if status.id in working]

    @rule(help=st.booleans())
    def the_system_knows_its_ids_or_does_not(self, help: bool) -> None:
        self.looks_help = help

    def pass_time(self, seconds: float) -> None:
        """Advance the clock; what was not accepted within the grace never will be."""
        self.now += seconds
        for mark, flight in list(self.in_flight.items()):
            if self.now - flight.since > ANSWER_GRACE:
                del self.in_flight[mark]

    # The batch system decides.

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICK, answered=st.booleans())
    def it_accepts(self, pick: int, answered: bool) -> None:
        submit = self.take(pick)
        ids = self.queue.accept(submit.mark, submit.count)
        self.answers.append(Answer(submit.mark, ids if answered else ()))

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICK)
    def it_refuses(self, pick: int) -> None:
        self.answers.append(Answer(self.take(pick).mark, refusal="no"))

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICK)
    def it_loses_a_submission(self, pick: int) -> None:
        self.answers.append(Answer(self.take(pick).mark))

    def take(self, pick: int) -> Submit:
        mark = sorted(self.in_flight)[pick % len(self.in_flight)]
        return self.in_flight.pop(mark).submit

    @precondition(lambda self: self.queue.live())
    @rule(pick=PICK, connects=st.booleans())
    def a_job_starts(self, pick: int, connects: bool) -> None:
        status = self.a_live_job(pick)
        self.queue.change(status.id, JobState.RUNNING)
        if connects:
            self.workers[status.key] = 1

    @precondition(lambda self: self.queue.live())
    @rule(pick=PICK, state=st.sampled_from(sorted(FINAL)))
    def a_job_ends(self, pick: int, state: JobState) -> None:
        self.queue.change(self.a_live_job(pick).id, state)
        self.drop_dead()

    @precondition(lambda self: self.queue.live())
    @rule(pick=PICK)
    def a_state_nobody_knows(self, pick: int) -> None:
        self.queue.change(self.a_live_job(pick).id, JobState.UNKNOWN)

    @precondition(lambda self: len(self.queue.live()) < len(self.queue.jobs))
    @rule(pick=PICK)
    def an_ended_job_leaves_the_listing(self, pick: int) -> None:
        ended = sorted(id for id, status in self.queue.jobs.items() if status.state in FINAL)
        self.queue.hidden.add(ended[pick % len(ended)])

    def a_live_job(self, pick: int) -> JobStatus:
        live = self.queue.live()
        return live[pick % len(live)]

    def drop_dead(self) -> None:
        live = {status.key for status in self.queue.live()}
        self.workers = {name: count for name, count in self.workers.items() if name in live}

    # Workers and users act.

    @precondition(lambda self: self.workers)
    @rule(pick=PICK)
    def a_worker_disconnects(self, pick: int) -> None:
        del self.workers[sorted(self.workers)[pick % len(self.workers)]]

    @precondition(lambda self: self.retiring)
    @rule()
    def workers_hand_over(self) -> None:
        self.retired |= self.retiring

    @precondition(lambda self: self.workers)
    @rule()
    def a_client_restarts_all(self) -> None:
        self.restarted.update(self.workers)
        for status in self.queue.live():
            if status.key in self.workers:
                self.queue.change(status.id, JobState.DONE)
        self.drop_dead()

    @rule(workers=st.integers(0, MOST_WORKERS))
    def somebody_scales(self, workers: int) -> None:
        self.desired = workers

    # Else most worlds would end before anything has happened in them.
    @precondition(lambda self: self.record.stop_requested is None and self.looks > 15)
    @rule()
    def somebody_stops(self) -> None:
        self.record = replace(self.record, stop_requested=self.now)

    # What must hold after each step, and in the end.

    @invariant()
    def an_ended_cluster_has_no_live_job(self) -> None:
        if self.record.phase in ENDED:
            left = self.record.unaccounted
            named = set() if left is None else set(left.ids)
            assert {status.id for status in self.queue.live()} <= named
            assert not self.in_flight

    @invariant()
    def a_job_that_lives_is_not_called_ended(self) -> None:
        live = {status.id for status in self.queue.live()}
        over = [job for job in self.record.jobs if job.id in live and job.is_over]
        assert over == []

    @invariant()
    def a_mark_is_submitted_once(self) -> None:
        marks = [submit.mark for submit in self.seen.submits]
        assert len(marks) == len(set(marks))

    @invariant()
    def the_cluster_keeps_no_more_than_it_ever_wanted(self) -> None:
        assert len(model.without_successor(self.record)) <= max(self.seen.desired, self.desired)

    def teardown(self) -> None:
        """Once everything behaves again, the cluster reaches its target, and then ends."""
        self.looks_help = True
        self.behave(SETTLING)
        # A successor that was requested, or a surplus job that was told to leave, a moment ago.
        while self.in_flight or any(job.retiring_since == self.now for job in self.record.jobs):
            self.behave(60.0)
        if self.record.stop_requested is None:
            assert len(model.without_successor(self.record)) == self.desired
            assert {status.id for status in self.queue.live()} == {
                job.id for job in model.active(self.record)
            }
            assert self.record.phase is Phase.RUNNING
            self.record = replace(self.record, stop_requested=self.now)
        self.behave(ANSWER_GRACE)
        assert self.seen.finished
        self.an_ended_cluster_has_no_live_job()

    def behave(self, seconds: float) -> None:
        """Let everything go well for a while."""
        until = self.now + seconds
        while self.now < until:
            for pick in range(len(self.in_flight)):
                self.it_accepts(pick, answered=True)
            for status in self.queue.live():
                self.queue.change(status.id, JobState.RUNNING)
                self.workers[status.key] = 1
            self.retired |= self.retiring
            self.a_good_listing(seconds / 30, heard=True)


TestWorld = World.TestCase
TestWorld.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
