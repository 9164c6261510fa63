"""The line of a refusal that users see, and its advice: names, sites' own sentences, checks."""

from __future__ import annotations

import re

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable
from jupyter_gpucluster.core.job import CommandResult, JobState, JobStatus, Submission

from .recorded import recordings
from .test_reasons import WAITING

POLICY = (
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit "
    "limit, user's size and/or time limits)\n"
)
NAMES = [name for name in WAITING if re.match("Assoc|QOS|Max.*PerAccount", name)]
LOWER = re.compile(r"\blower\b|\bask for (less|fewer)\b|\bshorter\b", re.IGNORECASE)
USED_UP = re.compile(r"Grp(?!.*Run).*(Minutes|Wall)|AssociationTimeLimit|QOSTimeLimit|Threshold")


def refused(
    system: str, stderr: str = "", stdout: str = "", count: int = 1, code: int = 1
) -> BackendError:
    result = CommandResult(("submit", "/jobs/x.sh"), code, stdout, stderr)
    with pytest.raises(BackendError) as caught:
        find_backend(system).parse_submit(Submission("gpc-abc123-1", "/jobs/x.sh", count), result)
    assert not isinstance(caught.value, BackendUnavailable)
    return caught.value


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_limit_counts_before_slurm_s_general_sentence(name: str) -> None:
    error = refused("slurm", f"sbatch: error: {name}\n{POLICY}")
    assert error.message == f"Slurm refused the job: {name}"
    assert error.hint
    assert "names no limit" not in error.hint
    if name.startswith("QOSMin"):
        assert "raise" in error.hint
        assert not LOWER.search(error.hint)
    elif USED_UP.search(name):
        assert "used up" in error.hint
        assert not LOWER.search(error.hint)
    elif name in ("QOSMaxGRESPerJob", "AssocMaxWallDurationPerJobLimit"):
        assert LOWER.search(error.hint)


def test_the_general_sentence_alone_advises_neither_more_nor_less() -> None:
    error = refused("slurm", POLICY)
    assert "Job violates accounting/QOS policy" in error.message
    assert not LOWER.search(error.hint)
    assert "sacctmgr" in error.hint


@pytest.mark.parametrize(
    "reason",
    [
        *(name for name in WAITING if name.startswith("QOSMin") or USED_UP.search(name)),
        # These may be about a minimum.
        "QOSJobLimit",
        "QOSUnheardOf",
        "AccountingPolicy",
        "PartitionNodeLimit",
    ],
)
def test_lower_is_no_advice_for_a_job_that_waits_for_a_minimum_or_a_spent_budget(
    reason: str,
) -> None:
    status = JobStatus("7_0", JobState.PENDING, reason=reason)
    assert not LOWER.search(find_backend("slurm").explain(status))


# A wrapper around sbatch as TACC has it: checks on stdout, nothing on stderr.
CHECKS = """
-----------------------------------------------------------------
          Welcome to the Example Supercomputer
-----------------------------------------------------------------

No reservation for this job
--> Verifying valid submit host (login1)...OK
--> Verifying valid jobname...OK
--> Verifying access to desired queue (gpu)...OK
--> Checking available allocation (phys)...FAILED
"""


@pytest.mark.parametrize(
    "stdout,failed",
    [
        (CHECKS, "Checking available allocation (phys)...FAILED"),
        ("[OK] Reservation: none\n[OK] walltime\n[FAIL] Account phys may not use gpu\n",
         "[FAIL] Account phys may not use gpu"),
        ("Requested reservation is valid: passed\nInvalid account: passed\nQuota of phys: FAILED\n",
         "Quota of phys: FAILED"),
        ("✓ invalid partition: none -> OK\nNo reservation for this job\nScratch quota -> FAILED\n",
         "Scratch quota -> FAILED"),
    ],
)  # fmt: skip
def test_the_check_that_failed_is_shown_and_passed_ones_advise_nothing(
    stdout: str, failed: str
) -> None:
    error = refused("slurm", stdout=stdout)
    assert error.message == f"Slurm refused the job: {failed}"
    assert "A rule of the site" in error.hint
    assert "reservation" not in error.hint
    assert stdout.strip() in error.detail


STARS = "*" * 60
SITES = "Please choose a GPU type, see https://docs.example.org/gpus"
FRAMED = f"{STARS}\n* {SITES:<57}*\n{STARS}\n"


