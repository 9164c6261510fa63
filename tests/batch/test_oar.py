"""OAR against recorded answers of OAR 2.5.9."""

from __future__ import annotations

import json

import pytest

from jupyter_gpucluster.batch.oar import Oar
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import (
    Capacity,
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Submission,
)
from tests.batch.answers import answer
from tests.batch.recorded import recordings

OAR = Oar()
ONE = Submission("gpc-7f3a2b-1", "/jobs/gpc-7f3a2b-1.sh")
FOUR = Submission("gpc-7f3a2b-1", "/jobs/gpc-7f3a2b-1.sh", 4)


def one(**fields: object) -> JobStatus:
    return OAR.parse_status(answer(json.dumps({"7": {"name": "gpc-7f3a2b-1", **fields}})))["7"]


def test_capacity_counts_gpus_of_living_nodes_without_jobs() -> None:
    database_down, resources = sorted(
        recordings("oar", "capacity"), key=lambda recording: "oarnodes" in recording.file
    )
    assert OAR.parse_capacity(resources.result) == [Capacity("H100", free=3, total=4)]
    with pytest.raises(BackendUnavailable):
        OAR.parse_capacity(database_down.result)


def test_a_gpu_with_several_cores_is_one_gpu_and_taken_as_soon_as_one_core_is() -> None:
    core = {"network_address": "n1", "gpu": 1, "gpu_model": "A100", "state": "Alive"}
    text = json.dumps({"1": core, "2": {**core, "jobs": "65"}, "3": {**core, "gpu": 2}})
    assert OAR.parse_capacity(answer(text)) == [Capacity("A100", free=1, total=2)]


@pytest.mark.parametrize(
    "shape,path",
    [
        (JobShape(), "/nodes=1/core=1"),
        (JobShape(cpus=16), "/nodes=1/core=16"),
        (JobShape(gpus=2), "/nodes=1/gpu=2"),
        (JobShape(nodes=2, gpus=8, cpus=64), "/nodes=2/gpu=4/core=8"),
        (JobShape(gpus=2, gpu_request="gpudevice"), "/nodes=1/gpudevice=2"),
        (JobShape(gpus=2, cpus=4, gpu_request="none"), "/nodes=1/core=4"),
    ],
)
def test_resources_are_a_path_through_the_hierarchy(shape: JobShape, path: str) -> None:
    assert OAR.resources(shape) == path


def test_the_script_s_directory_is_named_since_oar_would_take_it_from_the_environment() -> None:
    assert OAR.submit(ONE) == ["oarsub", "-d", "/jobs", "-S", ONE.script]
    assert OAR.submit(FOUR) == ["oarsub", "-d", "/jobs", "--array", "4", "-S", ONE.script]
    with pytest.raises(InvalidInput):
        OAR.submit(Submission("gpc-7f3a2b-1", "/home/ann/my jobs/x.sh"))


def test_jobs_of_an_array_have_ids_of_their_own_in_the_order_of_their_numbers() -> None:
    text = "Rule of the house\nOAR_JOB_ID=5\nOAR_JOB_ID=6\nOAR_JOB_ID=7\nOAR_JOB_ID=8\n"
    assert OAR.parse_submit(FOUR, answer(text + "OAR_ARRAY_ID=5\n")) == ("5", "6", "7", "8")
    assert one(state="Running", array_index=3).task == 2


def test_a_refusal_is_one_although_a_number_is_printed() -> None:
    words = "There are not enough resources for your request\n[ERROR] Oarsub failed."
    with pytest.raises(BackendError) as caught:
        OAR.parse_submit(ONE, answer("OAR_JOB_ID=-5\n", code=8, stderr=words))
    assert not isinstance(caught.value, BackendUnavailable)
    assert caught.value.message.endswith("There are not enough resources for your request")
    assert "job.gpus" in caught.value.hint


def test_the_living_are_listed_and_those_ended_that_were_asked_for() -> None:
    living = "job_user='ann' AND (state NOT IN ('Terminated','Error')"
    assert OAR.status("ann", []) == ["oarstat", "-J", "-f", "--sql", f"{living})"]
    asked = OAR.status("ann", ["5", "6", "7) OR (1=1"])
    assert asked[-1] == f"{living} OR job_id IN (5,6))"
    assert OAR.history(["5", "6"]) == ["oarstat", "-J", "-f", "-j", "5", "-j", "6"]


@pytest.mark.parametrize("user", ["ann' OR '1'='1", "", "a b", 'ann"'])
def test_a_user_s_name_cannot_become_sql(user: str) -> None:
    with pytest.raises(InvalidInput):
        OAR.status(user, [])


def test_nothing_is_an_empty_list_only_where_no_job_was_asked_for() -> None:
    nothing_asked = CommandResult(tuple(OAR.status("ann", [])), 0, "", "")
    assert OAR.parse_status(nothing_asked) == {}
    asked = CommandResult(tuple(OAR.status("ann", ["5"])), 0, "", "")
    with pytest.raises(BackendUnavailable):
        OAR.parse_status(asked)


def ended_by(event: str, description: str = "") -> dict[str, object]:
    """Return the fields of a job that an event ended."""
    return {"state": "Error", "events": [{"type": event, "description": description}]}


@pytest.mark.parametrize(
    "fields,state,words",
    [
        (ended_by("WALLTIME"), JobState.TIMEOUT, "It reached its walltime"),
        (ended_by("BESTEFFORT_KILL"), JobState.PREEMPTED, "A job that is not besteffort"),
        (ended_by("EXIT_VALUE_OAREXEC"), JobState.NODE_FAIL, "Its node could not start it"),
        (ended_by("WORKING_DIRECTORY"), JobState.FAILED, "Its working directory"),
        (ended_by("FRAG_JOB_REQUEST", "User bob requested to"), JobState.CANCELLED,
         "It was cancelled by bob."),
        (ended_by("FRAG_JOB_REQUEST", "User root requested to"), JobState.CANCELLED,
         "It was ended by the"),
        (ended_by("NEWER_EVENT"), JobState.FAILED, "OAR ended it without a reason"),
        # States that were too short to record.
        ({"state": "toLaunch"}, JobState.RUNNING, ""),
        ({"state": "toAckReservation"}, JobState.PENDING, ""),
        ({"state": "Resuming"}, JobState.SUSPENDED, ""),
        ({"state": "Finishing"}, JobState.ENDING, ""),
        ({"state": "toError"}, JobState.ENDING, ""),
        ({"state": "Newer"}, JobState.UNKNOWN, ""),
    ],
)  # fmt: skip
def test_states_and_events_tell_how_a_job_is(
    fields: dict[str, object], state: JobState, words: str
) -> None:
    status = one(**fields)
    assert status.state is state
    assert OAR.explain(status).startswith(words)


def test_only_an_unusual_message_is_a_reason() -> None:
    usual = "R=1,W=0:10:0,J=B,N=gpc-7f3a2b-1 (Karma=0.000,quota_ok)"
    assert one(state="Waiting", message=usual).reason == ""
    unusual = one(state="Waiting", message="Cannot find enough resources which fit for the job 7")
    assert "job.gpus" in OAR.explain(unusual)


def test_an_estimated_start_is_told() -> None:
    assert one(state="Waiting", scheduledStart=1795829221).expected_start == 1795829221.0
    assert one(state="Running", scheduledStart=1795829221).expected_start is None
