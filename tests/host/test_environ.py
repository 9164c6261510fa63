"""A user's own settings of client commands reach none of the commands that are run here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import cancel, find_backend
from jupyter_gpucluster.batch.kubernetes.kubectl import CONTEXT, NAMESPACE
from jupyter_gpucluster.batch.queue import ProcessRunner, run_aside
from jupyter_gpucluster.batch.variables import inherited
from jupyter_gpucluster.core.cluster import HeldJob
from jupyter_gpucluster.core.errors import GpuClusterError
from jupyter_gpucluster.doctor.batch_system import answer_of
from jupyter_gpucluster.head import process
from jupyter_gpucluster.head.own_job import HeldJobWatch
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch import allocation, capacity, plan
from jupyter_gpucluster.profiles import Profile
from jupyter_gpucluster.state.head_job import variables_of
from tests.commands import put_command
from tests.head.world import a_record

STEER = {
    "slurm": (
        "SQUEUE_PARTITION SQUEUE_STATES SQUEUE_FORMAT2 SQUEUE_USERS SINFO_PARTITION SINFO_FORMAT"
        " SACCT_FEDERATION SCANCEL_INTERACTIVE SCANCEL_STATE SCONTROL_FEDERATION SBATCH_ACCOUNT"
        " SBATCH_WAIT SLURM_TIME_FORMAT SLURM_BITSTR_LEN SLURM_JOB_ID"
    ),
    "pbs": "PBS_DPREFIX PBS_CLIENTRETRY PBS_JOBID",
    "torque": "PBSDEBUG PBSAPITIMEOUT PBS_QSTAT_EXECONLY",
    "moab": "MSUBQUERYINTERVAL",
    "lsf": (
        "LSB_BJOBS_FORMAT LSB_DEFAULTQUEUE LSB_DISPLAY_YEAR LSB_JOBID BSUB_QUIET BSUB_BLOCK"
        " BSUB_STDERR LSF_DEBUG_CMD LSF_CMD_LOG_MASK LSF_NIOS_DEBUG"
    ),
    "sge": "SGE_LONG_QNAMES SGE_SINGLE_LINE SGE_DEBUG_LEVEL SGE_TASK_ID JOB_ID",
    "oar": "OAR_JOB_KEY_FILE OAR_OARSTAT_OUTPUT_FORMAT OAR_JOB_ID",
    "htcondor": "_CONDOR_TOOL_DEBUG _condor_CONDOR_Q_DASH_BATCH_IS_DEFAULT",
    "cobalt": "QSTAT_HEADER QSTAT_HEADER_FULL COBALT_PROJ",
    "kubernetes": "KUBECTL_KUBERC KUBECTL_INTERACTIVE_DELETE",
}
"""Variables of the manuals that filter, reformat, delay or redirect commands, and of jobs."""
LEAD = {
    "slurm": "SLURM_CONF SLURM_CONF_SERVER SLURM_JWT SLURM_CLUSTERS",
    "pbs": "PBS_CONF_FILE PBS_EXEC PBS_DEFAULT PBS_SERVER",
    "torque": "PBS_DEFAULT",
    "moab": "MOABHOMEDIR",
    "lsf": "LSF_ENVDIR LSF_SERVERDIR LSF_LIBDIR LSF_BINDIR LSF_SERVER_HOSTS",
    "sge": "SGE_ROOT SGE_CELL SGE_QMASTER_PORT SGE_EXECD_PORT",
    "oar": "OARCONFFILE OARDIR",
    "htcondor": "CONDOR_CONFIG _CONDOR_SCHEDD_HOST _CONDOR_COLLECTOR_HOST",
    "cobalt": "COBALT_CONFIG_FILES",
    "kubernetes": f"KUBECONFIG KUBERNETES_SERVICE_HOST HTTPS_PROXY {CONTEXT} {NAMESPACE}",
}
"""Variables by which commands find their system at all."""


def names_in(text: str) -> set[str]:
    return {line.partition("=")[0] for line in text.splitlines()}


@pytest.mark.parametrize("system", STEER)
def test_what_leads_to_a_system_reaches_its_commands_and_what_steers_them_does_not(
    system: str,
) -> None:
    given = dict.fromkeys(f"{STEER[system]} {LEAD[system]}".split(), "x")
    result = asyncio.run(ProcessRunner({**os.environ, **given}).run(["env"]))
    assert names_in(result.stdout) & given.keys() == set(LEAD[system].split())


@pytest.mark.parametrize("system", STEER)
def test_neither_do_heads_and_jobs_get_what_steers(system: str) -> None:
    given = dict.fromkeys(f"{STEER[system]} {LEAD[system]}".split(), "x")
    assert not inherited(given).keys() & set(STEER[system].split())
    # A head within a job keeps that job's variables, by which a launcher joins it.
    kept = inherited({"SLURM_JOB_ID": "1", "SQUEUE_PARTITION": "x"}, with_job=True)
    assert kept == {"SLURM_JOB_ID": "1"}


def test_kubectl_reads_no_file_of_its_user_s_own_defaults() -> None:
    result = asyncio.run(ProcessRunner({**os.environ, "KUBERC": "/mine"}).run(["env"]))
    assert "KUBERC=off" in result.stdout.splitlines()


@pytest.mark.parametrize("own,expected", [({}, "/start"), ({"SLURM_CONF": "/node"}, "/node")])
def test_a_head_in_a_job_uses_its_node_s_own_variables_before_those_of_the_start(
    own: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(RECORD.spec, in_job=True, routing={"SLURM_CONF": "/start"})
    monkeypatch.delenv("SLURM_CONF", raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    runner = process.make_runner(ClusterDirectory(tmp_path), replace(RECORD, spec=spec), tmp_path)
    assert isinstance(runner, ProcessRunner)
    assert runner.environment["SLURM_CONF"] == expected


def profile_of(**keys: str) -> Profile:
    return Profile.model_validate({"title": "x", **keys})


RECORD = replace(a_record(), spec=replace(a_record().spec, backend="slurm"))
HELD = HeldJob("slurm", "65", "Slurm job 65", "n1")
ASKING: dict[str, Callable[[Path], object]] = {
    "capacity": lambda place: capacity._run(find_backend("slurm"), place / "none", {}),
    "held job": lambda _: asyncio.run(HeldJobWatch(None, Path()).ask(HELD)),
    "leftovers": lambda _: run_aside(cancel._queue(RECORD, None).runner.run(["squeue"])),
    "head's job": lambda _: run_aside(ProcessRunner(variables_of(RECORD)).run(["squeue"])),
    "head": lambda place: run_aside(
        process.make_runner(ClusterDirectory(place), RECORD, place).run(["squeue"])
    ),
    "joining": lambda _: allocation.ask("65", profile_of(backend="local", launcher="srun")),
    "doctor": lambda _: answer_of(["squeue"]),
    "kubernetes": lambda _: plan.completed(profile_of(backend="kubernetes")),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
def test_no_place_that_asks_a_system_hands_on_what_steers(
    ask: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "told"
    for name in ("squeue", "sinfo", "scontrol", "srun", "kubectl"):
        put_command(tmp_path, monkeypatch, name, f"exec env >>{told}")
    hostile: Mapping[str, str] = dict.fromkeys(" ".join(STEER.values()).split(), "x")
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    try:
        ask(tmp_path)
    except GpuClusterError:
        pass  # a system that answers nothing
    lines = told.read_text().splitlines()
    assert "LC_ALL=C" in lines
    assert not names_in("\n".join(lines)) & hostile.keys()
