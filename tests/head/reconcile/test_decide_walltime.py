"""Stories of jobs whose walltime ends: drained, relieved in time, or not replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpucluster.core.cluster import Phase, Policy
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.head.reconcile.model import STARTUP_SECONDS, Cancel, Retire, Submit
from jupyter_gpucluster.head.summary import summarise

from ..world import Play, finished, of, ready, waiting

ONE, TWO = "gpc-abc123-1", "gpc-abc123-2"
HOUR = 3600


def an_hour(workers: int = 1, **policy: Any) -> Play:
    """Return a cluster whose workers have just come, each in a job of one hour."""
    play = ready(workers, policy=Policy(drain_before=300, **policy), walltime=HOUR)
    return play


def left(play: Play, seconds: float) -> float:
    """Return how long to wait until so much is left of the first job's walltime."""
    started = play.job(f"{ONE}_0").started
    assert started is not None
    return started + HOUR - seconds - play.now


def test_a_successor_is_there_before_the_job_leaves_and_costs_nothing_of_the_budget() -> None:
    play = an_hour(replacements=0)
    assert play.step(left(play, 300 + STARTUP_SECONDS + 60)) == []
    assert play.step(60) == [Submit(TWO, 1)]
    assert play.words == "1 of 1 worker ready, 1 waiting, 1 to be replaced before the walltime ends"
    assert play.step() == []
    play.connect(f"{TWO}_0")
    assert play.step() == [Retire((f"{ONE}_0",))]
    play.retired.add(f"{ONE}_0")
    assert play.step() == [Cancel((play.job(f"{ONE}_0").id,))]
    assert play.step() == []
    assert (play.alive(), play.phase()) == ([f"{TWO}_0"], Phase.RUNNING)
    assert play.record.replaced == 0


@pytest.mark.parametrize("wait, in_second_half", [(600, False), (10 * HOUR, True)])
def test_the_longer_jobs_have_waited_the_earlier_a_successor_is_requested(
    wait: int, in_second_half: bool
) -> None:
    play = Play(1, policy=Policy(), walltime=HOUR)
    play.step()
    play.step(wait)
    play.connect()
    play.step()
    waited = play.now - play.job(f"{ONE}_0").submitted
    due = HOUR / 2 if in_second_half else waited + STARTUP_SECONDS
    assert play.step(left(play, due + 10)) == []
    assert play.step(10) == [Submit(TWO, 1)]


def test_results_do_not_go_to_a_job_that_sleeps() -> None:
    play = an_hour(2, at_walltime="stop")
    play.queue.change(play.job(f"{ONE}_1").id, JobState.SUSPENDED, ends=play.now + 10 * HOUR)
    play.step(left(play, 100))
    assert all(job.retiring_since is None for job in play.record.jobs)


def test_results_stay_where_the_others_end_as_soon() -> None:
    play = an_hour(2)
    play.queue.change(play.job(f"{ONE}_1").id, JobState.RUNNING, ends=play.now + HOUR + 60)
    play.step(left(play, 350))
    play.deaf = True
    play.step(left(play, 10))
    assert all(job.retiring_since is None for job in play.record.jobs)


def test_without_a_successor_results_go_to_the_others_before_the_end() -> None:
    play = an_hour(2)
    play.queue.change(play.job(f"{ONE}_1").id, JobState.RUNNING, ends=play.now + 10 * HOUR)
    play.step(left(play, 350))
    play.deaf = True
    assert play.step(left(play, 301)) == []
    assert play.step(1) == [Retire((f"{ONE}_0",))]
    assert play.job(f"{ONE}_1").successor_requested_at is None


def test_a_worker_alone_works_on_until_somebody_can_take_its_results() -> None:
    play = an_hour()
    play.step(left(play, 350))
    play.step(left(play, 200))
    assert play.step() == []
    play.connect(f"{TWO}_0")
    assert play.step() == [Retire((f"{ONE}_0",))]


def test_a_job_that_reached_its_walltime_is_replaced_without_a_budget() -> None:
    play = ready(1, policy=Policy(replacements=0), walltime=HOUR)
    play.deaf = True
    play.step(left(play, 30))
    play.deaf = False
    play.die(f"{ONE}_0", JobState.TIMEOUT)
    play.step(30)
    assert play.record.stop_requested is None
    assert play.job(f"{ONE}_0").cause == "It reached its walltime; its results went with it."


