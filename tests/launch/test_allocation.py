"""The batch job that workers are put into: the one that Jupyter is in, or one by its number."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.queue import user_name
from jupyter_gpucluster.batch.variables import inherited, node_lists
from jupyter_gpucluster.core.cluster import HeldJob
from jupyter_gpucluster.core.errors import BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import Allocation, JobState, JobStatus, Share
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.allocation import (
    check_job,
    held_from_inside,
    in_allocation,
    join,
    plain_variables,
)
from jupyter_gpucluster.launch.sizes import sizes_of
from jupyter_gpucluster.node.node_list import allocation_hosts
from jupyter_gpucluster.profiles import Profile

from ..batch.recorded import Recording

HERE = os.uname().nodename
MACHINE = Machine(64, 2**36, ("0", "1"))
MIB = 2**20
Put = Callable[[str, str, int], None]
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_JOB_CPUS_PER_NODE": "8(x2),6",
    "SLURM_MEM_PER_NODE": "1000",
    "SLURM_GPUS_ON_NODE": "4",
}


def profile_of(**keys: object) -> Profile:
    return Profile.model_validate({"title": "x", "backend": "local", "launcher": "srun", **keys})


def test_a_profile_with_a_launcher_gets_all_nodes_and_no_more_cores_than_the_smallest_has() -> None:
    settled = in_allocation(profile_of(), MACHINE, SLURM)
    assert (settled.job.nodes, settled.job.cpus, settled.job.gpus) == (3, 18, 12)
    assert settled.job.memory == 3 * 1000 * 2**20
    assert sizes_of(settled, MACHINE).default == sizes_of(settled, MACHINE).maximum == 12


@pytest.mark.parametrize(
    "variable", ["PBS_NODEFILE", "COBALT_NODEFILE", "OAR_NODEFILE", "PE_HOSTFILE"]
)
def test_gpus_are_those_of_this_node_where_only_a_file_names_the_nodes(
    variable: str, tmp_path: Path
) -> None:
    file = tmp_path / "nodes"
    slots = " 4 all.q x" if variable == "PE_HOSTFILE" else ""
    count = 1 if slots else 4
    file.write_text(f"{HERE}{slots}\n" * count + f"other{slots}\n" * count)
    settled = in_allocation(profile_of(), MACHINE, {variable: str(file)})
    # Cobalt gives whole nodes; its file tells nothing of cores.
    cores = 128 if variable == "COBALT_NODEFILE" else 8
    assert (settled.job.nodes, settled.job.cpus, settled.job.gpus) == (2, cores, 4)
    assert settled.job.memory == 2 * 2**36


@pytest.mark.parametrize("lines, cores", [(1, 64), (4, 64), (40, 80)])
def test_the_file_of_pbs_counts_processes_and_a_variable_cores(
    lines: int, cores: int, tmp_path: Path
) -> None:
    file = tmp_path / "nodes"
    file.write_text("n1\n" * lines + "n2\n" * lines)
    given = {"PBS_NODEFILE": str(file), "NCPUS": "32"}
    assert in_allocation(profile_of(), MACHINE, given).job.cpus == cores
    assert in_allocation(profile_of(job={"cpus": cores}), MACHINE, given).job.cpus == cores


def test_the_launch_node_of_jsrun_is_none_of_the_nodes() -> None:
    given = {"LSB_MCPU_HOSTS": "batch5 1 h41n08 42 h41n03 42"}
    settled = in_allocation(profile_of(launcher="jsrun", job={"gpus": 12}), MACHINE, given)
    assert (settled.job.nodes, settled.job.cpus, settled.job.gpus) == (2, 84, 12)
    everywhere = in_allocation(profile_of(launcher="ssh"), MACHINE, given)
    assert everywhere.job.nodes == 3


def test_on_a_login_node_only_the_allocation_counts() -> None:
    settled = in_allocation(profile_of(), MACHINE, {"LSB_HOSTS": "a a b b"})
    assert (settled.job.nodes, settled.job.cpus, settled.job.gpus) == (2, 4, 0)
    assert settled.job.memory is None


def test_outside_an_allocation_a_launcher_has_nothing_to_spread_over() -> None:
    with pytest.raises(InvalidInput, match="this is not one"):
        in_allocation(profile_of(), MACHINE, {})
    plain = profile_of(launcher="none")
    assert in_allocation(plain, MACHINE, SLURM) is plain


def test_more_cores_than_the_allocation_has_are_refused() -> None:
    with pytest.raises(InvalidInput, match="20 CPU cores; this allocation has 18"):
        in_allocation(profile_of(job={"cpus": 20}), MACHINE, SLURM)


def test_a_head_takes_the_job_over_only_where_it_works_inside_it() -> None:
    given = {**SLURM, "SLURM_CONF": "/etc/x", "JUPYTERHUB_API_TOKEN": "secret", "PATH": "/bin"}
    assert inherited(given) == {"SLURM_CONF": "/etc/x", "PATH": "/bin"}
    assert inherited(given, with_job=True) == {**SLURM, "SLURM_CONF": "/etc/x", "PATH": "/bin"}


def test_a_cluster_started_from_a_job_does_not_end_when_that_job_s_workers_leave() -> None:
    name = "DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION"
    of_the_job = {"GPUCLUSTER_LEFT": "840", name: "840 s", "PATH": "/bin"}
    assert inherited(of_the_job) == inherited(of_the_job, with_job=True) == {"PATH": "/bin"}
    for users_own in ({name: "2 h"}, {name: "2 h", "GPUCLUSTER_LEFT": "840"}):
        assert inherited(users_own) == {name: "2 h"}


# By its number.


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Put programs on the path that say something; there are no others but a shell's."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name: str, out: str, code: int = 0) -> None:
        (tmp_path / f"{name}.out").write_text(out)
        program = tmp_path / name
        echo = f'while read -r line; do printf "%s\\n" "$line"; done <{program}.out'
        program.write_text(f"#!/bin/sh\n{echo}\nexit {code}\n")
        program.chmod(0o755)

    return put


def recorded(system: str, file: str) -> str:
    """Return a recorded answer about a job of ours."""
    text = Recording(system, f"{file}.txt", "", ()).result.stdout
    return text.replace("alice", user_name())


def test_slurm_s_answer_becomes_what_a_process_in_the_job_finds(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("scontrol", recorded("slurm", "status_running__scontrol_details"), 0)
    put("srun", "", 0)
    monkeypatch.setenv("SLURM_JOB_ID", "1")  # we ourselves are in another one
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "8")
    joined = join("65", profile_of())
    assert joined.held == HeldJob("slurm", "65", "Slurm job 65", "gpu[02-03]", joined.held.ends)
    assert joined.held.ends is not None
    inside = joined.environment()
    assert inside["SLURM_JOB_ID"] == inside["SLURM_JOBID"] == "65"
    assert allocation_hosts(inside, node_lists()) == [("gpu02", 1), ("gpu03", 1)]
    settled = in_allocation(profile_of(), MACHINE, inside)
    assert (settled.job.nodes, settled.job.cpus, settled.job.gpus) == (2, 2, 4)
    assert settled.job.memory == 200 * MIB


def test_of_other_systems_the_hosts_are_told_by_a_variable_of_our_own(put: Put) -> None:
    put("qstat", recorded("pbs", "status_running_two_nodes__qstat_json"), 0)
    put("pbs_rstat", "", 0)
    joined = join("39", profile_of(launcher="ssh"))
    assert joined.held.name == "PBS job 39.login1"
    settled = in_allocation(profile_of(launcher="ssh"), MACHINE, joined.environment())
    assert (settled.job.nodes, settled.job.cpus, settled.job.gpus) == (2, 2, 2)
    assert settled.job.memory == 200 * MIB


def test_the_least_of_all_nodes_counts() -> None:
    told = plain_variables([(["a", "b"], Share("a,b", 4, 2, 8 * MIB)), (["c"], Share("c", 2, 1))])
    assert told == {"GPUCLUSTER_ALLOCATION": "a 4 b 4 c 2", "GPUCLUSTER_GPUS_ON_NODE": "1"}


def test_a_system_that_knows_no_such_job_is_named(put: Put) -> None:
    put("oarstat", "", 0)
    with pytest.raises(InvalidInput, match="OAR has no waiting or running job 7") as caught:
        join("7", profile_of(launcher="ssh"))
    assert caught.value.detail == "allocation"


def test_a_system_that_is_silent_is_told(put: Put) -> None:
    put("scontrol", "", 1)
    put("srun", "", 0)
    with pytest.raises(BackendUnavailable, match="Slurm did not answer"):
        join("7", profile_of())


def test_without_a_queueing_system_the_way_out_is_inside_the_job(put: Put) -> None:
    for launcher in ("srun", "ssh"):
        with pytest.raises(InvalidInput, match="can be asked from here") as caught:
            join("7", profile_of(launcher=launcher))
        assert "inside the job" in caught.value.hint


@pytest.mark.parametrize("number", ["", "-x", "x7", "7;id", "7 8", "$(id)"])
def test_what_is_no_number_is_not_asked_about(number: str) -> None:
    with pytest.raises(InvalidInput, match="is not the number of a job"):
        join(number, profile_of())


@pytest.mark.parametrize(
    "keys, words",
    [
        ({"launcher": "none"}, "has no launcher"),
        ({"backend": "slurm", "launcher": "srun"}, "submits its own jobs"),
        ({"launcher": "jsrun"}, "only from inside the job"),
        ({"launcher": {"name": "mpiexec", "mpi": "pals"}}, "only from inside the job"),
    ],
)
def test_profiles_that_cannot_use_an_allocation_from_outside_are_refused(
    keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        join("7", profile_of(**keys))
    assert caught.value.hint


@pytest.mark.parametrize(
    "state, words",
    [
        (JobState.PENDING, "Slurm job 7 has not started. Held by you"),
        (JobState.SUSPENDED, "Slurm job 7 is suspended."),
        (JobState.ENDING, "Slurm job 7 has ended."),
        (JobState.TIMEOUT, "Slurm job 7 has ended. It reached its walltime"),
        (JobState.UNKNOWN, "job 7 runs on nodes that the system does not show"),
        (JobState.RUNNING, "job 7 runs on nodes that the system does not show"),
    ],
)
def test_only_a_job_that_runs_can_be_used(state: JobState, words: str) -> None:
    reason = "JobHeldUser" if state is JobState.PENDING else ""
    job = JobStatus("7", JobState.HELD if reason else state, reason=reason)
    with pytest.raises(InvalidInput, match=words) as caught:
        check_job(find_backend("slurm"), "7", Allocation(job, user_name()))
    assert caught.value.hint


def test_from_inside_number_and_nodes_are_the_job_s_own() -> None:
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
    assert held_from_inside(slurm) == HeldJob("slurm", "7", "Slurm job 7", "n[1-2]")
    lsf = {"LSB_JOBID": "7", "LSB_HOSTS": "a a b"}
    assert held_from_inside(lsf) == HeldJob("lsf", "7", "LSF job 7", "a,b")
    assert held_from_inside({"COBALT_JOBID": "7"}) is None
    assert held_from_inside({name: "" for name in os.environ}) is None
