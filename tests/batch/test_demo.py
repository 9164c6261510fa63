"""The dialect of the simulated site."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.core.errors import BackendError
from jupyter_gpucluster.core.job import CommandResult, JobShape, JobState, Submission
from jupyter_gpucluster.head.local_scheduler import request_parser
from jupyter_gpucluster.head.simulator import site as site_rules

DEMO = find_backend("demo")
SHAPE = JobShape(gpus=4, walltime=5400, queue="batch", account="physics")
TOLD: dict[str, Any] = {
    "id": "gpc-a-1_0", "mark": "gpc-a-1", "number": 0, "state": "running", "reason": "",
    "outcome": "", "nodes": ["demo01"], "exit_code": None, "process": [7, 8],
    "started": 1.0, "ended": None, "ends": 5401.0, "expected_start": None,
}  # fmt: skip


def test_the_site_reads_what_the_dialect_asks_for() -> None:
    lines = DEMO.directives(SHAPE, "gpc-a-1", "/state/logs/gpc-a-1.out")
    asked = site_rules.requested("\n".join(["#!/bin/sh", *lines, "exec worker"]))
    site = site_rules.submit(site_rules.Site(), "gpc-a-1", 1, "\n".join(lines), (1, 1))
    assert asked["job-name"] == "gpc-a-1"
    [job] = site.jobs
    assert (job.queue, job.gpus, job.walltime) == ("batch", 4, 5400)


def test_the_job_server_reads_what_the_dialect_submits() -> None:
    worker_argv = ("tls://a", "--name", "{name}")
    argv = DEMO.submit(Submission("gpc-a-1", "/x.sh", 3, worker_argv, workers=4))
    read = request_parser().parse_args(argv[1:])
    assert (read.mark, read.count, read.workers, str(read.script)) == ("gpc-a-1", 3, 4, "/x.sh")
    assert read.worker_argv == list(worker_argv)


@pytest.mark.parametrize(
    "state, outcome, expected",
    [
        ("pending", "", JobState.PENDING),
        ("running", "", JobState.RUNNING),
        ("ending", "timeout", JobState.ENDING),
        ("over", "timeout", JobState.TIMEOUT),
        ("over", "node_fail", JobState.NODE_FAIL),
        ("over", "cancelled", JobState.CANCELLED),
        ("over", "failed", JobState.FAILED),
        ("over", "done", JobState.DONE),
    ],
)
def test_states_are_read(state: str, outcome: str, expected: JobState) -> None:
    text = json.dumps([{**TOLD, "state": state, "outcome": outcome}])
    [status] = DEMO.parse_status(CommandResult((), 0, text)).values()
    assert status.state is expected
    assert (status.nodes, status.process, status.ends) == (("demo01",), (7, 8), 5401.0)


def test_every_reason_of_the_site_has_a_sentence() -> None:
    told = set()
    for reason in ("priority", "resources", "limit", "down", "preempted"):
        text = json.dumps([{**TOLD, "state": "pending", "reason": reason}])
        [status] = DEMO.parse_status(CommandResult((), 0, text)).values()
        told.add(DEMO.explain(status))
    assert len(told) == 5


def test_a_refusal_names_the_way_out() -> None:
    words = "demo: requested walltime 08:00:00 exceeds the limit 00:30:00 of queue debug"
    with pytest.raises(BackendError) as caught:
        DEMO.parse_submit(Submission("gpc-a-1", "/x.sh"), CommandResult((), 1, "", words))
    assert words in caught.value.message
    assert "shorter walltime" in caught.value.hint
