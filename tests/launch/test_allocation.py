"""Resources of a profile from the batch job that Jupyter is in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.variables import inherited
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.allocation import in_allocation
from jupyter_gpucluster.launch.spec import default_workers, maximum_workers
from jupyter_gpucluster.profiles import Profile

HERE = os.uname().nodename
MACHINE = Machine(64, 2**36, ("0", "1"))
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
    assert default_workers(settled, MACHINE) == maximum_workers(settled, MACHINE) == 12


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
    with pytest.raises(InvalidInput, match="this is none"):
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
