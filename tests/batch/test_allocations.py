"""Answers of batch systems about one job by its number: recorded ones, and those of manuals."""

from __future__ import annotations

import json
import re

import pytest

from jupyter_gpucluster.batch import BACKENDS, allocation_queries
from jupyter_gpucluster.core.errors import BackendUnavailable
from jupyter_gpucluster.core.job import Allocation, CommandResult, JobState, Share

from .recorded import Recording

MIB = 2**20
ALLOCATIONS = allocation_queries()


def recorded(system: str, file: str) -> CommandResult:
    return Recording(system, f"{file}.txt", "", ()).result


def read(system: str, id: str, *results: CommandResult) -> Allocation | None:
    """Read answers as one command gives them that asks twice."""
    text = "".join(result.stdout for result in results)
    last = results[-1]
    return ALLOCATIONS[system].read(id, CommandResult(last.argv, last.exit_code, text, last.stderr))


def about(file: str) -> CommandResult:
    """Return the lines of qstat -j that the dialect asks for."""
    text = recorded("sge", file).stdout
    lines = re.findall(r"^(?:owner|hard resource_list):.*\n", text, re.MULTILINE)
    return CommandResult(("grep",), 0, "".join(lines))


GRID = recorded("sge", "status_running_two_slots__qstat_g_t_xml")
LSF = {"JOBID": "77", "STAT": "RUN", "USER": "alice", "EXEC_HOST": "4*n1:4*n2", "JOB_NAME": "bash"}
TIMES = {"START_TIME": "Nov 28 10:00:00 2026", "FINISH_TIME": "Nov 28 11:00:00 2026 L"}
TORQUE = """\
<Data><Job><Job_Id>12.head</Job_Id><Job_Name>STDIN</Job_Name><Job_Owner>alice@login</Job_Owner>
<job_state>R</job_state><exec_host>n1/0-3+n2/0+n2/1</exec_host>
<exec_gpus>n1-gpu/0+n2-gpu/1</exec_gpus><start_time>1000</start_time>
<Resource_List><walltime>01:00:00</walltime></Resource_List></Job></Data>"""


def lsf(**record: str) -> CommandResult:
    return CommandResult(("bjobs",), 0, json.dumps({"JOBS": 1, "RECORDS": [record]}))


RUNNING = {
    "slurm": (
        read("slurm", "65", recorded("slurm", "status_running__scontrol_details")),
        (Share("gpu[02-03]", 1, 2, 100 * MIB),),
    ),
    "pbs": (
        read("pbs", "39", recorded("pbs", "status_running_two_nodes__qstat_json")),
        (Share("gpu01", 1, 1, 100 * MIB), Share("gpu02", 1, 1, 100 * MIB)),
    ),
    "sge": (
        read("sge", "95", about("status_running_two_slots__qstat_j"), GRID),
        (Share("gpu01"), Share("gpu02")),
    ),
    "oar": (
        read(
            "oar",
            "34",
            recorded("oar", "status_running__oarstat_json"),
            recorded("oar", "status_running__oarstat_p"),
        ),
        (Share("gpu01", 2, 2),),
    ),
    "lsf": (read("lsf", "77", lsf(**LSF, **TIMES)), (Share("n1", 4), Share("n2", 4))),
    "torque": (
        read("torque", "12", CommandResult(("qstat",), 0, TORQUE)),
        (Share("n1", 4, 1), Share("n2", 2, 1)),
    ),
}


@pytest.mark.parametrize("system", RUNNING)
def test_a_running_job_tells_its_owner_its_hosts_and_its_end(system: str) -> None:
    found, shares = RUNNING[system]
    assert found is not None
    assert (found.owner, found.job.state, found.shares) == ("alice", JobState.RUNNING, shares)
    assert found.job.started is not None
    assert found.job.ends is not None
    assert found.job.ends - found.job.started in (600, 3600)


@pytest.mark.parametrize(
    "system, id, file, state",
    [
        ("slurm", "42", "status_pending_resources__scontrol", JobState.PENDING),
        ("slurm", "61", "status_killed_walltime__scontrol", JobState.TIMEOUT),
        ("pbs", "52", "status_finished_ok__qstat_json", JobState.DONE),
        ("pbs", "1", "status_pending_gpus_busy__qstat_json", JobState.PENDING),
        ("oar", "", "status_waiting_gpus_busy__oarstat_json", JobState.PENDING),
        ("oar", "", "status_cancelled_running__oarstat_json", JobState.CANCELLED),
    ],
)
def test_a_job_that_does_not_run_tells_its_state(
    system: str, id: str, file: str, state: JobState
) -> None:
    result = recorded(system, file)
    id = id or re.findall(r'^   "(\d+)" :', result.stdout, re.MULTILINE)[0]
    found = read(system, id, result)
    assert found is not None
    assert found.job.state is state
    if state is JobState.PENDING:
        assert found.shares == ()


