"""Real workers under each launcher and container runtime that nobody can install here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from ...launcher_programs import text_of
from ...waiting import until, workers_of
from .test_launchers import Job

pytestmark = pytest.mark.slow

IMAGE = "rapids:25.08"
KEY = "gpc-abc123-1_0"
SETTING = "it's $HOME"


def boxed(runtime: str, *args: str) -> dict[str, Any]:
    box = {"runtime": runtime, "image": IMAGE, "python": sys.executable, "args": list(args)}
    return {"container": box}


# Launcher, the program's name on the path, what it is of, and the container's runtime.
WAYS: dict[str, tuple[Any, str, str, dict[str, Any]]] = {
    "jsrun in Shifter": ("jsrun", "jsrun", "jsrun", boxed("shifter")),
    "aprun in Apptainer": ("aprun", "aprun", "aprun", boxed("apptainer", "--cleanenv")),
    "mpiexec of Intel MPI": ("mpiexec", "mpiexec", "mpiexec", {}),
    # The real one, which starts its daemons on this host for all hosts.
    "real mpiexec of MPICH": (
        {"name": "mpiexec", "command": "mpiexec.mpich", "args": ["-launcher", "fork"]},
        "",
        "",
        {},
    ),
    "mpiexec of PALS": ({"name": "mpiexec", "mpi": "pals"}, "mpiexec", "pals", {}),
    "srun with Pyxis": ("srun", "srun", "srun", boxed("pyxis")),
}


@pytest.fixture(scope="module")
def scheduler(module_home: Path) -> Iterator[LocalCluster]:
    """Start one scheduler for all ways."""
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", protocol="tcp") as cluster:
        yield cluster


@pytest.mark.parametrize("way", WAYS)
def test_workers_come_with_their_names_shares_and_variables_and_end_with_their_job(
    tmp_path: Path, scheduler: LocalCluster, way: str
) -> None:
    launcher, name, program, environment = WAYS[way]
    if not program and shutil.which("mpiexec.mpich") is None:
        pytest.skip("needs root: MPICH")
    job = Job(
        tmp_path,
        f'exec {sys.executable} "$@"',
        job={"nodes": 2, "cpus": 4, "memory": 2**30},
        launcher=launcher,
        workers={"local_directory": str(tmp_path / "local"), "extra_args": ["--no-nanny"]},
        network={"protocol": "tcp", "interface": "lo"},
        environment={**environment, "variables": {"SETTING": SETTING}},
    )
    if program:
        job.put(name, text_of(program))
    runtime = environment.get("container", {}).get("runtime")
    if runtime in ("shifter", "apptainer"):
        job.put(runtime, text_of(runtime))
    identity = {"address": scheduler.scheduler_address, "type": "Scheduler"}
    job.directory.scheduler_file.write_text(json.dumps(identity))
    process = job.start()
    with Client(scheduler) as client:
        until(lambda: process.poll() is not None or len(told(client)) == 2)
        assert process.poll() is None, job.log()
        workers = workers_of(client).values()
        assert {w["name"] for w in workers} == {f"{KEY}-n{rank}" for rank in (0, 1)}
        assert {(w["nthreads"], w["memory_limit"]) for w in workers} == {(2, 2**29)}
        assert seen(client, "SETTING") == {SETTING}
        assert seen(client, "BOXED_IN") == {IMAGE if environment else None}
        mounts = {"apptainer": f"{job.directory.path}:{tmp_path / 'local'}",
                  "pyxis": f"{job.directory.path}:{job.directory.path}"}  # fmt: skip
        assert seen(client, "BOXED_WITH") == {mounts.get(runtime)}
        process.terminate()
        process.wait(30)
        until(lambda: not told(client))
    until(lambda: str(tmp_path) not in command_lines())


def told(client: Client) -> dict[str, Any]:
    return workers_of(client)


def seen(client: Client, variable: str) -> set[str | None]:
    return set(client.run(os.getenv, variable).values())


def command_lines() -> str:
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return listing.stdout
