"""Decisions about held GPUs: GPU-hours, their budget, idle GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpucluster.core.cluster import Phase, Policy, Target
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.head import summary
from jupyter_gpucluster.head.reconcile import decide, model

from ..world import Play, a_record, finished, of, ready

HOUR = 3600.0


def a_play(workers: int = 4, *, per_job: int = 2, **policy: object) -> Play:
    """Return a cluster whose jobs hold ``per_job`` GPUs each and have all started now."""
    play = Play(workers, per_job=per_job, gpus=per_job, policy=Policy(**policy))  # type: ignore[arg-type]  # its fields
    play.get_ready()
    for id in play.queue.jobs:
        play.queue.change(id, JobState.RUNNING, started=play.now)
    play.step(0)
    return play


def test_gpu_hours_count_ended_running_and_requeued_jobs_and_those_no_longer_listed() -> None:
    jobs = (
        Job("m", 0, JobState.DONE, started=0.0, ended=HOUR / 2),
        Job("m", 1, JobState.RUNNING, started=HOUR, held=HOUR / 2),
        Job("m", 2, JobState.PENDING),
    )
    record = replace(a_record(gpus=4), jobs=jobs, forgotten_seconds=HOUR)
    assert model.gpu_hours(record, 2 * HOUR) == pytest.approx(4 * (0.5 + 1.5 + 1))


def test_gpu_hours_of_jobs_are_kept_when_the_jobs_are_not() -> None:
    play = a_play(1, per_job=1, replacements=1000)
    dead = tuple(
        Job(f"gpc-abc123-{n}", 0, JobState.DONE, started=0.0, ended=36.0, retiring_since=1.0)
        for n in range(2, 2 + 2 * decide.KEPT_JOBS)
    )
    play.record = replace(play.record, jobs=(*play.record.jobs, *dead))
    before = model.gpu_hours(play.record, play.now)
    play.step(0)
    assert len(play.record.jobs) < 2 * decide.KEPT_JOBS
    assert model.gpu_hours(play.record, play.now) == pytest.approx(before)


def test_the_budget_warns_once_and_then_stops_the_cluster_with_the_reason() -> None:
    play = a_play(gpu_hours=4.0)  # four GPUs: one hour
    play.step(0.7 * HOUR)
    assert play.notes == []
    play.step(0.11 * HOUR)
    assert play.notes == ["3.2 of 4 GPU-hours are used; the cluster stops when all are"]
    play.step(0.1 * HOUR)
    assert play.notes == []
    [clock] = summary.summarise(play.record, play.seen, play.now).clocks
    assert clock.name == "budget of 4 GPU-hours"
    assert clock.ends == pytest.approx(play.now + 0.09 * HOUR, abs=1)
    play.step(0.1 * HOUR)
    assert play.phase() is Phase.STOPPING
    assert finished(play.step())
    assert (play.phase(), play.record.reason) == (
        Phase.STOPPED,
        "Budget of 4 GPU-hours reached.",
    )


def test_the_end_of_the_budget_moves_with_the_gpus_that_are_held() -> None:
    play = a_play(gpu_hours=8.0)
    end = model.budget_end(play.record)
    assert end == pytest.approx(play.now + 2 * HOUR)
    play.step(HOUR)
    assert model.budget_end(play.record) == end
    [first, second] = play.record.jobs
    play.record = replace(
        play.record, jobs=(replace(first, state=JobState.DONE, ended=play.now), second)
    )
    assert model.budget_end(play.record) == pytest.approx(play.now + 2 * HOUR)
    gone = replace(second, state=JobState.DONE, ended=play.now)
    assert model.budget_end(replace(play.record, jobs=(gone,))) is None


def test_clusters_without_gpus_have_no_budget() -> None:
    play = ready(2, policy=Policy(gpu_hours=1.0))
    play.step(100 * HOUR)
    assert play.phase() is Phase.RUNNING
    assert model.clocks(play.record, play.seen) == []


def test_idle_gpus_are_told_once_for_each_time_they_are_idle() -> None:
    play = a_play(idle_gpus_after=1200.0)
    since = play.now
    play.step(1100, gpus_idle_since=since)
    assert play.notes == []
    play.step(200, gpus_idle_since=since)
    assert play.notes == ["No GPU has computed for 21 min"]
    play.step(60, gpus_idle_since=since)
    assert play.notes == []
    play.step(1300, gpus_idle_since=since + 100)
    assert len(play.notes) == 1
    assert play.record.target == Target(4, 4)


def test_idle_gpus_but_those_of_one_job_are_given_back() -> None:
    play = a_play(6, idle_gpus_after=600.0, idle_gpus_action="shrink")
    play.step(700, gpus_idle_since=play.now)
    assert play.record.target == Target(2, 2)
    assert "from 6 to 2" in play.notes[0]
    play.desired = 2
    actions = play.step(gpus_idle_since=play.now - 700)
    assert len(of(model.Retire, actions)[0].keys) == 2
    play.step(5000, gpus_idle_since=play.now - 700)
    assert play.record.target == Target(2, 2)


def test_an_adaptive_cluster_shrinks_by_itself_and_is_only_warned() -> None:
    play = a_play(4, idle_gpus_after=600.0, idle_gpus_action="shrink")
    play.record = replace(play.record, target=Target(2, 4))
    play.step(700, gpus_idle_since=play.now)
    assert play.record.target == Target(2, 4)
    assert len(play.notes) == 1


def test_idle_gpus_stop_the_cluster_where_the_profile_says_so() -> None:
    play = a_play(idle_gpus_after=600.0, idle_gpus_action="stop")
    since = play.now
    play.step(100, gpus_idle_since=since)
    [clock] = model.clocks(play.record, play.seen)
    assert clock.ends == since + 600
    play.step(550, gpus_idle_since=since)
    assert play.phase() is Phase.STOPPING
    assert play.record.reason == "Time-out of idle GPUs reached."


def test_gpus_that_tell_nothing_are_not_taken_for_idle() -> None:
    play = a_play(idle_gpus_after=600.0, idle_gpus_action="stop")
    play.step(100_000)
    assert play.phase() is Phase.RUNNING