def test_the_end_of_the_walltime_is_known_where_the_system_calls_it_a_failure() -> None:
    play = ready(1, policy=Policy(replacements=0), walltime=HOUR)
    play.step(left(play, 2))
    play.die(f"{ONE}_0", JobState.FAILED, -9)
    play.step()
    assert play.job(f"{ONE}_0").not_counted
    assert play.record.stop_requested is None


def leave(play: Play, before: float) -> None:
    """Have the first job's worker reach its own lifetime while the head hangs."""
    play.now += left(play, before)
    play.restarted.add(f"{ONE}_0")
    play.die(f"{ONE}_0", JobState.DONE, 0)
    play.step()


def test_workers_that_left_by_themselves_before_the_walltime_cost_nothing_of_the_budget() -> None:
    play = ready(1, policy=Policy(replacements=0), walltime=HOUR)
    leave(play, 55)
    assert f"{ONE}_0 left by itself before its walltime ended" in play.notes
    assert (play.queue.submitted, play.record.replaced) == ([ONE, TWO], 0)
    assert play.record.stop_requested is None


@pytest.mark.parametrize("extended", [0, HOUR])
def test_workers_that_left_by_themselves_have_no_successor_where_none_is_to_follow(
    extended: int,
) -> None:
    play = an_hour(2, at_walltime="stop")
    for task in (0, 1):
        ends = play.now + HOUR + (extended if task == 0 else 10 * HOUR)
        play.queue.change(play.job(f"{ONE}_{task}").id, JobState.RUNNING, ends=ends)
    leave(play, 55)
    play.step()
    assert (play.phase(), play.queue.submitted) == (Phase.RUNNING, [ONE])
    assert play.words == "1 of 1 worker ready, 1 gone at the walltime and not replaced"


def test_workers_that_left_by_themselves_long_before_the_walltime_are_replaced_all_the_same() -> (
    None
):
    play = an_hour(1, at_walltime="stop", replacements=0)
    leave(play, HOUR / 2)
    play.step()
    assert play.queue.submitted == [ONE, TWO]
    assert f"{ONE}_0 left by itself before its walltime ended" not in play.notes


def test_a_job_that_never_worked_and_ran_out_of_time_is_a_death() -> None:
    play = waiting(1, policy=Policy(replacements=0), walltime=HOUR)
    play.die(f"{ONE}_0", JobState.TIMEOUT)
    play.step()
    assert not play.job(f"{ONE}_0").not_counted
    assert play.record.outcome is Phase.FAILED


def test_where_none_is_to_follow_the_others_go_on_and_the_words_say_so() -> None:
    play = an_hour(2, at_walltime="stop")
    play.queue.change(play.job(f"{ONE}_1").id, JobState.RUNNING, ends=play.now + 10 * HOUR)
    play.step()
    assert play.step(left(play, 300)) == [Retire((f"{ONE}_0",))]
    play.retired.add(f"{ONE}_0")
    play.step()
    assert play.step() == []
    assert (play.phase(), play.queue.submitted) == (Phase.RUNNING, [ONE])
    assert play.words == "1 of 1 worker ready, 1 gone at the walltime and not replaced"


def test_where_none_is_to_follow_the_cluster_ends_with_its_last_job() -> None:
    play = an_hour(1, at_walltime="stop")
    [clock] = summarise(play.record, play.seen, play.now).clocks
    assert (clock.name, clock.job) == ("walltime", "")
    assert play.step(left(play, 100)) == []
    play.die(f"{ONE}_0", JobState.TIMEOUT)
    assert finished(play.step(100))
    assert play.phase() is Phase.STOPPED
    assert play.record.reason == "All jobs reached their time limit, and `at_walltime` is `stop`."


