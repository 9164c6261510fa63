"""HTCondor's dialect against what its manual shows; nothing here was recorded from a real pool."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpucluster.batch import elsewhere
from jupyter_gpucluster.batch.htcondor import HTCondor
from jupyter_gpucluster.batch.variables import inherited
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import (
    Capacity,
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Submission,
)
from tests.batch.answers import JSON_VALUES, answer

CONDOR = HTCondor()
FAR = {"_CONDOR_SCHEDD_HOST": "s@far"}
THREE = Submission("gpc-abc123-1", "/shared/jobs/gpc-abc123-1.sh", 3)
DEAD = "(JobStatus == 5 && HoldReasonCode =!= 1 && NumJobStarts > 0)"
PERIODIC = f"The job attribute PeriodicRemove expression '{DEAD}' evaluated to TRUE"


def ads(*records: dict[str, object]) -> CommandResult:
    return answer(json.dumps(list(records), indent=2))


def ad(**fields: object) -> dict[str, object]:
    return {"ClusterId": 12, "ProcId": 1, "JobBatchName": "gpc-abc123-1", "JobStatus": 1, **fields}


@pytest.mark.parametrize(
    "arguments, variables",
    [
        ((), {}),
        (("-verbose",), {}),
        (("-name", "s@far"), FAR),
        (("-spool", "-remote", "s@far"), FAR),
        (("-pool", "p", "-name", "s@far"), {**FAR, "_CONDOR_COLLECTOR_HOST": "p"}),
        (("-name", "-spool"), {}),
    ],
)
def test_all_commands_ask_the_schedd_that_jobs_are_submitted_to(
    arguments: tuple[str, ...], variables: dict[str, str]
) -> None:
    assert elsewhere("htcondor", JobShape(submit_args=arguments)) == variables
    assert elsewhere("pbs", JobShape(submit_args=arguments)) == {}
    assert variables.items() <= inherited(variables).items()


def queued(**fields: object) -> JobStatus:
    return CONDOR.parse_status(ads(ad(**fields)))["12.1"]


def past(**fields: object) -> JobStatus:
    return CONDOR.parse_history(ads(ad(**fields)))["12.1"]


def test_gpus_may_be_left_to_the_profiles_directives() -> None:
    lines = CONDOR.directives(JobShape(gpus=1, gpu_request="none"), "m", "/o")
    assert not any("gpus" in line for line in lines)


def test_the_description_goes_to_standard_input() -> None:
    text = '#!/bin/bash\n#CONDOR RequestCpus = 8\n#CONDOR MY.X = "y"\n# no directive\necho hello\n'
    submission = Submission("m", "/shared/jobs/m.sh", 3, text=text)
    assert CONDOR.submit(submission) == ["condor_submit", "-terse", "-"]
    assert CONDOR.stdin(submission) == (
        "RequestCpus = 8\n"
        'MY.X = "y"\n'
        "executable = /shared/jobs/m.sh\n"
        "arguments = $(ProcId)\n"
        "queue 3\n"
    )


def test_a_script_in_a_directory_that_condor_would_misread_is_refused() -> None:
    with pytest.raises(InvalidInput):
        CONDOR.stdin(Submission("m", "/shared/$(X)/m.sh"))


@pytest.mark.parametrize(
    "job_ad,restarts",
    [("NumShadowStarts = 1\nNumJobStarts = 0\n", "0"), ("NumShadowStarts = 3\n", "2"), ("", "0")],
)
def test_the_job_reads_its_number_and_its_restarts(
    job_ad: str, restarts: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("condor") / "job.ad"
    file.write_text(job_ad)
    script = f'task={CONDOR.task}\nrestarts={CONDOR.restarts}\necho "$task $restarts"\n'
    environment = {"PATH": "/usr/bin:/bin", "_CONDOR_JOB_AD": str(file)}
    told = subprocess.run(
        ["bash", "-c", script, "bash", "7"], env=environment, capture_output=True, text=True
    )
    assert told.stdout == f"7 {restarts}\n"
    assert told.stderr == ""


@pytest.mark.parametrize(
    "fields,state,words",
    [
        ({"JobStatus": 1}, "pending", "condor_q -better-analyze 12.1"),
        ({"JobStatus": 2}, "running", ""),
        ({"JobStatus": 3}, "ending", ""),
        ({"JobStatus": 4, "ExitCode": 0, "ExitBySignal": False}, "done", ""),
        ({"JobStatus": 5}, "held", "no reason given"),
        ({"JobStatus": 5, "HoldReason": "via condor_hold (by user alice)"}, "held",
         "condor_release"),
        ({"JobStatus": 5, "HoldReason": "Job has gone over cgroup memory limit of 1024 megabytes"},
         "held", "job.memory"),
        ({"JobStatus": 5, "HoldReason": "Error from slot1: Failed to open '/x': No such file"},
         "held", "nodes see"),
        ({"JobStatus": 5, "HoldReason": "Moon phase"}, "held", "On hold: Moon phase"),
        ({"JobStatus": 6}, "ending", ""),
        ({"JobStatus": 7}, "suspended", "Suspended"),
        ({"JobStatus": 99}, "unknown", ""),
        ({"JobStatus": "2"}, "unknown", ""),
        ({"JobStatus": True}, "unknown", ""),
    ],
)  # fmt: skip
def test_each_state_in_the_queue_is_read_and_explained(
    fields: dict[str, object], state: str, words: str
) -> None:
    status = queued(**fields)
    assert status.state is JobState(state)
    assert (status.id, status.task, status.mark) == ("12.1", 1, "gpc-abc123-1")
    assert words in CONDOR.explain(status)


def test_a_running_job_has_its_machine_and_start() -> None:
    status = queued(JobStatus=2, RemoteHost="slot1_1@gpu01.example.org", JobCurrentStartDate=1e9)
    assert status.nodes == ("gpu01.example.org",)
    assert (status.started, status.ended) == (1e9, None)


@pytest.mark.parametrize(
    "fields,state,code,words",
    [
        ({"JobStatus": 4, "ExitCode": 0, "ExitBySignal": False}, "done", 0, ""),
        ({"JobStatus": 4, "ExitCode": 3, "ExitBySignal": False}, "failed", 3, "exit code 3"),
        ({"JobStatus": 4, "ExitSignal": 9, "ExitBySignal": True}, "failed", -9, "signal 9"),
        ({"JobStatus": 4}, "unknown", None, ""),
        ({"JobStatus": 3, "RemoveReason": "via condor_rm (by user x)"}, "cancelled", None,
         "via condor_rm"),
        ({"JobStatus": 3, "RemoveReason": PERIODIC, "HoldReasonCode": 34}, "out_of_memory", None,
         "job.memory"),
        ({"JobStatus": 3, "RemoveReason": PERIODIC, "LastHoldReasonCode": 46}, "timeout", None, ""),
        ({"JobStatus": 3, "RemoveReason": PERIODIC}, "timeout", None, ""),
        ({"JobStatus": 3, "RemoveReason": PERIODIC, "HoldReasonCode": 6}, "failed", None, ""),
    ],
)  # fmt: skip
def test_each_end_is_read_and_explained(
    fields: dict[str, object], state: str, code: int | None, words: str
) -> None:
    status = past(CompletionDate=2e9, **fields)
    assert status.state is JobState(state)
    assert status.exit_code == code
    assert status.ended == 2e9
    assert CONDOR.explain(status) or state in ("done", "unknown")
    assert words in CONDOR.explain(status)


def test_the_commands_name_users_and_ids() -> None:
    assert CONDOR.status("alice", ["12.1"])[-1] == "alice"
    assert CONDOR.history(["12.0", "12.1"])[-4:] == ["-limit", "2", "12.0", "12.1"]  # type: ignore[index]
    assert CONDOR.cancel(["12.0", "12.1"]) == ["condor_rm", "12.0", "12.1"]


def test_capacity_counts_each_machine_once() -> None:
    machine = {"Machine": "gpu01", "TotalGPUs": 4}
    other = {"Machine": "gpu02", "TotalGPUs": 2}
    result = ads(
        {**machine, "GPUs": 3, "State": "Unclaimed", "PartitionableSlot": True},
        {**machine, "GPUs": 1, "State": "Claimed", "DynamicSlot": True},
        {**other, "GPUs": 2, "State": "Owner", "PartitionableSlot": True},
    )
    assert CONDOR.parse_capacity(result) == [Capacity("pool", 3, 6)]
    assert CONDOR.parse_capacity(answer("")) == []


KEYS = st.sampled_from(
    "ClusterId ProcId JobStatus JobBatchName HoldReason HoldReasonCode RemoveReason RemoteHost"
    " ExitCode ExitSignal ExitBySignal JobCurrentStartDate CompletionDate Machine GPUs".split()
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(KEYS, JSON_VALUES) | JSON_VALUES, max_size=4))
def test_ads_of_any_shape_are_read_or_left_out(records: list[object]) -> None:
    result = answer(json.dumps(records))
    for jobs in (CONDOR.parse_status(result), CONDOR.parse_history(result)):
        for id, status in jobs.items():
            assert status.id == id
            assert CONDOR.explain(status) is not None
    CONDOR.parse_capacity(result)
