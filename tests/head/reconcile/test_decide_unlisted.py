"""Stories of jobs that listings lack: what is proof of an end, and what follows without any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpucluster.core.absence import SECONDS_UNTIL_UNPROVED
from jupyter_gpucluster.core.cluster import Phase, Policy
from jupyter_gpucluster.core.job import FINAL, Job, JobState, JobStatus
from jupyter_gpucluster.core.serialize import from_json, to_json
from jupyter_gpucluster.head.reconcile.model import Answer, Cancel, Submit, gpu_hours

from ..world import Play, finished, of, ready, waiting

ONE, TWO, THREE = "gpc-abc123-1", "gpc-abc123-2", "gpc-abc123-3"
STEP = SECONDS_UNTIL_UNPROVED / 4


def hidden(workers: int = 1, *, connected: bool = False, **options: Any) -> Play:
    """Return a cluster whose jobs live, and that no listing names."""
    play = Play(workers, **options)
    play.listing_proves = False
    play.step()
    play.step()
    if connected:
        play.connect()
        play.step()
    play.queue.hidden.update(play.queue.jobs)
    play.workers.clear()
    return play


def give_up(play: Play) -> list[Any]:
    """Let listings lack the jobs for so long that they are given up; return what is done then."""
    for _ in range(4):
        assert play.step(STEP) == []
    return play.step(STEP)


def test_a_job_without_proof_is_cancelled_by_id_and_only_then_replaced() -> None:
    play = hidden()
    play.deaf = True
    [id] = play.queue.jobs
    assert give_up(play) == [Cancel((id,)), Submit(TWO, 1)]
    assert play.alive() == [f"{ONE}_0", f"{TWO}_0"]
    assert "1 cancelled, end not confirmed" in play.words
    assert "nothing proves that it has ended" in play.job(f"{ONE}_0").cause


def test_three_listings_are_needed_as_well_as_two_minutes() -> None:
    play = hidden()
    assert play.step(10 * STEP) == []
    assert play.step(10 * STEP) == []
    assert [type(action) for action in play.step(1)] == [Cancel, Submit]


def test_it_is_told_that_a_job_is_not_listed_and_since_when() -> None:
    play = hidden()
    play.step()
    assert play.reason == ""
    play.step()
    assert any("is not in the batch system's listing since " in told for told in play.notes)
    assert play.reason.startswith(f"{ONE}_0 is not in the batch system's listing since ")
    assert play.reason.endswith("; asking again.")


def test_a_job_is_cancelled_ever_more_seldom_while_nothing_proves_its_end() -> None:
    play = hidden()
    play.deaf = True
    give_up(play)
    asked = [len(of(Cancel, play.step(seconds))) for seconds in (1, 5, 600, 5, 70)]
    assert asked == [0, 1, 1, 0, 1]


def test_a_job_is_replaced_once_whatever_the_listing_lacks() -> None:
    play = hidden(2)
    play.deaf = True
    assert of(Submit, give_up(play)) == [Submit(TWO, 2)]
    sent = play.queue.accept(TWO, 2)
    play.answers = [Answer(TWO, sent)]
    play.queue.hidden.update(sent)
    for _ in range(20):
        assert of(Submit, play.step(STEP)) == []
    assert {job.cancelled is not None for job in play.record.jobs} == {True}
    assert "No more are submitted until their end is proved." in play.reason
    unknown = frozenset(play.queue.jobs)
    assert of(Submit, play.step(STEP, unknown=unknown)) == [Submit(THREE, 2)]


@pytest.mark.parametrize("proof", ["history", "exit file", "unknown id"])
def test_a_job_with_proof_is_replaced_after_two_listings(proof: str) -> None:
    play = hidden()
    [id] = play.queue.jobs
    proofs: dict[str, dict[str, Any]] = {
        "history": {"history": {id: JobStatus(id, JobState.OUT_OF_MEMORY, ONE)}},
        "exit file": {"exits": {f"{ONE}_0": 3}},
        "unknown id": {"unknown": frozenset({id})},
    }
    seen = proofs[proof]
    assert play.step(**seen) == []
    assert play.step(**seen) == [Submit(TWO, 1)]
    job = play.job(f"{ONE}_0")
    assert (job.proof, job.ended) == (proof, play.now)


def test_history_that_says_that_a_job_runs_proves_nothing() -> None:
    play = hidden()
    [id] = play.queue.jobs
    history = {id: JobStatus(id, JobState.RUNNING, ONE)}
    for _ in range(3):
        assert play.step(history=history) == []
    assert play.alive() == [f"{ONE}_0"]


def test_time_limits_that_have_passed_prove_nothing() -> None:
    play = hidden(connected=True, walltime=600)
    play.deaf = True
    give_up(play)
    play.step(24 * 3600)
    play.step(60)
    assert play.job(f"{ONE}_0").ended is None
    assert f"{ONE}_0" in play.alive()


def test_a_job_with_a_connected_worker_lives_although_listings_lack_it() -> None:
    play = hidden(connected=True)
    play.workers[f"{ONE}_0"] = 1
    for _ in range(100):
        assert play.step(STEP) == []
    assert play.phase() is Phase.RUNNING


def contradicted(state: JobState) -> Play:
    """Return a cluster whose only job has a connected worker, and is listed in a final state."""
    play = ready(1)
    [id] = play.queue.jobs
    play.queue.change(id, state)
    return play


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_listed_end_counts_when_the_worker_has_gone(state: JobState) -> None:
    play = contradicted(state)
    for _ in range(3):
        assert play.step(STEP) == []
        assert play.phase() is Phase.RUNNING
    play.drop_dead()
    assert play.step() == [Submit(TWO, 1)]
    job = play.job(f"{ONE}_0")
    assert (job.state, job.proof, job.ended) == (state, "listing", play.now)


def test_a_stopping_cluster_does_not_wait_for_a_connection_that_hangs() -> None:
    play = contradicted(JobState.NODE_FAIL)
    play.step()
    play.stop()
    assert [type(action) for action in play.step()] == [Cancel]
    play.workers[f"{ONE}_0"] = 1
    assert finished(play.step())
    assert play.job(f"{ONE}_0").state is JobState.NODE_FAIL


def test_a_job_without_an_id_is_cancelled_by_the_id_of_its_listed_end() -> None:
    play = Play(1)
    play.step()
    [id] = play.queue.jobs
    play.answers.clear()
    play.connect()
    play.queue.change(id, JobState.FAILED)
    play.stop()
    assert play.step() == [Cancel((id,))]


def test_a_worker_that_comes_after_its_job_s_listed_end_takes_the_end_back() -> None:
    play = contradicted(JobState.FAILED)
    play.drop_dead()
    assert play.step() == [Submit(TWO, 1)]
    play.workers[f"{ONE}_0"] = 1
    [cancel] = play.step()
    assert cancel == Cancel(tuple(id for id, job in play.queue.jobs.items() if job.mark == TWO))
    play.workers[f"{ONE}_0"] = 1
    play.step()
    assert play.alive() == [f"{ONE}_0"]


def test_a_job_that_shows_up_with_a_worker_is_kept_and_the_newer_one_cancelled() -> None:
    play = hidden()
    play.deaf = True
    give_up(play)
    play.deaf = False
    new = play.queue.accept(TWO, 1)
    play.answers = [Answer(TWO, new)]
    play.step()
    play.queue.hidden.clear()
    play.connect(f"{ONE}_0")
    assert play.step() == [Cancel(new)]
    play.step()
    assert play.alive() == [f"{ONE}_0"]
    assert play.job(f"{ONE}_0").retiring_since is None
    assert [status.mark for status in play.queue.live()] == [ONE]
    assert play.phase() is Phase.RUNNING


@pytest.mark.parametrize("listed_first", [True, False])
def test_of_two_jobs_that_both_work_one_is_let_go(listed_first: bool) -> None:
    play = hidden()
    play.deaf = True
    give_up(play)
    play.deaf = False
    play.answers = [Answer(TWO, play.queue.accept(TWO, 1))]
    play.step()
    play.connect(f"{TWO}_0")
    if listed_first:
        play.queue.hidden.clear()
    play.connect(f"{ONE}_0")
    for _ in range(3):
        play.retired.update(play.workers)
        play.step(60)
    assert len(play.queue.live()) == 1


def test_jobs_that_are_not_listed_do_not_count_as_failures() -> None:
    play = hidden(5, policy=Policy(replacements=0))
    play.deaf = True
    assert of(Submit, give_up(play)) == [Submit(TWO, 5)]
    assert play.record.stop_requested is None


def test_a_cluster_that_stops_waits_for_proof_and_cancels_again() -> None:
    play = hidden(2)
    play.deaf = True
    ids = tuple(play.queue.jobs)
    play.stop()
    cancels = of(Cancel, play.step()) + [c for _ in range(10) for c in of(Cancel, play.step(20))]
    assert {cancel.ids for cancel in cancels} == {ids}
    assert len(cancels) > 5
    assert play.phase() is Phase.STOPPING
    assert play.step(unknown=frozenset(ids[:1])) == []
    assert finished(play.step(unknown=frozenset(ids)))
    assert play.record.reason == "Stopped by you."


@pytest.mark.parametrize(
    "policy,silence,waits",
    [(Policy(), 0.0, 600), (Policy(), 900.0, 1500), (Policy(unproved_after=3600), 0.0, 3600)],
)
def test_a_cluster_does_not_wait_for_proof_for_ever_and_names_what_it_lacks(
    policy: Policy, silence: float, waits: float
) -> None:
    play = hidden(2, policy=policy)
    play.deaf = True
    ids = tuple(play.queue.jobs)
    play.stop()
    while not finished(play.step(30, silence=silence)):
        assert play.phase() is Phase.STOPPING
        assert play.now < 1000 + waits + 200
    assert play.now > 1000 + waits
    assert play.phase() is Phase.STOPPED
    assert play.record.reason.endswith(f"To end them: cancel {' '.join(ids)}")
    assert play.record.unaccounted is not None
    assert play.record.unaccounted.ids == ids
    assert {job.ended for job in play.record.jobs} == {None}


def test_a_job_that_a_stopping_cluster_sees_listed_is_waited_for() -> None:
    play = hidden(2)
    play.deaf = True
    play.stop()
    play.queue.hidden.pop()
    for _ in range(50):
        assert not finished(play.step(30))
    play.silent = True
    play.queue.hidden.update(play.queue.jobs)
    for _ in range(50):
        assert not finished(play.step(30))


def test_what_a_smaller_cluster_let_go_is_cancelled_until_there_is_proof() -> None:
    play = hidden(2)
    play.deaf = True
    play.desired = 1
    [cancel] = of(Cancel, play.step())
    assert len(cancel.ids) == 1
    again = [c.ids for _ in range(6) for c in of(Cancel, play.step(STEP)) if c.ids == cancel.ids]
    assert len(again) >= 3
    for _ in range(3):
        play.step(unknown=frozenset(cancel.ids))
    assert cancel.ids[0] not in [job.id for job in play.record.jobs if job.ended is None]


def test_gpu_hours_are_counted_up_to_the_last_sight_of_a_job() -> None:
    play = hidden(1, connected=True, gpus=1)
    play.deaf = True
    play.step()
    held = gpu_hours(play.record, play.now)
    play.step(3600)
    assert gpu_hours(play.record, play.now) == held


def test_records_from_before_are_read_and_those_of_now_are_read_by_what_was_before() -> None:
    job = Job(ONE, 0, JobState.RUNNING, id="7", missing=1)
    old = {k: v for k, v in to_json(job).items() if k not in ("missing_since", "proof")}
    assert from_json(Job, old) == job
    newer = replace(job, missing_since=1.0, proof="history")
    assert from_json(Job, to_json(newer)) == newer


@pytest.mark.parametrize("state", [JobState.DONE, JobState.RUNNING])
def test_a_number_that_now_belongs_to_another_job_says_nothing_about_ours(
    state: JobState,
) -> None:
    play = waiting(1)
    play.connect()
    play.step()
    [id] = play.queue.jobs
    play.queue.change(id, state, mark="analysis", reason="of another job")
    assert play.step() == []
    assert play.alive() == [f"{ONE}_0"]
    assert play.job(f"{ONE}_0").reason == ""
