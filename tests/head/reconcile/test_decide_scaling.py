"""Stories of clusters that grow and shrink."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.core.cluster import Phase, Policy
from jupyter_gpucluster.core.job import JobState, JobStatus
from jupyter_gpucluster.head.reconcile import model
from jupyter_gpucluster.head.reconcile.decide import CANCEL_AGAIN
from jupyter_gpucluster.head.reconcile.model import Answer, Cancel, Retire, Submit

from ..world import Play, of, ready

ONE, TWO = "gpc-abc123-1", "gpc-abc123-2"


def test_scaling_up_submits_what_is_missing() -> None:
    play = ready(2)
    play.desired = 5
    assert play.step() == [Submit(TWO, 3)]


def test_nothing_is_submitted_that_cannot_be_on_record_and_that_counts_as_no_loss() -> None:
    play = ready(2, policy=Policy(replacements=0))
    play.desired = 5
    for _ in range(3):
        assert play.step(unsaved="The disk is full.") == []
    assert play.record.reason == "The disk is full."
    assert play.step() == [Submit(TWO, 3)]
    assert play.record.reason == ""


def test_scaling_down_retires_first_and_cancels_after() -> None:
    play = ready(3)
    play.desired = 2
    play.volunteers = (f"{ONE}_1", f"{ONE}_0", f"{ONE}_2")
    assert play.step() == [Retire((f"{ONE}_1",))]
    assert play.words == "2 of 2 workers ready, 1 leaving when tasks are done"
    assert of(Cancel, play.step()) == []
    play.retired.add(f"{ONE}_1")
    assert play.step() == [Cancel((play.job(f"{ONE}_1").id,))]
    assert play.step() == []
    assert play.alive() == [f"{ONE}_0", f"{ONE}_2"]
    assert play.record.replaced == 0


@pytest.mark.parametrize("killed", [True, False])
def test_a_job_that_was_cancelled_is_told_so_by_a_system_that_does_not(killed: bool) -> None:
    play = ready(2)
    play.desired, play.volunteers, play.retired = 1, (f"{ONE}_0",), {f"{ONE}_0"}
    id = play.job(f"{ONE}_0").id
    play.step(listing=None)
    assert play.queue.cancelled == [id]
    play.queue.hidden.add(id)
    over = JobStatus(id, JobState.FAILED, ONE, exit_code=-9)
    for _ in range(2):
        play.step(history={id: over} if killed else {})
    job = play.job(f"{ONE}_0")
    assert (job.state, job.exit_code) == (JobState.CANCELLED, -9 if killed else None)
    # It was not gone after all, and is let go once more.
    play.workers[f"{ONE}_0"] = 1
    play.step(listing=None)
    assert f"{ONE}_0 was found again" in play.notes


def test_those_that_never_connected_leave_first_the_newest_of_them_before_the_others() -> None:
    play = ready(2)
    play.desired = 5
    play.step()
    play.step()
    play.desired = 3
    play.volunteers = (f"{ONE}_0",)
    assert play.step() == [Cancel((play.job(f"{TWO}_1").id, play.job(f"{TWO}_2").id))]


def test_a_job_that_was_to_leave_before_it_had_an_id_is_retired_once_it_connects() -> None:
    play = ready(2)
    play.deaf = True
    play.desired = 3
    play.step()
    play.desired = 2
    assert play.step() == []
    [id] = play.queue.accept(TWO, 1)
    play.connect(f"{TWO}_0")
    play.answers = [Answer(TWO, (id,))]
    assert play.step() == [Retire((f"{TWO}_0",))]
    play.retired.add(f"{TWO}_0")
    assert play.step() == [Cancel((id,))]


def test_a_job_whose_cancellation_was_not_heard_is_cancelled_again_also_when_it_connects() -> None:
    play = Play(2)
    play.step()
    play.connect(f"{ONE}_0")
    play.step()
    play.deaf = True
    play.desired = 1
    id = play.job(f"{ONE}_1").id
    assert play.step() == [Cancel((id,))]
    play.connect()
    assert play.step() == []
    assert play.step(CANCEL_AGAIN) == [Cancel((id,))]


def test_a_target_of_zero_cancels_at_once_and_what_comes_back_is_pending_not_degraded() -> None:
    play = ready(2)
    play.desired = 0
    [cancel] = play.step()
    assert isinstance(cancel, Cancel)
    assert len(cancel.ids) == 2
    for _ in range(3):
        assert play.step() == []
    assert play.record.phase is Phase.RUNNING
    assert play.words == "0 of 0 workers ready"
    play.desired = 1
    play.step()
    play.step()
    assert play.phase() is Phase.PENDING


def test_the_number_that_adapting_recommends_is_followed_both_ways() -> None:
    play = Play(0)
    assert play.step(desired=0) == []
    assert play.step(desired=2) == [Submit(ONE, 2)]
    play.step(desired=2)
    play.connect()
    play.step(desired=2)
    assert play.step(desired=1, volunteers=(f"{ONE}_0",)) == [Retire((f"{ONE}_0",))]


def test_a_leaving_job_that_ends_by_itself_is_no_death() -> None:
    play = ready(2, policy=Policy(replacements=0))
    play.desired = 1
    play.step()
    [leaving] = [job for job in play.record.jobs if job.retiring_since is not None]
    play.die(leaving.key, JobState.DONE, 0)
    assert play.step() == []
    assert play.record.phase is Phase.RUNNING
    assert model.recent_deaths(play.record, play.now) == []
