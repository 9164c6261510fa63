"""LSF's dialect against what its manual's pages show; nothing here was recorded from a real LSF."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpucluster.batch.contradictions import directives_of
from jupyter_gpucluster.batch.lsf import Lsf, limit_letter
from jupyter_gpucluster.core.errors import BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import (
    Capacity,
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Submission,
)
from tests.batch.answers import JSON_VALUES, answer

LSF = Lsf()
THREE = Submission("gpc-abc123-1", "/shared/jobs/gpc-abc123-1.sh", 3, text="#!/bin/bash\nhi\n")


def listing(*records: Mapping[str, object]) -> CommandResult:
    text = json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": list(records)})
    return answer(text)


def one(**fields: object) -> JobStatus:
    record = {"JOBID": "77", "JOBINDEX": "2", "JOB_NAME": "gpc-abc123-1[2]", "STAT": "RUN"}
    [status] = LSF.parse_status(listing({**record, **fields})).values()
    return status


@pytest.fixture(autouse=True)
def megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site whose limits are in megabytes."""
    (tmp_path / "lsf.conf").write_text("LSF_LOGDIR=/var/log\nLSF_UNIT_FOR_LIMITS=MB\n")
    monkeypatch.setenv("LSF_ENVDIR", str(tmp_path))


def test_a_walltime_is_rounded_up_to_minutes() -> None:
    assert "#BSUB -W 01:31" in LSF.directives(JobShape(walltime=5430), "m", "/o")


def test_several_nodes_share_cores_memory_and_gpus() -> None:
    shape = JobShape(nodes=2, gpus=8, cpus=80, memory=10**12, gpu_type="TeslaV100_SXM2")
    lines = LSF.directives(shape, "m", "/o")
    assert lines == [
        "#BSUB -J m",
        "#BSUB -n 80",
        "#BSUB -M 500000",
        "#BSUB -o /o",
        '#BSUB -R "span[ptile=40]"',
        '#BSUB -gpu "num=4:gmodel=TeslaV100_SXM2:j_exclusive=yes"',
    ]


@pytest.mark.parametrize(
    "request_,gpus",
    [
        ("gpu", ['#BSUB -gpu "num=2:j_exclusive=yes"']),
        ("ngpus_physical", ['#BSUB -R "rusage[ngpus_physical=2]"']),
        ("ngpus_excl_p", ['#BSUB -R "rusage[ngpus_excl_p=2]"']),
        ("none", []),
        ("nnodes", ["#BSUB -nnodes 1"]),
    ],
)
def test_gpus_are_asked_for_in_the_sites_way(request_: str, gpus: list[str]) -> None:
    shape = JobShape(gpus=2, cpus=1, gpu_request=request_)
    cores = ["#BSUB -n 1"] if request_ != "nnodes" else []
    assert LSF.directives(shape, "m", "/o") == ["#BSUB -J m", *cores, "#BSUB -o /o", *gpus]


def test_a_directive_for_whole_nodes_turns_off_what_easy_mode_refuses() -> None:
    shape = JobShape(nodes=2, gpus=12, cpus=84, memory=10**12, directives=("-nnodes 2",))
    with pytest.raises(InvalidInput, match=r"'-nnodes 2' sets what job\.nodes sets"):
        directives_of(LSF, shape, LSF.directives(shape, "m", "/o"))
    skipping = replace(shape, skip_directives=("-nnodes",))
    assert directives_of(LSF, skipping, LSF.directives(skipping, "m", "/o"))[2:] == [
        "#BSUB -nnodes 2"
    ]


@pytest.mark.parametrize(
    "text,unit",
    [
        ("", "k"),
        ("LSF_UNIT_FOR_LIMITS=GB\n", "g"),
        ("LSF_UNIT_FOR_LIMITS = mb # ours\n", "m"),
        ('LSF_UNIT_FOR_LIMITS="TB"\n', "t"),
        ("LSF_UNIT_FOR_LIMITS=KB\nLSF_UNIT_FOR_LIMITS=GB\n", "g"),
        ("#LSF_UNIT_FOR_LIMITS=GB\n", "k"),
    ],
)
def test_the_unit_of_limits_is_the_sites(tmp_path: Path, text: str, unit: str) -> None:
    (tmp_path / "lsf.conf").write_text(text)
    assert limit_letter({"LSF_ENVDIR": str(tmp_path)}) == unit
    assert limit_letter({"LSF_CONFDIR": "/nonexistent"}) == "k"


