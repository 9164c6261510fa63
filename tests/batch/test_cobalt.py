"""Cobalt's dialect against its manual; nothing here was recorded from a real Cobalt."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch.cobalt import Cobalt
from jupyter_gpucluster.core.job import JobShape, JobState, Submission
from tests.batch.answers import answer

COBALT = Cobalt()
ONE = Submission("gpc-abc123-1", "/shared/jobs/gpc-abc123-1.sh")
ROUTED = 'Job routed to queue "full-node".\nMemory mode set to cache quad for queue full-node\n'


def block(id: str, state: str, location: str = "None", name: str = "gpc-abc123-1") -> str:
    rows = {"JobName": name, "State": state, "Location": location}
    fields = "".join(f"    {key:<10}: {value}\n" for key, value in rows.items())
    return f"JobID: {id}\n{fields}\n"


def test_in_some_queues_the_amount_counts_gpus() -> None:
    shape = JobShape(gpus=3, gpu_request="gpus", queue="single-gpu")
    assert COBALT.directives(shape, "m", "/o")[-1] == "#COBALT -n 3"
    assert COBALT.directives(JobShape(gpus=3), "m", "/o")[-1] == "#COBALT -n 1"
    for without in (JobShape(nodes=2, gpu_request="gpus"), JobShape(nodes=2, gpus=16, cpus=64)):
        assert COBALT.directives(without, "m", "/o")[-1] == "#COBALT -n 2"


def test_each_job_is_a_submission_of_its_own() -> None:
    assert COBALT.most_tasks == 1
    assert COBALT.submit(ONE) == ["qsub", "--mode", "script", ONE.script]
    assert COBALT.stdin(ONE) == ""


@pytest.mark.parametrize(
    "word,state,words",
    [
        ("queued", "pending", "Waits in the queue"),
        ("starting", "pending", "prepared"),
        ("maxrun_hold", "pending", "limit"),
        ("dep_hold", "pending", "another job"),
        ("dep_fail", "held", "never start"),
        ("user_hold", "held", "qrls"),
        ("admin_hold", "held", "administrator"),
        ("running", "running", ""),
        ("exiting", "ending", ""),
        ("killing", "ending", ""),
        ("brandnew", "unknown", ""),
    ],
)
def test_each_state_is_told_and_explained(word: str, state: str, words: str) -> None:
    [status] = COBALT.parse_status(answer(block("547797", word))).values()
    assert status.state is JobState(state)
    assert (status.id, status.mark, status.nodes) == ("547797", "gpc-abc123-1", ())
    assert words in COBALT.explain(status)
    assert status.unsatisfiable is (word == "dep_fail")


def test_several_jobs_are_told_apart() -> None:
    text = "Welcome\n" + block("547797", "running", "thetagpu[05-06]") + block("547798", "queued")
    jobs = COBALT.parse_status(answer(text))
    assert list(jobs) == ["547797", "547798"]
    assert jobs["547797"].nodes == ("thetagpu[05-06]",)
    assert jobs["547798"].state is JobState.PENDING


def test_status_asks_by_user_since_ended_ids_make_qstat_fail() -> None:
    assert COBALT.status("alice", ["547797"])[-2:] == ["-u", "alice"]
    assert COBALT.cancel(["1", "2"]) == ["qdel", "1", "2"]
    assert COBALT.history(["1"]) is None
    assert COBALT.capacity() is None
