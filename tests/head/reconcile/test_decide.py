"""Stories of clusters, told to the pure lifecycle one step at a time: start, stop, clocks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpucluster.core.cluster import ENDED, Phase, Policy
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.head.reconcile import decide, model
from jupyter_gpucluster.head.reconcile.apply_status import ANSWER_GRACE
from jupyter_gpucluster.head.reconcile.decide import CANCEL_AGAIN, CANCEL_UNSEEN, KEPT_JOBS
from jupyter_gpucluster.head.reconcile.model import Answer, Cancel, Finish, Note, Submit
from jupyter_gpucluster.head.summary import summarise

from ..world import Play, finished, of, ready, unanswered, waiting

ONE, TWO, THREE = "gpc-abc123-1", "gpc-abc123-2", "gpc-abc123-3"


def test_a_new_cluster_submits_its_target_once_under_a_mark_on_record() -> None:
    play = Play(3)
    play.deaf = True
    assert play.step() == [Submit(ONE, 3)]
    assert [(job.mark, job.task, job.state) for job in play.record.jobs] == [
        (ONE, task, JobState.SUBMITTING) for task in range(3)
    ]
    assert play.step() == []
    assert play.step() == []


def test_it_is_pending_while_its_jobs_wait_and_starting_while_they_start() -> None:
    play = waiting(2)
    assert play.step(7 * 86400.0) == []  # waiting in a queue has no time-out
    assert play.record.phase is Phase.PENDING
    assert play.words == "0 of 2 workers ready, 2 waiting"
    for id in play.queue.jobs:
        play.queue.change(id, JobState.RUNNING)
    play.step()
    assert play.phase() is Phase.STARTING
    assert play.words == "0 of 2 workers ready, 2 starting"


def test_it_runs_as_soon_as_one_worker_is_there_and_says_that_more_wait() -> None:
    play = Play(2)
    play.step()
    play.connect(f"{ONE}_0")
    play.step()
    assert play.record.phase is Phase.RUNNING
    assert play.words == "1 of 2 workers ready, 1 waiting"
    play.connect()
    play.step()
    assert play.words == "2 of 2 workers ready"


def test_the_phase_keeps_its_time_until_it_changes() -> None:
    play = ready(1)
    since = play.record.phase_since
    play.step()
    play.step()
    assert play.record.phase_since == since
    play.stop()
    play.step()
    assert play.record.phase_since == play.now


def test_several_workers_to_a_job_are_counted_one_by_one_and_asked_for_in_whole_jobs() -> None:
    play = Play(6, per_job=4, gpus=4)
    assert play.step() == [Submit(ONE, 2)]
    play.step()
    play.connect(f"{ONE}_0")
    play.workers[f"{ONE}_0"] = 3
    play.step()
    assert play.words == "3 of 8 GPUs ready, 4 waiting, 1 starting"


def test_more_jobs_than_a_submission_may_hold_are_split() -> None:
    play = Play(5)
    assert play.step(most_tasks=2) == [Submit(ONE, 2), Submit(TWO, 2), Submit(THREE, 1)]
    play.connect()
    play.step()
    assert play.words == "5 of 5 workers ready"


# Stopping.


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_stop_in_any_phase_ends_when_every_job_is_confirmed_gone(steps: int) -> None:
    play = Play(2)
    for number in range(steps):
        play.step()
        if number == 1:
            play.connect()
    play.stop()
    for _ in range(5):
        if finished(play.step()):
            break
    assert play.record.phase is Phase.STOPPED
    assert play.record.ended == play.now
    assert play.queue.live() == []


def test_a_stop_before_anything_was_submitted_ends_at_once() -> None:
    play = Play(2)
    play.stop()
    assert play.step() == [Finish()]
    assert play.record.phase is Phase.STOPPED
    assert play.record.reason == "Stopped by you."


def test_a_stop_waits_for_the_confirmation_of_the_queue() -> None:
    play = ready(1)
    play.deaf = True
    play.stop()
    id = play.job(f"{ONE}_0").id
    assert play.step() == [Cancel((id,))]
    assert play.words == "stopping: 1 job still ending"
    asked = play.now
    assert play.step(CANCEL_AGAIN, listed=asked - 1) == []  # no listing has shown its effect
    assert play.step(1, listed=asked + 1) == [Cancel((id,))]
    assert play.step(CANCEL_UNSEEN, listed=asked) == [Cancel((id,))]
    play.silent = True
    play.workers.clear()
    for _ in range(3):
        assert play.step(1) == []
    play.silent = False
    play.queue.cancel([id])
    assert play.step() == [Finish()]


def test_a_stop_waits_for_a_submission_that_is_not_answered() -> None:
    play = unanswered(1)
    play.stop()
    assert play.step() == []
    assert play.record.phase is Phase.STOPPING
    [id] = play.queue.accept(ONE, 1)
    play.answers, play.silent = [Answer(ONE, (id,))], True
    assert play.step() == [Cancel((id,))]
    play.queue.cancel([id])
    play.silent = False
    assert play.step() == [Finish()]


def test_a_stop_gives_up_a_submission_that_never_appears() -> None:
    play = unanswered(1)
    play.stop()
    play.step()
    assert play.step(ANSWER_GRACE + 1) == []
    assert play.step() == [Finish()]
    assert play.record.phase is Phase.STOPPED


def test_a_refusal_while_stopping_lets_the_stop_end_as_asked() -> None:
    play = unanswered(1)
    play.stop()
    play.step()
    play.answers = [Answer(ONE, refusal="no")]
    assert play.step() == [Finish()]
    assert play.record.phase is Phase.STOPPED


def test_a_stopping_cluster_neither_grows_nor_replaces() -> None:
    play = ready(2)
    play.deaf = True
    play.stop()
    play.desired = 9
    play.die(f"{ONE}_0")
    assert of(Submit, play.step()) == []
    assert of(Submit, play.step()) == []


@pytest.mark.parametrize("phase", sorted(ENDED))
def test_nothing_leaves_an_end(phase: Phase) -> None:
    play = Play(2)
    play.record = replace(play.record, phase=phase)
    before = play.record
    assert play.step() == []
    assert play.record == before


# Clocks.


@pytest.mark.parametrize(
    "policy, seen, words",
    [
        (Policy(idle_timeout=60), {"idle_since": 1000.0}, "Idle time-out reached."),
        (
            Policy(no_client_timeout=60),
            {"alone_since": 1000.0},
            "Time-out without a client reached.",
        ),
        (Policy(max_lifetime=1060), {}, "Maximum lifetime reached."),
    ],
)
def test_each_clock_ends_the_cluster_and_says_so(
    policy: Policy, seen: dict[str, float], words: str
) -> None:
    play = ready(1, policy=policy)
    play.step(1059.0 - play.now, **seen)
    assert play.record.phase is Phase.RUNNING
    [clock] = model.clocks(play.record, play.seen)
    assert clock.ends == 1060.0
    play.step(1.0, **seen)
    assert play.phase() is Phase.STOPPING
    assert play.record.reason == words
    assert finished(play.step())
    assert play.phase() is Phase.STOPPED


def test_a_clock_that_does_not_tick_ends_nothing() -> None:
    play = ready(1, policy=Policy(idle_timeout=60, no_client_timeout=60))
    play.step(10_000.0, idle_since=None, alone_since=None)
    assert play.record.phase is Phase.RUNNING
    assert [clock.ends for clock in model.clocks(play.record, play.seen)] == [None, None]


# The record itself.


def test_a_long_life_keeps_the_last_ended_jobs_and_all_that_live() -> None:
    play = ready(2, policy=Policy(replacements=10**6))
    for _ in range(KEPT_JOBS + 20):
        play.die(play.alive()[0])
        play.step()
        play.step()
        play.connect()
        play.step()
    assert len(play.record.jobs) == KEPT_JOBS + 2
    assert len(play.alive()) == 2


@pytest.mark.parametrize("per_job, words", [(1, "1 worker"), (4, "4 workers")])
def test_every_change_of_phase_is_noted(per_job: int, words: str) -> None:
    play = Play(per_job, per_job=per_job)
    record, actions = decide.step(play.record, model.Observation(desired=1), now=5.0)
    told = [action.event.message for action in actions if isinstance(action, Note)]
    assert told == [f"Requested {words} (job gpc-abc123-1)", "pending"]
    assert record.phase is Phase.PENDING


def test_a_waiting_cluster_says_when_it_may_start() -> None:
    play = Play(2)
    play.step()
    for id, seconds in zip(play.queue.jobs, (7200, 1810), strict=True):
        play.queue.change(id, JobState.PENDING, expected_start=play.now + seconds)
    play.step()
    assert play.words == "0 of 2 workers ready, 2 waiting (may start in about 30 min)"
    told = summarise(play.record, play.seen, play.now).expected_start
    assert told == min(job.expected_start or 0.0 for job in play.record.jobs)
    play.step(1900)
    assert play.words == "0 of 2 workers ready, 2 waiting"


def test_workers_that_come_before_the_listing_says_so_wait_for_nothing() -> None:
    play = waiting(2)
    for id in play.queue.jobs:
        play.queue.change(id, JobState.PENDING, reason="Resources")
    play.workers = {f"{ONE}_0": 1}
    play.step()
    assert summarise(play.record, play.seen, play.now).reason == "Resources"
    play.workers[f"{ONE}_1"] = 1
    play.step()
    assert summarise(play.record, play.seen, play.now).reason == ""


def kept() -> Play:
    """Return a cluster of one on a system that lists ended jobs until somebody removes them."""
    play = Play(1)
    play.record = replace(play.record, spec=replace(play.record.spec, backend="kubernetes"))
    play.get_ready()
    return play


def test_what_has_ended_is_removed_where_it_stays_listed() -> None:
    play = kept()
    [id] = play.queue.jobs
    play.workers.clear()
    play.queue.change(id, JobState.FAILED, exit_code=1)
    assert Cancel((id,)) in play.step()
    assert Cancel((id,)) not in play.step()
    assert Cancel((id,)) in play.step(CANCEL_AGAIN)
    assert Cancel((id,)) in play.step(10 * 3600)
    assert Cancel((id,)) in play.step(300.0), "asked ever more seldom, but every five minutes"
    assert play.record.jobs[0].state is JobState.FAILED
    play.queue.hidden.add(id)
    assert Cancel((id,)) not in play.step(CANCEL_AGAIN)


def test_a_removal_is_asked_for_before_the_cluster_is_over() -> None:
    play = kept()
    [id] = play.queue.jobs
    play.stop()
    play.queue.change(id, JobState.DONE, exit_code=0)
    assert play.step() == [Cancel((id,))]
    assert play.record.phase is Phase.STOPPING
    assert play.step() == [Finish()]


def test_an_ended_job_that_is_still_on_its_way_out_does_not_come_back() -> None:
    play = ready(1)
    [id] = play.queue.jobs
    play.workers.clear()
    play.queue.change(id, JobState.FAILED)
    play.step()
    play.queue.change(id, JobState.ENDING)
    play.step()
    assert play.record.jobs[0].ended is not None
