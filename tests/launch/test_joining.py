"""Batch jobs that a cluster may join by number, and its knowledge of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.queue import user_name
from jupyter_gpucluster.batch.variables import node_lists
from jupyter_gpucluster.core.cluster import HeldJob
from jupyter_gpucluster.core.errors import BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import Allocation, JobState, JobStatus, Share
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.allocation import in_allocation
from jupyter_gpucluster.launch.joining import check_job, held_from_inside, join, plain_variables
from jupyter_gpucluster.node.node_list import allocation_hosts
from jupyter_gpucluster.profiles import Profile

from ..batch.recorded import Recording

MACHINE = Machine(64, 2**36, ("0", "1"))
MIB = 2**20
Put = Callable[[str, str, int], None]


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


def profile_of(**keys: Any) -> Profile:
    return Profile.model_validate({"title": "x", "backend": "local", "launcher": "srun", **keys})


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
    with pytest.raises(InvalidInput, match="OAR knows no job 7 that waits or runs") as caught:
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
        ({"backend": "slurm", "launcher": "srun"}, "asks for jobs of its own"),
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
        (JobState.UNKNOWN, "does not tell which nodes job 7 has"),
        (JobState.RUNNING, "does not tell which nodes job 7 has"),
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