def test_the_script_goes_to_standard_input() -> None:
    assert LSF.submit(THREE) == ["bsub", "-J", "gpc-abc123-1[1-3]"]
    assert LSF.stdin(THREE) == THREE.text


@pytest.mark.parametrize(
    "shape, by_file",
    [
        (JobShape(submit_by="file"), True),
        (JobShape(submit_by="stdin"), False),
        (JobShape(), False),
        (JobShape(gpu_request="nnodes"), True),
        (JobShape(gpu_request="nnodes", submit_by="stdin"), False),
        (JobShape(submit_by="file", directives=("-G x",), skip_directives=("-n ",)), True),
    ],
)
def test_a_profile_may_choose_how_bsub_gets_the_script(shape: JobShape, by_file: bool) -> None:
    lines = directives_of(LSF, shape, LSF.directives(shape, "m", "/o"))
    text = "\n".join(["#!/bin/bash", *lines, "hi"])
    sent = Submission("m", "/shared/m.sh", text=text)
    assert LSF.submit(sent) == ["bsub", "-J", "m[1-1]", *(["/shared/m.sh"] if by_file else [])]
    assert LSF.stdin(sent) == ("" if by_file else text)


@pytest.mark.parametrize(
    "fields,state,code,words",
    [
        ({"STAT": "PEND"}, "pending", None, "Waits in the queue"),
        ({"STAT": "PEND", "PEND_REASON": "Job slot limit reached: 12 hosts;"}, "pending", None, ""),
        ({"STAT": "PEND", "PEND_REASON": "New job is waiting for scheduling;"}, "pending", None,
         "Just arrived"),
        ({"STAT": "PEND", "PEND_REASON": "Candidate's hosts' resource requirements not satisfied: "
          "ngpus_physical"}, "pending", None, "job.gpus"),
        ({"STAT": "PEND", "PEND_REASON": "The user has reached his/her job slot limit"}, "pending",
         None, "limit"),
        ({"STAT": "PEND", "PEND_REASON": "Moon phase"}, "pending", None, "LSF says: Moon phase"),
        ({"STAT": "PSUSP"}, "held", None, ""),
        ({"STAT": "PSUSP", "PEND_REASON": "The job was suspended by the user while pending"},
         "held", None, "bresume"),
        ({"STAT": "PROV"}, "pending", None, ""),
        ({"STAT": "RUN", "EXEC_HOST": "8*node1:8*node2"}, "running", None, ""),
        ({"STAT": "USUSP"}, "suspended", None, ""),
        ({"STAT": "SSUSP"}, "suspended", None, "Suspended"),
        ({"STAT": "UNKWN"}, "unknown", None, "lost contact"),
        ({"STAT": "ZOMBI"}, "unknown", None, ""),
        ({"STAT": "BRANDNEW"}, "unknown", None, ""),
        ({"STAT": "DONE"}, "done", 0, ""),
        ({"STAT": "EXIT", "EXIT_CODE": "3"}, "failed", 3, "exit code 3"),
        ({"STAT": "EXIT", "EXIT_REASON": "TERM_RUNLIMIT: job killed after ..."}, "timeout", None,
         "walltime"),
        ({"STAT": "EXIT", "EXIT_CODE": "137", "EXIT_REASON": "TERM_MEMLIMIT: ..."},
         "out_of_memory", 137, "job.memory"),
        ({"STAT": "EXIT", "EXIT_CODE": "130", "EXIT_REASON": "TERM_OWNER: job killed by owner"},
         "cancelled", 130, ""),
        ({"STAT": "EXIT", "EXIT_REASON": "TERM_PREEMPT: ..."}, "preempted", None, ""),
        ({"STAT": "EXIT", "EXIT_REASON": "TERM_NEW: ..."}, "failed", None, ""),
    ],
)  # fmt: skip
def test_each_state_is_read_and_explained(
    fields: dict[str, str], state: str, code: int | None, words: str
) -> None:
    status = one(**fields)
    assert status.state is JobState(state)
    assert status.exit_code == code
    assert (status.id, status.mark, status.task) == ("77[2]", "gpc-abc123-1", 1)
    assert words in LSF.explain(status)


