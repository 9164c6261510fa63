"""PBS against recorded answers of OpenPBS 23.06, and Torque against what its manual shows."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.pbs import Pbs, size
from jupyter_gpucluster.batch.torque import Torque
from jupyter_gpucluster.core.errors import BackendUnavailable
from jupyter_gpucluster.core.job import (
    Capacity,
    JobShape,
    JobState,
    JobStatus,
    Submission,
)
from tests.batch.answers import answer
from tests.batch.golden import ROOT, example_of, script_of
from tests.batch.recorded import recordings

PBS, TORQUE = Pbs(), Torque()
ONE = Submission("gpc-7f3a2b-1", "/jobs/gpc-7f3a2b-1.sh")
FOUR = Submission("gpc-7f3a2b-1", "/jobs/gpc-7f3a2b-1.sh", 4)
SHAPE = JobShape(gpus=2, cpus=8, memory=60 * 2**30, walltime=7200, queue="gpu", account="phys")


def listed(**fields: object) -> JobStatus:
    return PBS.listed("7.s", {"Job_Name": "gpc-7f3a2b-1", **fields})


def test_capacity_counts_free_gpus_only_on_nodes_that_take_jobs() -> None:
    [recording] = recordings("pbs", "capacity")
    # gpu01 is full; gpu02 is offline and has two GPUs that nobody uses.
    assert PBS.parse_capacity(recording.result) == [Capacity("all nodes", free=0, total=8)]
    with pytest.raises(BackendUnavailable):
        PBS.parse_capacity(answer(code=1, stderr="pbsnodes: Connection refused"))


def test_several_nodes_share_what_the_job_asks_for_and_are_several() -> None:
    shape = JobShape(nodes=2, gpus=8, cpus=64, memory=2**38, gpu_type="v100")
    assert PBS.resources(shape) == [
        "select=2:ncpus=32:mem=128GB:ngpus=4",
        "place=scatter",
        "gpu_type=v100",
    ]


@pytest.mark.parametrize(
    "backend,request_,line",
    [
        (PBS, "gpus", "select=1:gpus=2"),
        (PBS, "none", "select=1"),
        (TORQUE, "", "nodes=1:gpus=2"),
        (TORQUE, "none", "nodes=1"),
    ],
)
def test_gpus_are_asked_for_in_the_site_s_spelling(backend: Pbs, request_: str, line: str) -> None:
    assert backend.resources(JobShape(gpus=2, gpu_request=request_)) == [line]


def test_torque_asks_for_nodes_and_for_the_memory_of_all_of_them() -> None:
    shape = JobShape(nodes=2, gpus=4, cpus=16, memory=2**37, gpu_type="v100")
    assert TORQUE.resources(shape) == ["nodes=2:ppn=8:gpus=2:v100", "mem=128GB"]


def test_memory_is_rounded_up_in_the_largest_unit_of_two_digits() -> None:
    assert [size(n) for n in (1, 10_240, 12_345_678, 1_234_567_890, 15_000_000_000)] == [
        "1B", "10kB", "12MB", "1178MB", "14GB",
    ]  # fmt: skip


def test_one_job_is_no_array_since_pbs_refuses_one_of_one() -> None:
    assert PBS.submit(ONE) == ["qsub", ONE.script]
    assert PBS.submit(FOUR) == ["qsub", "-J", "0-3", ONE.script]
    assert TORQUE.submit(FOUR) == ["qsub", "-t", "0-3", ONE.script]


def test_ids_are_those_that_the_listing_uses() -> None:
    assert PBS.parse_submit(ONE, answer("3.login1\n")) == ("3.login1",)
    ids = tuple(f"2[{task}].login1" for task in range(4))
    assert PBS.parse_submit(FOUR, answer("2[].login1\n")) == ids
    text = '{"Jobs": {"2[3].login1": {"Job_Name": "gpc-7f3a2b-1", "job_state": "Q"}}}'
    assert PBS.parse_status(answer(text))["2[3].login1"].task == 3


def test_an_array_is_asked_for_once_and_never_an_empty_id() -> None:
    ids = ["2[0].s", "2[1].s", "3.s", ""]
    assert PBS.status("ann", ids) == ["qstat", "-t", "-f", "-F", "json", "2[].s", "3.s"]
    assert PBS.status("ann", []) == ["qstat", "-t", "-f", "-F", "json"]
    assert PBS.history(ids) == ["qstat", "-x", "-t", "-f", "-F", "json", "2[].s", "3.s"]
    assert PBS.cancel(["2[0].s", "3.s"]) == ["qdel", "2[0].s", "3.s"]


def test_json_that_variables_made_invalid_is_read_all_the_same() -> None:
    text = """{"timestamp":1, "Jobs":{
        "7.s":{
            "Job_Name":"gpc-7f3a2b-1",
            "job_state":"F",
            "Exit_status":271,
            "Account_Name":007,
            "stime":"Sat Nov 28 00:45:36 2026",
            "Variable_List":{
                "HALF":.5,
                "MINUS":-00,
                "QUOTED":"it\\'s \\u00e9 a\\,b"
            }
        }
    }}"""
    status = PBS.parse_status(answer(text))["7.s"]
    assert status.exit_code == -15
    assert status.started == datetime(2026, 11, 28, 0, 45, 36).timestamp()


@pytest.mark.parametrize(
    "fields,state,words",
    [
        ({"job_state": "T"}, JobState.PENDING, "Waits in the queue."),
        ({"job_state": "M"}, JobState.UNKNOWN, ""),
        ({"job_state": "H", "Hold_Types": "p"}, JobState.HELD, "Held because of a bad password"),
        ({"job_state": "F", "Exit_status": -20}, JobState.NODE_FAIL, "Its node failed."),
        ({"job_state": "F", "Exit_status": 256}, JobState.FAILED, "It ended with exit code 256"),
        ({"job_state": "F", "substate": 92, "stime": "x"}, JobState.UNKNOWN, ""),
        ({"job_state": "Q", "comment": "odd"}, JobState.PENDING, "PBS says: odd."),
    ],
)
def test_what_was_not_recorded_has_words_too(
    fields: dict[str, object], state: JobState, words: str
) -> None:
    status = listed(**fields)
    assert status.state is state
    assert PBS.explain(status).startswith(words)


def test_an_estimated_start_is_told() -> None:
    start = {"start_time": "Sat Nov 28 00:59:12 2026", "exec_vnode": "(gpu01:ncpus=1)"}
    status = listed(job_state="Q", estimated=start)
    assert status.expected_start == datetime(2026, 11, 28, 0, 59, 12).timestamp()


def test_torque_s_listing_is_read() -> None:
    text = """<Data>
      <Job><Job_Id>5[].srv</Job_Id><Job_Name>gpc-7f3a2b-1</Job_Name><job_state>R</job_state></Job>
      <Job><Job_Id>5[1].srv</Job_Id><Job_Name>gpc-7f3a2b-1-1</Job_Name><job_state>R</job_state>
        <exec_host>gpu01/0+gpu01/1</exec_host><start_time>1795827000</start_time></Job>
      <Job><Job_Id>6.srv</Job_Id><Job_Name>gpc-7f3a2b-2</Job_Name><job_state>C</job_state>
        <exit_status>-11</exit_status><comp_time>1795827100</comp_time></Job>
      <Job><Job_Id>7.srv</Job_Id><Job_Name>a&amp;b</Job_Name><job_state>C</job_state>
        <exit_status>271</exit_status></Job>
    </Data>"""
    assert list(TORQUE.parse_status(answer(text)).values()) == [
        JobStatus(
            "5[1].srv",
            JobState.RUNNING,
            "gpc-7f3a2b-1",
            task=1,
            nodes=("gpu01",),
            started=1795827000.0,
        ),
        JobStatus("6.srv", JobState.TIMEOUT, "gpc-7f3a2b-2", ended=1795827100.0),
        JobStatus("7.srv", JobState.CANCELLED, "a&b", exit_code=-15),
    ]


@pytest.mark.parametrize("system", ["torque", "moab"])
def test_the_page_shows_what_the_same_profile_asks_of_torque_and_moab(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    example = example_of("pbs")
    page = (ROOT / "docs" / "backends" / "pbs.md").read_text("utf-8")
    _, shown, *_ = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    text = script_of(example.replace("backend: pbs", f"backend: {system}"), tmp_path)
    assert f"backend: {system}" not in example
    assert set(shown.splitlines()) <= set(text.splitlines())
    assert len(shown.splitlines()) == 3
