"""Worker groups beside the cluster's own workers: kept, replaced, refused, and ended together."""

from __future__ import annotations

from dataclasses import replace

from jupyter_gpucluster.core.cluster import Phase, Policy, WorkerGroup, WorkerShape
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.head.reconcile.model import Answer, Cancel, Finish, Submit
from tests.head.world import Play, of


def a_play(workers: int = 2, *, per_job: int = 2, policy: Policy | None = None) -> Play:
    """Return a cluster with a group of four workers, two in each job."""
    play = Play(workers, policy=policy)
    group = WorkerGroup("io", 4, worker=WorkerShape(per_job=per_job))
    play.record = replace(play.record, spec=replace(play.record.spec, groups=(group,)))
    return play


def jobs_of(play: Play, group: str) -> list[str]:
    return [job.key for job in play.record.jobs if job.group == group and job.ended is None]


def test_a_group_is_a_submission_of_its_own() -> None:
    play = a_play()
    [own, theirs] = of(Submit, play.step())
    assert (own.count, own.group) == (2, "")
    assert (theirs.count, theirs.group) == (2, "io")
    assert own.mark != theirs.mark
    play.get_ready()
    assert play.phase() is Phase.RUNNING
    assert len(jobs_of(play, "io")) == 2


def test_words_tell_how_far_each_group_is() -> None:
    play = a_play()
    play.get_ready()
    assert play.words == "2 of 2 workers ready, 2 of 4 io workers"
    play.workers |= dict.fromkeys(jobs_of(play, "io"), 2)
    play.step()
    assert play.words == "2 of 2 workers ready, 4 of 4 io workers"


def test_a_dead_job_of_a_group_is_replaced_by_one_of_the_group() -> None:
    play = a_play()
    play.get_ready()
    own = jobs_of(play, "")
    play.die(jobs_of(play, "io")[0])
    [submit] = of(Submit, play.step())
    assert (submit.count, submit.group) == (1, "io")
    assert jobs_of(play, "") == own
    assert play.record.replaced == 1


def test_the_target_moves_the_cluster_s_own_workers_only_until_there_are_none() -> None:
    play = a_play()
    play.get_ready()
    play.desired = 1
    for _ in range(3):
        play.step()
        play.retired |= play.workers.keys()
    assert (len(jobs_of(play, "")), len(jobs_of(play, "io"))) == (1, 2)
    play.desired = 0
    for _ in range(3):
        play.step()
    assert play.alive() == []
    play.desired = 1
    play.step()
    assert (len(jobs_of(play, "")), len(jobs_of(play, "io"))) == (1, 2)


def test_a_group_that_is_refused_ends_the_cluster_and_is_named() -> None:
    play = a_play()
    play.deaf = True
    [_, theirs] = of(Submit, play.step())
    play.deaf = False
    play.answers.append(Answer(theirs.mark, refusal="No such queue."))
    play.step()
    assert play.record.stop_requested is not None
    assert play.record.outcome is Phase.FAILED
    assert play.record.reason == "Workers of group io: No such queue."


def test_all_jobs_end_before_the_cluster_has_ended() -> None:
    play = a_play(policy=Policy(max_lifetime=1500.0))
    play.get_ready()
    play.deaf = True
    actions = play.step(1000.0)
    [cancel] = of(Cancel, actions)
    assert len(cancel.ids) == 4
    assert not of(Finish, actions)
    for key in jobs_of(play, ""):
        play.die(key, JobState.CANCELLED, None)
    assert not of(Finish, play.step())
    play.deaf = False
    play.step(10.0)
    assert of(Finish, play.step())
    assert play.phase() is Phase.STOPPED
    assert play.record.reason == "Maximum lifetime reached."