def test_a_running_job_has_nodes_and_times() -> None:
    status = one(EXEC_HOST="8*node1:8*node2:node2", START_TIME="Dec 28 19:56 2026")
    assert status.nodes == ("node1", "node2")
    assert status.started is not None
    assert status.ended is None
    assert one(START_TIME="Dec 28 19:56").started is None


@pytest.mark.parametrize(
    "record,id",
    [
        ({"JOBID": "77[4]", "JOBINDEX": "", "JOB_NAME": "m[4]"}, "77[4]"),
        ({"JOBID": "77", "JOBINDEX": "4", "JOB_NAME": "m"}, "77[4]"),
        ({"JOBID": "77", "JOB_NAME": "m[4]"}, "77[4]"),
        ({"JOBID": 77, "JOBINDEX": 4, "JOB_NAME": "m[4]"}, "77[4]"),
    ],
)
def test_the_id_of_a_task_is_found_in_each_form(record: dict[str, object], id: str) -> None:
    assert list(LSF.parse_status(listing({"STAT": "RUN", **record}))) == [id]


def test_what_is_no_task_of_ours_is_left_out() -> None:
    other = {"JOBID": "9", "JOBINDEX": "0", "JOB_NAME": "mine", "STAT": "RUN"}
    unknown = {"JOBID": "8", "ERROR": "Job <8> is not found"}
    assert LSF.parse_status(listing(other, unknown)) == {}


@pytest.mark.parametrize(
    "fields, hopeless",
    [
        ({"STAT": "PEND", "PEND_REASON": "Dependency condition invalid or never satisfied"}, True),
        ({"STAT": "PEND", "PEND_REASON": "Job dependency condition not satisfied"}, False),
        ({"STAT": "EXIT", "PEND_REASON": "Dependency condition invalid"}, False),
    ],
)
def test_what_it_depends_on_may_never_happen(fields: dict[str, str], hopeless: bool) -> None:
    assert one(**fields).unsatisfiable is hopeless


def test_the_commands_name_users_and_ids() -> None:
    assert LSF.status("alice", ["77[1]"])[:7] == [
        "env", "LSB_DISPLAY_YEAR=Y", "bjobs", "-json", "-a", "-u", "alice",
    ]  # fmt: skip
    assert LSF.cancel(["77[1]", "77[2]"]) == ["bkill", "77[1]", "77[2]"]
    assert LSF.history(["77[1]"]) is None
    assert LSF.parse_history(answer()) == {}


def test_the_start_that_lsf_expects_is_told_while_a_job_waits() -> None:
    when = {"ESTIMATED_START_TIME": "Nov 28 12:30 2026"}
    assert one(STAT="PEND", **when).expected_start == datetime(2026, 11, 28, 12, 30).timestamp()
    assert one(STAT="PEND", ESTIMATED_START_TIME="-").expected_start is None
    assert one(STAT="RUN", **when).expected_start is None
    assert "estimated_start_time" in LSF.status("alice", [])[-1]


def test_gpus_without_jobs_are_free() -> None:
    text = """\
HOST_NAME              ID           MODEL     MUSED      MRSV  NJOBS    RUN   SUSP    RSV
hosta                   0 TeslaK20c_4743M        0M        0M      0      0      0      0
                        1 TeslaK20c_4743M      230M        0M      1      1      0      0
hostb                   - - - - - - - -
"""
    assert LSF.parse_capacity(answer(text)) == [Capacity("all hosts", 1, 2)]
    vendors = text.replace("0      0\n", "0      0   Nvidia\n").replace("RSV\n", "RSV   VENDOR\n")
    assert LSF.parse_capacity(answer(vendors)) == [Capacity("all hosts", 1, 2)]
    assert LSF.parse_capacity(answer("")) == []
    with pytest.raises(BackendUnavailable):
        LSF.parse_capacity(answer("", 255))


KEYS = st.sampled_from(
    "JOBID JOBINDEX STAT JOB_NAME EXIT_CODE EXIT_REASON PEND_REASON EXEC_HOST START_TIME".split()
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(KEYS, JSON_VALUES) | JSON_VALUES, max_size=4))
def test_records_of_any_shape_are_read_or_left_out(records: list[object]) -> None:
    text = json.dumps({"COMMAND": "bjobs", "RECORDS": records})
    for id, status in LSF.parse_status(answer(text)).items():
        assert status.id == id
        assert LSF.explain(status) is not None
