"""The first message for users: the last loss of workers, and the state of its replacements."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpucluster.core.cluster import Policy
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.core.serialize import from_json, to_json
from jupyter_gpucluster.core.summary import Loss, Summary
from jupyter_gpucluster.head.reconcile.model import DEATHS_WINDOW
from jupyter_gpucluster.head.summary import summarise

from .world import Play, waiting

ONE, TWO = "gpc-abc123-1", "gpc-abc123-2"


def loss_of(play: Play) -> Loss | None:
    return summarise(play.record, play.seen, play.now).loss


def told(play: Play) -> Loss:
    loss = loss_of(play)
    assert loss is not None
    return loss


def on_nodes(play: Play, *nodes: str) -> None:
    """Let the jobs run on these nodes, one each, and their workers come."""
    for status, node in zip(play.queue.live(), nodes, strict=True):
        play.queue.change(status.id, status.state, nodes=(node,))
    play.connect()
    play.step()


def working(*nodes: str, **options: Any) -> Play:
    """Return a cluster with a ready job on each of these nodes."""
    play = waiting(len(nodes) * options.get("per_job", 1), **options)
    on_nodes(play, *nodes)
    return play


def fail(play: Play, job: str) -> None:
    """Let a job's node fail, and look."""
    play.die(job, JobState.NODE_FAIL, None)
    play.step()


def test_all_gpus_of_a_failed_node_are_one_loss_with_its_replacements() -> None:
    play = working("demo01", gpus=2, per_job=2)
    assert loss_of(play) is None
    fail(play, f"{ONE}_0")
    died = play.now
    play.step()
    loss = told(play)
    assert (loss.workers, loss.unit, loss.nodes) == (2, "GPUs", ("demo01",))
    assert (loss.state, loss.connected, loss.time) == (JobState.NODE_FAIL, True, died)
    assert (loss.waiting, loss.starting, loss.replaced) == (2, 0, 0)
    play.queue.change(play.job(f"{TWO}_0").id, JobState.RUNNING)
    play.step()
    loss = told(play)
    assert (loss.waiting, loss.starting, loss.replaced) == (0, 2, 0)
    play.connect()
    play.step()
    loss = told(play)
    assert (loss.waiting, loss.starting, loss.replaced) == (0, 0, 2)


def test_jobs_that_end_one_listing_after_the_other_are_one_loss() -> None:
    play = working("n1", "n1", "n2")
    fail(play, f"{ONE}_0")
    play.die(f"{ONE}_1", JobState.NODE_FAIL, None)
    play.step(20)
    play.step()
    loss = told(play)
    assert (loss.workers, loss.unit, loss.nodes, loss.waiting) == (2, "workers", ("n1",), 2)


def test_a_later_loss_of_another_kind_takes_the_first_place() -> None:
    play = working("n1", "n2")
    fail(play, f"{ONE}_0")
    play.log[f"{ONE}_1"] = "MemoryError"
    play.die(f"{ONE}_1", JobState.FAILED)
    play.step()
    loss = told(play)
    assert (loss.workers, loss.nodes, loss.cause) == (1, ("n2",), "MemoryError")


def test_a_loss_is_shown_for_ten_minutes_and_for_as_long_as_its_replacement_is_not_ready() -> None:
    play = working("n1")
    fail(play, f"{ONE}_0")
    play.step(2 * DEATHS_WINDOW)
    loss = told(play)
    assert loss.waiting == 1
    play.connect()
    play.step()
    assert loss_of(play) is None


def test_workers_that_are_asked_for_later_are_no_replacements_of_an_old_loss() -> None:
    play = working("n1")
    fail(play, f"{ONE}_0")
    play.step()
    play.connect()
    play.step(2 * DEATHS_WINDOW)
    play.desired = 3
    play.step()
    assert play.words.endswith("2 waiting")
    assert loss_of(play) is None


def test_workers_that_leave_as_asked_are_no_loss() -> None:
    play = working("n1", "n2", "n3")
    play.desired = 1
    play.volunteers = (f"{ONE}_2", f"{ONE}_1")
    play.step()
    play.retired = {f"{ONE}_1", f"{ONE}_2"}
    play.step()
    play.step()
    assert play.alive() == [f"{ONE}_0"]
    assert loss_of(play) is None


def test_a_job_that_died_before_its_worker_was_ready_lost_no_results() -> None:
    play = waiting(1)
    play.queue.change(play.job(f"{ONE}_0").id, JobState.RUNNING, nodes=("n1",))
    play.step()
    play.log[f"{ONE}_0"] = "No module named 'dask'"
    play.die(f"{ONE}_0")
    play.step()
    loss = told(play)
    assert not loss.connected
    assert (loss.cause, loss.waiting) == ("No module named 'dask'", 1)


def test_a_job_that_is_requeued_has_lost_its_workers_and_replaces_itself() -> None:
    play = working("demo01", gpus=4, per_job=4)
    id = play.job(f"{ONE}_0").id
    play.queue.change(id, JobState.PENDING, nodes=())
    play.workers.clear()
    play.step()
    loss = told(play)
    assert loss.requeued
    assert loss.connected
    assert (loss.workers, loss.nodes, loss.waiting) == (4, ("demo01",), 4)
    play.queue.change(id, JobState.RUNNING, nodes=("demo02",))
    play.step()
    loss = told(play)
    assert (loss.nodes, loss.starting) == ((), 4)
    play.connect()
    play.step()
    loss = told(play)
    assert loss.replaced == 4
    play.step(2 * DEATHS_WINDOW)
    assert loss_of(play) is None


def test_a_stop_on_request_hides_a_loss_and_a_failure_does_not() -> None:
    play = waiting(1, policy=Policy(replacements=0))
    on_nodes(play, "n1")
    fail(play, f"{ONE}_0")
    loss = told(play)
    assert loss.waiting == 0
    play = working("n1")
    fail(play, f"{ONE}_0")
    play.stop()
    play.step()
    assert loss_of(play) is None


@pytest.mark.parametrize("ready", [True, False])
def test_workers_of_a_cluster_that_stops_are_ending_and_not_lost(ready: bool) -> None:
    play = waiting(3)
    if ready:
        play.connect()
        play.step()
    play.deaf = True
    play.stop()
    play.step()
    counts = summarise(play.record, play.seen, play.now).workers
    assert (counts.asked, counts.ending, counts.lost, counts.ready) == (3, 3, 0, 0)
    play.die(f"{ONE}_0", JobState.CANCELLED, None)
    play.step()
    counts = summarise(play.record, play.seen, play.now).workers
    assert (counts.ending, counts.lost) == (2, 0)


def test_summaries_of_older_versions_are_read() -> None:
    play = waiting(1)
    data = to_json(summarise(play.record, play.seen, play.now))
    del data["loss"], data["workers"]["ending"]
    assert from_json(Summary, data).loss is None
