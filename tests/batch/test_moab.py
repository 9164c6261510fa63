"""Moab's dialect against the form in which its manual and public tools show its answers."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch.torque import Moab
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import JobState, JobStatus, Submission
from tests.batch.answers import answer

MOAB = Moab()
ONE = Submission("gpc-7f3a2b-1", "/jobs/gpc-7f3a2b-1.sh")
QUEUE = """<Data><Object>queue</Object><cluster LocalUpNodes="2" time="1278483759"/>
<queue count="1" option="active"><job Account="gv" Class="short" DRMJID="41.master" JobID="41"
  JobName="gpc-7f3a2b-1" MasterHost="node129" RsvStartTime="1278479828" StartTime="1278479828"
  State="Running"
  User="ann"/></queue>
<queue count="1" option="eligible"><job JobID="42" JobName="gpc-7f3a2b-2" StartTime="0"
  RsvStartTime="1278490000" State="Idle" User="ann"/></queue>
<queue count="1" option="blocked"><job JobID="Moab.43" JobName="gpc-7f3a2b-3"
  State="BatchHold" User="ann"/></queue></Data>"""
COMPLETED = """<Data><Object>queue</Object><queue count="4" option="completed">
<job CompletionCode="0" JobID="31" JobName="a" State="Completed"/>
<job CompletionCode="3" JobID="32" JobName="b" State="Completed"/>
<job CompletionCode="CNCLD" JobID="33" JobName="c" State="Removed"/>
<job CompletionCode="271" JobID="34" JobName="d" State="Removed"/></queue></Data>"""


def test_each_job_is_a_submission_of_its_own() -> None:
    assert MOAB.most_tasks == 1
    assert MOAB.submit(ONE) == ["msub", ONE.script]


def test_the_queue_is_read() -> None:
    assert list(MOAB.parse_status(answer(QUEUE)).values()) == [
        JobStatus("41", JobState.RUNNING, "gpc-7f3a2b-1", nodes=("node129",), started=1278479828.0),
        JobStatus(
            "42", JobState.PENDING, "gpc-7f3a2b-2", reason="Idle", expected_start=1278490000.0
        ),
        JobStatus("Moab.43", JobState.HELD, "gpc-7f3a2b-3", reason="BatchHold"),
    ]
    assert "has given up" in MOAB.explain(JobStatus("1", JobState.HELD, reason="BatchHold"))
    assert "checkjob 42" in MOAB.explain(JobStatus("42", JobState.PENDING, reason="Idle"))


def test_the_completed_are_read() -> None:
    assert MOAB.history(["31"]) == ["showq", "-c", "--xml"]
    found = MOAB.parse_history(answer(COMPLETED))
    assert [(status.state.value, status.exit_code) for status in found.values()] == [
        ("done", 0),
        ("failed", 3),
        ("cancelled", None),
        ("cancelled", -15),
    ]


def test_a_user_s_name_cannot_become_another_filter() -> None:
    assert MOAB.status("ann", []) == ["showq", "--xml", "-w", "user=ann"]
    with pytest.raises(InvalidInput):
        MOAB.status("ann,acct=x", [])