def with_prefix(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "system,stderr,general",
    [
        ("slurm", f"sbatch: error: {SITES}\n{POLICY}", "Job violates accounting/QOS policy"),
        ("slurm", with_prefix("sbatch: error: ", FRAMED) + POLICY, "Job violates accounting/QOS"),
        ("slurm", with_prefix("sbatch: ", FRAMED) + POLICY, "Job violates accounting/QOS policy"),
        ("slurm", f"sbatch: error: \nsbatch:\n{FRAMED}{POLICY}", "accounting/QOS policy"),
        ("slurm", f"sbatch: error: {SITES}\nsbatch: error: Batch job submission failed: "
         "Unspecified error\n", "Unspecified error"),
        # The words of Torque about a site's submit filter.
        ("torque", f"{FRAMED}qsub: Your job has been administratively rejected by the queueing "
         "system.\nqsub: There may be a more detailed explanation prior to this notice.\n",
         "administratively rejected"),
        ("pbs", f"qsub: {SITES}\n", ""),
        ("sge", f"Unable to run job: {STARS}\n* {SITES:<57}*\n{STARS}\nExiting.\n", ""),
        ("oar", f"[ADMISSION RULE] {SITES}\n", ""),
        ("lsf", f"{FRAMED}Request aborted by esub. Job not submitted.\n", "aborted by esub"),
        ("cobalt", FRAMED, ""),
        ("htcondor", f"\nERROR: {SITES}\n", ""),
        ("kubernetes", 'Error from server (Forbidden): error when creating "STDIN": admission '
         f'webhook "rules.example.org" denied the request: {SITES}\n', "denied the request"),
    ],
)  # fmt: skip
def test_a_site_s_own_sentence_is_shown_without_its_frame(
    system: str, stderr: str, general: str
) -> None:
    error = refused(system, stderr)
    assert SITES in error.message
    assert general in error.message
    assert "***" not in error.message
    assert "refused the job: error" not in error.message
    assert error.hint
    assert not LOWER.search(error.hint)


def test_a_site_s_own_sentence_stands_beside_one_that_has_a_cure() -> None:
    error = refused(
        "slurm", f"sbatch: error: {SITES}\nsbatch: error: Batch job submission failed: Invalid "
        "account or account/partition combination specified\n"
    )  # fmt: skip
    assert error.message == (
        f"Slurm refused the job: {SITES}. Invalid account or account/partition combination "
        "specified"
    )
    assert "job.account" in error.hint


def test_a_greeting_is_not_taken_for_the_reason() -> None:
    greeting = "Welcome to Example. The reservation of last week is over.\nHave a nice day!\n"
    words = "sbatch: error: invalid partition specified: nosuch\n"
    error = refused("slurm", greeting + words)
    assert error.message == "Slurm refused the job: invalid partition specified: nosuch"
    assert "job.queue" in error.hint
    assert "reservation" not in refused("slurm", greeting).hint


@pytest.mark.parametrize(
    "system,stderr",
    [
        ("slurm", "sbatch: error: Batch job submission failed: Invalid job array specification\n"),
        ("pbs", "qsub: Array job exceeds server or queue size limit\n"),
        ("sge", "Unable to run job: job rejected: you tried to submit a job with more than 1000 "
         "tasks\nExiting.\n"),
        ("lsf", "Job array index too large. Job not submitted.\n"),
    ],
)  # fmt: skip
def test_one_job_is_not_advised_to_be_fewer_workers(system: str, stderr: str) -> None:
    assert "fewer workers" in refused(system, stderr, count=2000).hint
    alone = refused(system, stderr).hint
    assert alone
    assert "fewer workers" not in alone


@pytest.mark.parametrize(
    "system,stderr",
    [
        ("slurm", "sbatch: error: Insufficient balance in project phys\n" + POLICY),
        ("pbs", "qsub: Insufficient balance for walltime 24:00:00 in project phys\n"),
        ("torque", "qsub: Your allocation phys is exhausted: Job violates queue and/or server "
         "resource limits\n"),
        ("moab", "ERROR:    Insufficient funds: job exceeds the limit on walltime\n"),
        ("sge", "Unable to run job: the budget of phys is used up, no suitable queues\nExiting.\n"),
        ("oar", "[ADMISSION RULE] Project phys: no GPU hours left\n"),
        ("lsf", "Project phys has no hours left.\nRequest aborted by esub. Job not submitted.\n"),
        ("cobalt", "Project phys has a negative balance: allocation exhausted, queue limit\n"),
        ("htcondor", "ERROR: the budget of accounting_group phys is exhausted\n"),
    ],
)  # fmt: skip
def test_a_spent_budget_needs_another_account_and_not_less(system: str, stderr: str) -> None:
    hint = refused(system, stderr).hint
    assert "used up" in hint
    assert "job.account" in hint
    assert not LOWER.search(hint)


