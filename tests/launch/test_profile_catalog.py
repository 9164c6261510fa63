"""Profiles as front ends show them inside a batch job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.host import hardware
from jupyter_gpucluster.launch import profile_catalog
from jupyter_gpucluster.launch.profile_catalog import places
from tests.commands import put_command

PROFILES = {
    "queued": "backend: slurm",
    "elsewhere": "backend: pbs",
    "spread": "backend: local\nlauncher: srun",
    "greedy": "backend: local\nlauncher: srun\njob: {cpus: 100000}",
    "by-mpi": "backend: local\nlauncher: mpiexec",
}


@pytest.fixture
def found(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], dict[str, Any]]]:
    """Return a call that lists the profiles of a node with Slurm's commands only."""
    folder = home / "data/gpucluster/profiles"
    folder.mkdir(parents=True)
    for name, text in PROFILES.items():
        (folder / f"{name}.yaml").write_text(f"title: {name}\n{text}\n")
    for program in ("sbatch", "squeue", "scancel", "srun"):
        put_command(home, monkeypatch, program, "exit 0")
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    monkeypatch.setattr(hardware, "DRIVER_FILES", home / "gpus")
    profile_catalog._machine.cache_clear()
    yield places
    profile_catalog._machine.cache_clear()


def models(home: Path, *names: str) -> None:
    for number, name in enumerate(names):
        place = home / "gpus" / str(number)
        place.mkdir(parents=True)
        (place / "information").write_text(f"Model: \t\t {name}\nIRQ:   \t\t 41\n")


def test_in_a_job_its_gpus_are_named_and_profiles_without_their_commands_say_so(
    home: Path, found: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "4")
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1800000000")
    models(home, "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB")
    listed = found()
    assert listed["inside"] == {
        "name": "Slurm job 7",
        "nodes": "n[1-2]",
        "ends": 1_800_000_000.0,
        "gpus": 4,
        "gpu_type": "A100-SXM4-40GB",
    }
    refused = {each["name"]: each["unusable"] for each in listed["profiles"] if each["unusable"]}
    assert refused == {
        "elsewhere": "This node does not have the command qsub.",
        "by-mpi": "This node does not have the command mpiexec.",
        "greedy": "The profile asks for 100000 CPU cores; this allocation has 2.",
    }
    [spread] = [each for each in listed["profiles"] if each["name"] == "spread"]
    assert (spread["unit"], spread["default_workers"]) == ("GPUs", 8)


def test_outside_of_jobs_all_can_be_chosen_and_two_models_have_no_name(
    home: Path, found: Callable[[], dict[str, Any]]
) -> None:
    models(home, "NVIDIA A100", "NVIDIA H100")
    assert found()["inside"] is None
    assert not any(each["unusable"] for each in found()["profiles"])
    assert hardware.gpu_model() == ""
