"""Why jobs wait and end, in sentences: the reasons that Slurm's manual lists, and PBS's ends."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.backends import find_backend
from jupyter_gpucluster.backends.reasons.slurm import HELD
from jupyter_gpucluster.records import JobState, JobStatus

WAITING = """
AccountNotAllowed AssocGrpCpuLimit AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpGRES
AssocGrpGRESMinutes AssocGrpBillingMinutes AssocGrpJobsLimit AssocGrpMemLimit AssocGrpNodeLimit
AssocGrpSubmitJobsLimit AssocMaxJobsLimit AssocMaxWallDurationPerJobLimit BadConstraints BeginTime
BurstBufferResources BurstBufferStageIn Cleaning DeadLine Dependency DependencyNeverSatisfied
FrontEndDown InvalidAccount InvalidQOS JobArrayTaskLimit JobHeldAdmin JobHeldUser JobHoldMaxRequeue
Licenses MaxGRESPerAccount MaxJobsPerAccount NodeDown PartitionConfig PartitionDown
PartitionInactive PartitionNodeLimit PartitionTimeLimit Priority Prolog QOSGrpCpuLimit
QOSGrpGRESMinutes QOSJobLimit QOSMaxGRESPerUser QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit
QOSMaxWallDurationPerJobLimit QOSMinGRES QOSNotAllowed QOSResourceLimit QOSTimeLimit
QOSUsageThreshold ReqNodeNotAvail Reservation ReservationDeleted Resources SchedDefer
""".split()
SLURM = find_backend("slurm")


@pytest.mark.parametrize(
    "reason",
    [
        *WAITING,
        "ReqNodeNotAvail, UnavailableNodes:gpu04",
        "ReqNodeNotAvail, Reserved for maintenance",
        "job requeued in held state",
        "launch failed requeued held",
    ],
)
def test_slurms_reasons_to_wait_have_sentences_of_their_own(reason: str) -> None:
    state = JobState.HELD if reason in HELD else JobState.PENDING
    words = SLURM.explain(JobStatus("7_0", state, reason=reason))
    assert words.endswith(".")
    assert not words.startswith("Slurm says")


@pytest.mark.parametrize("reason", ["AssocGrpGRESMinutes", "QOSGrpCPUMinutesLimit"])
def test_a_budget_that_is_used_up_does_not_come_back_by_waiting(reason: str) -> None:
    words = SLURM.explain(JobStatus("7_0", JobState.PENDING, reason=reason))
    assert "used up" in words
    assert "another account" in words


@pytest.mark.parametrize(
    "reason, words",
    [
        ("JobLaunchFailure", "could not start it"),
        ("BadConstraints", "No node has"),
        ("NonZeroExitCode", "exit code 3"),
    ],
)
def test_what_slurm_says_of_a_failure_is_told(reason: str, words: str) -> None:
    status = JobStatus("7_0", JobState.FAILED, reason=reason, exit_code=3)
    assert words in SLURM.explain(status)


@pytest.mark.parametrize(
    "comment, by",
    [
        ("Job run at Sat Nov 28 at 00:46 on (gpu01) and terminated by root@login1", "root@login1"),
        ("Job held by alice on Sat Nov 28 00:45:59 2026 and terminated", "somebody"),
        ("Not Running: No available resources on nodes and terminated", "somebody"),
        ("", "somebody"),
    ],
)  # fmt: skip
def test_pbs_tells_who_cancelled_a_job_where_it_knows(comment: str, by: str) -> None:
    status = JobStatus("7.server", JobState.CANCELLED, reason=comment)
    assert find_backend("pbs").explain(status) == f"It was cancelled by {by}."
