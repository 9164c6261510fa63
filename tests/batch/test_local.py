"""The dialect of this machine's own job server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_gpucluster.batch.local import Local
from jupyter_gpucluster.core.errors import BackendUnavailable
from jupyter_gpucluster.core.job import Capacity, CommandResult, JobState, JobStatus, Submission
from jupyter_gpucluster.head.local_scheduler import request_parser

TASK = {
    "id": "gpc-abc123-1_0",
    "mark": "gpc-abc123-1",
    "number": 0,
    "state": "running",
    "pid": 77,
    "started_ticks": 123456,
    "devices": ["0"],
    "exit_code": None,
    "reason": "",
    "started": 1.5,
    "ended": None,
}


def answer(data: object) -> CommandResult:
    return CommandResult(("gpucluster-jobs",), 0, json.dumps(data), "")


def status_of(**changes: Any) -> JobStatus:
    [status] = Local().parse_status(answer([{**TASK, **changes}])).values()
    return status


def test_all_that_a_submission_asks_for_is_what_the_job_server_reads() -> None:
    argv = ("{scheduler}", "--name", "{name}", "--tls-directory", "/a b/c")
    asked = Submission("gpc-abc123-1", "/state/x.sh", 3, argv, gpus=1, memory=5)
    read = request_parser().parse_args(Local().submit(asked)[1:])
    assert (read.verb, read.mark, str(read.script)) == ("submit", asked.mark, asked.script)
    assert (read.count, read.gpus, read.memory) == (3, 1, 5)
    assert tuple(read.worker_argv) == argv


def test_a_submission_without_more_is_read_too() -> None:
    read = request_parser().parse_args(Local().submit(Submission("m", "/x.sh"))[1:])
    assert (read.count, read.gpus, read.memory, read.worker_argv) == (1, 0, None, [])


def test_its_other_commands_are_read_by_the_job_server() -> None:
    parser, local = request_parser(), Local()
    assert parser.parse_args(local.status("ann", [])[1:]).verb == "status"
    assert parser.parse_args(local.cancel(["a_0", "a_1"])[1:]).ids == ["a_0", "a_1"]
    capacity = local.capacity()
    assert capacity is not None
    assert parser.parse_args(capacity[1:]).verb == "capacity"


def test_ids_come_back_in_the_order_of_tasks() -> None:
    ids = ["gpc-abc123-1_0", "gpc-abc123-1_1"]
    assert Local().parse_submit(Submission("gpc-abc123-1", "x", 2), answer(ids)) == tuple(ids)


def test_a_running_job_is_a_process_with_its_devices() -> None:
    status = status_of()
    assert status.state is JobState.RUNNING
    assert status.process == (77, 123456)
    assert status.devices == ("0",)
    assert (status.mark, status.task, status.started) == ("gpc-abc123-1", 0, 1.5)


@pytest.mark.parametrize(
    "changes, state, words",
    [
        ({"state": "pending", "pid": 0}, JobState.PENDING, "GPUs of this machine"),
        ({"exit_code": 0}, JobState.DONE, ""),
        ({"exit_code": 7}, JobState.FAILED, "exit code 7"),
        ({"exit_code": -11}, JobState.FAILED, "signal 11"),
        ({"exit_code": -9, "reason": "memory"}, JobState.OUT_OF_MEMORY, "memory limit"),
        ({"exit_code": -15, "reason": "cancelled"}, JobState.CANCELLED, ""),
        ({"exit_code": -9, "reason": "head gone"}, JobState.CANCELLED, ""),
        ({"reason": "no process: No room", "pid": 0}, JobState.FAILED, "no process: No room"),
    ],
)
def test_states_and_what_is_said_of_them(
    changes: dict[str, Any], state: JobState, words: str
) -> None:
    status = status_of(**{"state": "ended", **changes})
    assert status.state is state
    assert words in Local().explain(status)


def test_a_job_that_never_started_is_no_process() -> None:
    assert status_of(state="pending", pid=0).process == ()


def test_free_and_total_gpus_are_those_of_this_machine() -> None:
    assert Local().parse_capacity(answer({"free": 1, "total": 2})) == [
        Capacity("this machine", 1, 2)
    ]


def test_an_answer_that_makes_no_sense_is_none() -> None:
    with pytest.raises(BackendUnavailable):
        Local().parse_status(CommandResult(("x",), 0, "{torn", ""))