def test_a_cluster_without_tasks_gets_no_successor_and_ends_with_its_last_job() -> None:
    play = an_hour(1, while_used=True)
    seen: dict[str, Any] = {"results": {f"{ONE}_0": 2**30}}
    play.step(left(play, 300 + STARTUP_SECONDS), **seen)
    assert play.notes == [
        f"{ONE}_0 ends in 6 min, with 1024 MiB of results in its memory, and gets no successor:"
        " no task ran in the last 1 h. Run a task to keep the workers."
    ]
    [clock] = summarise(play.record, play.seen, play.now).clocks
    assert (clock.name, clock.follows) == ("walltime", None)
    play.step(**seen)
    assert play.notes == []
    play.die(f"{ONE}_0", JobState.TIMEOUT)
    assert finished(play.step(left(play, 0), **seen))
    assert play.queue.live() == []
    assert play.record.reason == (
        "All jobs reached their time limit, and no task ran in the last 1 h."
    )


def test_a_task_brings_back_the_jobs_that_were_not_replaced() -> None:
    play = an_hour(2, while_used=True)
    play.queue.change(play.job(f"{ONE}_1").id, JobState.RUNNING, ends=play.now + 10 * HOUR)
    play.step(left(play, 100))
    play.die(f"{ONE}_0", JobState.TIMEOUT)
    play.step(100)
    assert (play.record.expired, play.step()) == (1, [])
    assert play.step(used=play.now) == [Submit(TWO, 1)]


def test_work_just_before_the_walltime_brings_a_successor() -> None:
    play = an_hour(1, while_used=True)
    play.step(left(play, 300 + STARTUP_SECONDS))
    assert play.job(f"{ONE}_0").without_successor_since is not None
    assert play.step(100, used=play.now + 100) == [Submit(TWO, 1)]


def test_the_job_that_ends_first_is_shown_as_a_clock() -> None:
    play = an_hour(2)
    end = play.now + 0.5 * HOUR
    play.queue.change(play.job(f"{ONE}_1").id, JobState.RUNNING, ends=end)
    play.step()
    [clock] = summarise(play.record, play.seen, play.now).clocks
    assert (clock.name, clock.ends) == (f"end of job {ONE}_1, a new one follows", end)
    assert clock.job == f"{ONE}_1"


def test_a_cluster_that_ends_before_its_jobs_do_asks_for_no_successors() -> None:
    play = ready(1, policy=Policy(max_lifetime=HOUR), walltime=2 * HOUR)
    assert of(Submit, play.step(HOUR - 1500)) == []


def test_a_cluster_that_shrinks_lets_the_relieved_go_first() -> None:
    play = an_hour(2)
    play.queue.change(play.job(f"{ONE}_1").id, JobState.RUNNING, ends=play.now + 10 * HOUR)
    play.step()
    play.step(left(play, 350))
    play.desired = 1
    assert play.step() == [Retire((f"{ONE}_0",)), Cancel((play.job(f"{TWO}_0").id,))]


def test_a_system_that_tells_no_start_counts_from_where_the_job_was_seen_to_run() -> None:
    play = an_hour()
    seen = play.job(f"{ONE}_0").started
    play.step(100)
    assert seen is not None
    assert play.job(f"{ONE}_0").started == seen
    play.workers.clear()
    play.queue.change(play.job(f"{ONE}_0").id, JobState.PENDING)
    play.step()
    assert play.job(f"{ONE}_0").started is None


@pytest.mark.parametrize("skew", [-3 * HOUR, 3 * HOUR])
def test_a_queueing_system_whose_clock_is_not_ours_changes_nothing(skew: int) -> None:
    play = Play(1, policy=Policy(replacements=1), walltime=HOUR)
    play.record = replace(play.record, spec=replace(play.record.spec, backend="slurm"))
    play.step()
    play.step()
    for mark in (ONE, TWO):
        id = play.job(f"{mark}_0").id
        began = play.now + skew
        play.queue.change(id, JobState.RUNNING, started=began, ends=began + HOUR)
        play.workers[f"{mark}_0"] = 1
        assert play.step(10) == []
        job = play.job(f"{mark}_0")
        assert play.step(10) == []
        assert play.job(f"{mark}_0") == job, "what it says does not move with every look"
        assert job.started is not None
        assert job.ends == job.started + HOUR
        assert 0 <= play.now - job.started < 60
        play.queue.change(id, JobState.FAILED, exit_code=1, ended=play.now + skew)
        play.drop_dead()
        play.step()
        play.step()
    assert play.record.outcome is Phase.FAILED, "the second death is one too many"