@pytest.mark.parametrize(
    "system, result",
    [
        ("slurm", CommandResult((), 1, "", "slurm_load_jobs error: Invalid job id specified\n")),
        ("pbs", recorded("pbs", "status_unknown_id__qstat_json")),
        ("pbs", CommandResult((), 35, "", "qstat: 52.login1 Job has finished, use -x\n")),
        ("oar", recorded("oar", "status_unknown_id__oarstat_json")),
        ("sge", GRID),
        ("torque", CommandResult((), 153, "", "qstat: Unknown Job Id Error 99.head\n")),
        ("lsf", CommandResult((), 255, "", "Job <99> is not found\n")),
        ("lsf", lsf(JOBID="99", ERROR="Job <99> is not found")),
    ],
)
def test_an_unknown_number_is_told_from_silence(system: str, result: CommandResult) -> None:
    assert read(system, "99", result) is None


@pytest.mark.parametrize("system", ALLOCATIONS)
@pytest.mark.parametrize(
    "result",
    [
        CommandResult(("asked",), None, "", "no answer"),
        CommandResult(("asked",), 127, "", "not found"),
        CommandResult(("asked",), 0, "*** Welcome! ***\n", ""),
    ],
)
def test_silence_and_banners_are_no_answer(system: str, result: CommandResult) -> None:
    with pytest.raises(BackendUnavailable):
        read(system, "99", result)


def test_a_record_without_a_number_is_no_answer() -> None:
    cut = CommandResult((), 0, "<Data><Job><job_state>R</job_state></Job></Data>", "")
    with pytest.raises(BackendUnavailable):
        read("torque", "12", cut)


def test_somebody_else_s_job_tells_whose_it_is() -> None:
    bobs = read("pbs", "68", recorded("pbs", "status_bobs_job__qstat_json"))
    assert bobs is not None
    assert bobs.owner == "bob"
    # The listing of one's own jobs lacks it.
    others = read("sge", "128", about("status_bobs_job__qstat_j_by_alice"), GRID)
    assert others is not None
    assert (others.owner, others.job.state) == ("bob", JobState.UNKNOWN)


def test_slurm_tells_nodes_apart_that_have_different_shares() -> None:
    detail = (
        "Nodes=g1 CPU_IDs=0-3,8 Mem=1000 GRES=gpu:2(IDX:0-1)   Nodes=g[2-3] CPU_IDs=0 Mem=500 GRES="
    )
    line = recorded("slurm", "status_running__scontrol_details").stdout.replace(
        "Nodes=gpu[02-03] CPU_IDs=7 Mem=100 GRES=gpu:h100:2(IDX:0-1)", detail
    )
    found = ALLOCATIONS["slurm"].read("65", CommandResult((), 0, line))
    assert found is not None
    assert found.shares == (Share("g1", 5, 2, 1000 * MIB), Share("g[2-3]", 1, 0, 500 * MIB))


def test_slurm_tells_a_task_of_an_array_by_the_number_that_srun_takes() -> None:
    line = recorded("slurm", "status_running__scontrol_details").stdout
    array = line.replace("JobId=65 ", "JobId=65 ArrayJobId=60 ArrayTaskId=4 ")
    found = ALLOCATIONS["slurm"].read("60_4", CommandResult((), 0, array))
    assert found is not None
    assert found.job.id == "65"


def test_several_vnodes_of_a_host_count_together() -> None:
    text = (
        recorded("pbs", "status_running_two_nodes__qstat_json")
        .stdout.replace(
            '"(gpu01:ncpus=1:ngpus=1:mem=102400kb)+(gpu02:ncpus=1:ngpus=1:mem=102400kb)",\n\t\t\t"Hold',
            '"(gpu01[0]:ncpus=8:ngpus=1:mem=1gb+gpu01[1]:ncpus=8:ngpus=1:mem=1gb)",\n\t\t\t"Hold',
        )
        .replace('"gpu01/1+gpu02/0"', '"gpu01/0*16"')
    )
    found = ALLOCATIONS["pbs"].read("39", CommandResult((), 0, text))
    assert found is not None
    assert found.shares == (Share("gpu01", 16, 2, 2**31),)


@pytest.mark.parametrize(
    "environ, system, id",
    [
        ({"SLURM_JOB_ID": "7"}, "slurm", "7"),
        ({"PBS_JOBID": "7.head"}, "pbs", "7.head"),
        ({"PBS_JOBID": "7.head", "PBS_VERSION": "TORQUE-6.1.2"}, "torque", "7.head"),
        ({"LSB_JOBID": "7", "LSB_JOBINDEX": "0"}, "lsf", "7"),
        ({"LSB_JOBID": "7", "LSB_JOBINDEX": "3"}, "lsf", "7[3]"),
        ({"JOB_ID": "7", "SGE_TASK_ID": "undefined", "SGE_ROOT": "/sge"}, "sge", "7"),
        ({"JOB_ID": "7", "SGE_TASK_ID": "2", "SGE_ROOT": "/sge"}, "sge", "7.2"),
        ({"JOB_ID": "7"}, "", ""),
        ({"OAR_JOB_ID": "7"}, "oar", "7"),
        ({}, "", ""),
    ],
)
def test_a_process_knows_the_number_of_its_own_job(
    environ: dict[str, str], system: str, id: str
) -> None:
    found = {name: told for name in ALLOCATIONS if (told := ALLOCATIONS[name].of_process(environ))}
    assert found == ({system: id} if system else {})


def test_a_number_is_an_argument_and_never_read_as_shell() -> None:
    assert BACKENDS.keys() > ALLOCATIONS.keys()
    for name, dialect in ALLOCATIONS.items():
        assert "7;id" in dialect.ask("7;id", "ann"), name