@pytest.mark.parametrize(
    "system,stderr",
    [
        ("slurm", "sbatch: error: Batch job submission failed: Node count specification invalid\n"),
        ("slurm", "sbatch: error: Partition gpu: Memory specification is below the minimum\n"),
        ("pbs", "qsub: Job violates queue and/or server resource limits\n"),
        ("lsf", "MEMLIMIT: less than the queue's minimum. Job not submitted.\n"),
        ("oar", "[ADMISSION RULE] Walltime too short: at least 10 minutes\n"),
        ("sge", "Unable to run job: too few slots, no suitable queues\nExiting.\n"),
        ("kubernetes", 'Error from server (Forbidden): pods "x" is forbidden: minimum memory usage '
         "per Container is 1Gi, but request is 100Mi\n"),
    ],
)  # fmt: skip
def test_a_minimum_is_not_reached_by_asking_for_less(system: str, stderr: str) -> None:
    hint = refused(system, stderr).hint
    assert hint
    assert not LOWER.search(hint)


def test_the_maximum_of_a_namespace_still_asks_for_less() -> None:
    words = 'pods "x" is forbidden: maximum memory usage per Container is 8Gi, but limit is 9Gi'
    assert "ask for less" in refused("kubernetes", f"Error from server (Forbidden): {words}\n").hint


@pytest.mark.parametrize(
    "system,stderr,wrong",
    [
        ("slurm", "sbatch: error: Login nodes are closed during the reservation of the course\n",
         "--reservation"),
        ("lsf", "Group gpu-users is not for guests.\nRequest aborted by esub. Job not submitted.\n",
         "job.gpu_request"),
        ("sge", "Unable to run job: rejected by JSV: you may not have more than 4 GPUs\nExiting.\n",
         "fewer workers"),
    ],
)  # fmt: skip
def test_a_bare_word_in_a_site_s_sentence_brings_no_advice(
    system: str, stderr: str, wrong: str
) -> None:
    error = refused(system, stderr)
    assert wrong not in error.hint
    assert stderr.splitlines()[0].rpartition(": ")[2] in error.message


def test_a_help_text_is_not_shown_as_the_reason() -> None:
    usage = "usage: qsub [-a date_time] [-A account]\n\t[-k keep] [-l resource_list]\n"
    assert refused("pbs", usage).message == (
        "PBS refused the job: it printed its help in place of a reason"
    )
    assert refused("pbs", f"qsub: illegal -a value\n{usage}").message == (
        "PBS refused the job: illegal -a value"
    )


@pytest.mark.parametrize("system", ["kubernetes", "oar", "pbs", "sge", "slurm"])
def test_recorded_refusals_have_a_hint(system: str) -> None:
    missing = []
    for recording in recordings(system, "submit"):
        try:
            find_backend(system).parse_submit(Submission("gpc-7f3a2b-1", "/x.sh"), recording.result)
        except BackendUnavailable:
            continue
        except BackendError as error:
            missing += [] if error.hint else [recording.file]
    # A request that is no JSON is the fault of this program, which no user can correct.
    assert [name for name in missing if "no_json" not in name] == []


def test_what_stands_indented_below_an_error_belongs_to_it() -> None:
    words = (
        "ERROR: Parse error in expression: \n\tRequestMemory = lots of it\n\t                ^^^\n"
    )
    error = refused("htcondor", words)
    assert error.message.endswith("ERROR: Parse error in expression: RequestMemory = lots of it")
    assert "job.memory" in error.hint


@pytest.mark.parametrize(
    "system,stderr",
    [
        ("slurm", "sbatch: No such file or directory"),
        ("pbs", "qsub: No such file or directory"),
        ("sge", "qsub: No such file or directory"),
        ("oar", "oarsub: No such file or directory"),
        ("lsf", "bsub: No such file or directory"),
    ],
)
def test_a_command_that_is_not_there_keeps_its_name(system: str, stderr: str) -> None:
    error = refused(system, stderr, code=127)
    assert error.message.endswith(stderr)
    assert "commands" in error.hint


def test_a_rule_of_an_administrator_of_oar_is_named_as_one() -> None:
    words = "Your project must be given with --project"
    error = refused("oar", f"[ADMISSION RULE] Set default walltime.\n[ADMISSION RULE] {words}\n")
    assert error.message == f"OAR refused the job: {words}"
    assert "A rule of the site" in error.hint
