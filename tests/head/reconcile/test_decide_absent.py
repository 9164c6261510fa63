"""Stories of nodes that go down without the batch system being told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpucluster.core.cluster import Phase, Policy, Target
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.head.reconcile.model import ABSENT_SECONDS, Cancel, Submit

from ..world import Play, of, ready

ONE, TWO = "gpc-abc123-1", "gpc-abc123-2"


def absent(policy: Policy | None = None) -> Play:
    """Return a cluster of two, one of whose nodes went down, which nobody told the system."""
    play = ready(2, policy=policy or Policy())
    del play.workers[f"{ONE}_0"]
    play.step()
    return play


def test_a_job_that_only_the_queueing_system_believes_in_is_replaced() -> None:
    play = absent()
    assert play.step(ABSENT_SECONDS / 2) == []
    assert "gpc-abc123-1_0 does not answer, though it is listed as running" in play.reason
    play.deaf = True  # a node that is down ends nothing
    assert of(Submit, play.step(ABSENT_SECONDS / 2)) == [Submit(TWO, 1)]
    assert play.record.replaced == 1
    assert "its node may be down" in play.job(f"{ONE}_0").cause
    assert "1 given up and still listed" in play.words


def test_what_was_given_up_is_cancelled_ever_more_seldom_until_it_is_gone() -> None:
    play = absent()
    play.deaf = True
    asked = [len(of(Cancel, play.step(seconds))) for seconds in (ABSENT_SECONDS, 5, 600, 5, 70)]
    assert asked == [1, 1, 1, 0, 1]
    play.deaf = False
    play.step(600)
    play.step()
    assert play.job(f"{ONE}_0").state is JobState.CANCELLED


def test_what_was_given_up_counts_against_the_budget() -> None:
    play = absent(Policy(replacements=0))
    assert of(Submit, play.step(ABSENT_SECONDS)) == []
    assert play.record.reason.startswith("1 worker failed within 10 minutes: Its workers did not")
    assert play.record.reason.endswith("No more are started for now.")


def test_nothing_is_given_up_while_the_system_is_silent_or_once_workers_are_back() -> None:
    play = absent()
    play.silent = True
    assert play.step(10 * ABSENT_SECONDS) == []
    play.silent = False
    play.connect(f"{ONE}_0")
    assert play.step() == []
    del play.workers[f"{ONE}_0"]
    assert play.step(ABSENT_SECONDS) == []
    play.queue.change(play.job(f"{ONE}_0").id, JobState.SUSPENDED)
    assert play.step(ABSENT_SECONDS) == []
    assert play.record.replaced == 0


def test_jobs_that_were_given_up_and_stay_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    play = ready(1)
    monkeypatch.setattr(play.queue, "cancel", lambda _ids: None)  # their nodes are down
    for _ in range(20):
        play.workers.clear()
        play.step()
        play.step(ABSENT_SECONDS)
        for job in play.queue.live():
            if job.state is JobState.PENDING:
                play.connect(job.key)
        play.step()
    assert len(play.queue.live()) == 1 + Policy().replacements


def test_a_job_that_its_system_started_again_may_take_as_long_as_the_first_time() -> None:
    play = ready(1)
    job = play.job(f"{ONE}_0").id
    play.queue.change(job, JobState.PENDING)
    play.workers.clear()
    play.step(10)
    play.queue.change(job, JobState.RUNNING)
    play.step()
    assert play.step(2 * ABSENT_SECONDS) == []
    play.connect(f"{ONE}_0")
    assert play.step() == []
    assert play.phase() is Phase.RUNNING


def test_workers_have_time_to_come_back_once_the_system_answers_again() -> None:
    play = absent()
    play.silent = True
    play.step(2 * ABSENT_SECONDS)
    play.silent = False
    assert play.step() == []
    assert of(Submit, play.step(ABSENT_SECONDS)) == [Submit(TWO, 1)]


# Jobs that can never start.

NEVER = "What it depends on failed."


def test_a_cluster_whose_jobs_can_never_start_fails_and_asks_for_no_others() -> None:
    play = Play(2)
    play.step()
    for status in play.queue.live():
        play.queue.change(status.id, JobState.PENDING, unsatisfiable=True, reason=NEVER)
    actions = play.step()
    assert [type(action) for action in actions] == [Cancel]
    assert play.phase() is Phase.STOPPING
    play.step()
    assert (play.phase(), play.record.reason) == (Phase.FAILED, NEVER)
    assert len(play.queue.submitted) == 1
    assert play.queue.live() == []


def test_beside_others_a_job_that_can_never_start_is_replaced_within_the_budget() -> None:
    play = ready(1, policy=Policy(replacements=2))
    play.record, play.desired = replace(play.record, target=Target(2, 2)), 2
    for _ in range(12):
        play.step()
        for status in play.queue.live():
            if status.state is JobState.PENDING:
                play.queue.change(status.id, JobState.PENDING, unsatisfiable=True, reason=NEVER)
    assert play.phase() is Phase.DEGRADED
    assert len(play.queue.submitted) == 1 + 1 + 2
    assert NEVER in play.reason
    assert len(play.queue.live()) == 1


def test_a_cluster_that_stops_anyway_gives_nothing_up() -> None:
    play = Play(1)
    play.step()
    [status] = play.queue.live()
    play.queue.change(status.id, JobState.PENDING, unsatisfiable=True, reason=NEVER)
    play.stop()
    play.step()
    play.step()
    assert play.phase() is Phase.STOPPED
