"""Why jobs wait and end, in sentences: the reasons that Slurm's manual lists, and PBS's ends."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.reasons import Reasons, Rule
from jupyter_gpucluster.core.job import JobState, JobStatus

KINDS = ("BB", "Billing", "CPU", "Energy", "GRES", "License", "Mem", "Memory", "Node", "Unknown")
WAITING = [
    *"""
AccountNotAllowed AccountingPolicy AssocGrpCpuLimit AssocGrpJobsLimit AssocGrpMemLimit
AssocGrpNodeLimit AssocGrpSubmitJobsLimit AssocGrpWallLimit AssocMaxCpuMinutesPerJobLimit
AssocMaxCpuPerJobLimit AssocMaxJobsLimit AssocMaxNodePerJobLimit AssocMaxSubmitJobLimit
AssocMaxWallDurationPerJobLimit AssociationJobLimit AssociationResourceLimit AssociationTimeLimit
BadConstraints BeginTime BurstBufferOperation BurstBufferResources BurstBufferStageIn Cleaning
DeadLine Dependency DependencyNeverSatisfied FedJobLock FrontEndDown InvalidAccount InvalidQOS
JobArrayTaskLimit JobHeldAdmin JobHeldUser JobHoldMaxRequeue Licenses MaxCpuPerAccount
MaxJobsPerAccount MaxMemPerLimit MaxSubmitJobsPerAccount NodeDown PartitionConfig PartitionDown
PartitionInactive PartitionNodeLimit PartitionTimeLimit PowerNotAvail PowerReserved Priority Prolog
QOSGrpCpuLimit QOSGrpJobsLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpSubmitJobsLimit QOSGrpWallLimit
QOSJobLimit QOSMaxCpuMinutesPerJobLimit QOSMaxCpuPerJobLimit QOSMaxCpuPerUserLimit
QOSMaxJobsPerUserLimit QOSMaxNodePerJobLimit QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit
QOSMaxWallDurationPerJobLimit QOSMinCpuNotSatisfied QOSNotAllowed QOSResourceLimit QOSTimeLimit
QOSUsageThreshold ReqNodeNotAvail RequiresReservation Reservation ReservationDeleted
ReservationInvalid ReservationMaxDurationExceeded Resources SchedDefer
""".split(),
    *(f"{whose}Grp{kind}{rest}" for whose in ("Assoc", "QOS") for kind in KINDS
      for rest in ("", "Minutes", "RunMinutes")),
    *(f"{whose}Max{kind}{per}" for whose in ("Assoc", "QOS") for kind in KINDS
      for per in ("MinutesPerJob", "PerJob", "PerNode", "PerUser")),
    *(f"Max{kind}PerAccount" for kind in KINDS),
    *(f"QOSMin{kind}" for kind in KINDS),
]  # fmt: skip
"""All that Slurm 22.05 knows, and what its manual has added since."""
SLURM = find_backend("slurm")


@pytest.mark.parametrize(
    "reason",
    [
        *WAITING,
        "ReqNodeNotAvail, UnavailableNodes:gpu04",
        "ReqNodeNotAvail, Reserved for maintenance",
        "job requeued in held state",
        "launch failed requeued held",
        "user env retrieval failed requeued held",
    ],
)
def test_slurms_reasons_to_wait_have_sentences_of_their_own(reason: str) -> None:
    state = Reasons("slurm").find("waiting", reason).state or JobState.PENDING
    words = SLURM.explain(JobStatus("7_0", state, reason=reason))
    assert words.endswith(".")
    assert not words.startswith("Slurm says")


@pytest.mark.parametrize(
    "state,reason,words",
    [
        *[(JobState.PENDING, reason, words) for reason, words in [
            ("AssocGrpGRESRunMinutes", "starts when some finish"),
            ("QOSMaxGRESPerUser", "starts when some are free"),
            ("MaxGRESPerAccount", "starts when some are free"),
            ("QOSMaxGRESPerJob", "will not start: ask for fewer GPUs"),
            ("AssocMaxBillingMinutesPerJob", "will not start: ask for a shorter walltime"),
            ("QOSMinGRES", "ask for more"),
            ("AssocGrpGRESMinutes", "used up"),
            ("AssocGrpGRESMinutes", "another account"),
            ("QOSGrpCPUMinutesLimit", "used up"),
            ("QOSGrpCPUMinutesLimit", "another account"),
        ]],
        (JobState.FAILED, "JobLaunchFailure", "could not start it"),
        (JobState.FAILED, "BadConstraints", "No node has"),
        (JobState.FAILED, "NonZeroExitCode", "exit code 3"),
    ],
)  # fmt: skip
def test_slurm_s_sentence_says_whether_waiting_helps_and_why_a_job_failed(
    state: JobState, reason: str, words: str
) -> None:
    assert words in SLURM.explain(JobStatus("7_0", state, reason=reason, exit_code=3))


@pytest.mark.parametrize(
    "comment, by",
    [
        ("Job run at Sat Nov 28 at 00:46 on (gpu01) and terminated by root@login1", "root@login1"),
        ("Job held by alice on Sat Nov 28 00:45:59 2026 and terminated", "a user"),
        ("Not Running: No available resources on nodes and terminated", "a user"),
        ("", "a user"),
    ],
)  # fmt: skip
def test_pbs_tells_who_cancelled_a_job_where_it_knows(comment: str, by: str) -> None:
    status = JobStatus("7.server", JobState.CANCELLED, reason=comment)
    assert find_backend("pbs").explain(status) == f"It was cancelled by {by}."


OTHERS = {
    # The words of OpenPBS's scheduler.
    "pbs": [
        "Not Running: Queue not an execution queue.",
        "Not Running: User has reached server running job limit.",
        "Not Running: User has reached queue gpu running job limit.",
        "Not Running: Group has reached server running limit.",
        "Not Running: Queue job limit has been reached.",
        "Not Running: Node has reached job run limit",
        "Not Running: would exceed user ann's limit on resource ngpus in complex",
        "Not Running: Job would cross dedicated time boundary",
        "Not Running: Dedicated time conflict",
        "Not Running: No available resources on nodes",
        "Not Running: Not enough of the right type of nodes are available",
        "Not Running: Not enough free nodes available",
        "Not Running: Job would conflict with reservation or top job",
        "Not Running: Job will run in primetime only",
        "Not Running: Job will run in nonprimetime only",
        "Not Running: Job will cross into primetime",
        "Not Running: Could not preempt enough work to run job",
        "Not Running: Job would break strict sorted order",
        "Not Running: Draining system to allow starving job to run",
        "Not Running: Placement set switch=1 has too few free resources",
        "Not Running: Job is requesting an exclusive node and node is in use",
        "Not Running: Insufficient amount of server resource: licences (R: 2 A: 1 T: 4)",
        "Not Running: Insufficient amount of queue resource: ngpus (R: 2 A: 1 T: 4)",
        "Not Running: Insufficient amount of resource: fpgas (R: 2 A: 1 T: 4)",
        "Not Running: Specified server does not exist: x",
        "Not Running: PBS Error: Execution server rejected request",
        "job held, too many failed attempts to run",
    ],
    # What lsb_pendreason(3) and the page of bjobs say.
    "lsf": [
        "New job is waiting for scheduling",
        "The job is held until its specified start time",
        "Job dependency condition not satisfied",
        "Dependency condition invalid or never satisfied",
        "Migrating job is waiting for rescheduling",
        "The job's pre-exec command exited with non-zero status",
        "Unable to access job file",
        "Unable to set the job's environment variables",
        "Unable to determine the job's home/working directories",
        "Unable to open the job's input and output files",
        "Job execution initialization failed",
        "Scheduling of the job is delayed",
        "Waiting for re-scheduling after switching queue",
        "The queue is inactivated by the administrator",
        "The queue is inactivated by its time windows",
        "The queue has reached its job slot limit",
        "The queue has not enough job slots for the parallel job",
        "User has reached the per-user job slot limit of the queue",
        "Queue's resource requirements not satisfied",
        "Job's requirements for resource reservation not satisfied",
        "Job's resource requirements not satisfied",
        "The job will not finish before the queue's run window closes",
        "Job array has reached its running element limit",
        "The job group has reached its job limit",
        "Resource (ngpus_physical) limit defined cluster-wide has been reached",
        "Not enough GPUs on the hosts",
        "Just started a job recently",
        "Host is locked by the LSF administrator",
        "Load threshold reached",
        "Not usable to the queue",
        "Not specified in job submission",
        "Closed by LSF administrator",
        "Unable to reach slave batch server",
        "Not enough hosts to meet the job's spanning requirement",
        "Candidate host is preempted by the job",
    ],
    "oar": [
        "Cannot find enough resources for job 7",
        "No enough matching resources (/nodes=1/gpu=9)",
        "Cannot determine scheduling time due to dependency with the job 6",
        "Job will never run (deadline=1764288000), setting it to error",
        "Inner job: container 4 does not exist, inner job will never run, setting it to error",
        "Inner job: container 4 is yet to scheduled, inner job not scheduled",
        "No enough Tokens: matlab (0 < 1)",
        "Reservation too old",
        "This reservation cannot run",
        "One or several nodes are not responding correctly",
        "FIFO scheduling OK",
    ],
}
"""Messages of schedulers about waiting jobs, system by system."""


@pytest.mark.parametrize(
    "system, words", [(system, each) for system, list_ in OTHERS.items() for each in list_]
)
def test_what_a_scheduler_says_of_a_waiting_job_is_put_into_a_sentence(
    system: str, words: str
) -> None:
    sentence = find_backend(system).explain(JobStatus("7", JobState.PENDING, reason=words))
    assert sentence.endswith(".")
    assert " says: " not in sentence
    assert not sentence.startswith("PBS reports: ")


@pytest.mark.parametrize("number", [*range(1, 22), *range(26, 37), 38])
def test_every_number_of_grid_engine_s_table_has_a_sentence(number: int) -> None:
    if number == 2:
        return  # it has none of that number
    words = find_backend("sge").explain(JobStatus("7", JobState.FAILED, reason=str(number)))
    assert not words.startswith("Grid Engine says")


@pytest.mark.parametrize("code", [*range(-30, -23), *range(-23, 0)])
def test_every_exit_status_of_pbs_s_own_has_a_sentence(code: int) -> None:
    if code in (-8, -9):
        return  # Globus, which no PBS of today has
    status = JobStatus("7.s", JobState.FAILED, reason=str(code))
    assert "exit code" not in find_backend("pbs").explain(status)
    assert "without having run" not in find_backend("pbs").explain(status)


@pytest.mark.parametrize("_, rule", Reasons("htcondor").rules("held_codes"))
def test_a_hold_of_htcondor_in_unknown_words_is_told_by_its_code(_: str, rule: Rule) -> None:
    status = JobStatus("7.0", JobState.HELD, reason=f"Le travail est suspendu (code {rule.part})")
    assert find_backend("htcondor").explain(status) == rule.say


@pytest.mark.parametrize(
    "reason", [rule.part for _, rule in Reasons("lsf").rules("ended") if rule.state]
)
def test_every_end_that_lsf_has_a_state_for_has_a_sentence(reason: str) -> None:
    status = JobStatus("7[1]", JobState.FAILED, reason=f"{reason}: job ended", exit_code=1)
    assert "exit code" not in find_backend("lsf").explain(status)
