"""The script of the job that a head runs in, run by a real shell as a batch system would."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.processes import start_time
from jupyter_gpucluster.launch.script.job import MARK, head_lines, render
from jupyter_gpucluster.profiles import Profile
from tests.launch.specs import spec_for
from tests.waiting import until

KEY = "gpc-abc123-0_0"


def script_of(
    home: Path, directory: ClusterDirectory, head: str, worker: str, **keys: object
) -> str:
    """Return the script of a job with a program for the head and one for the workers."""
    python = home / "python"
    python.write_text(f"#!/bin/sh\n{worker}\n")
    python.chmod(0o755)
    program = home / "head"
    program.write_text(f"#!/bin/sh\n{head}\n")
    program.chmod(0o755)
    profile = Profile.model_validate(
        {"title": "x", "backend": "slurm", "head": {"placement": "job", **keys}}
        | ({"job": {"gpus": 3}} if keys else {})
    )
    spec = spec_for(profile, directory, python=str(python), scratch=Path())
    assert spec.in_job
    text = render(profile, spec, directory, str(program))
    return text.replace(MARK, KEY.partition("_")[0])


class HeadJob:
    """The job, started as a batch system does: a session of its own."""

    def __init__(self, home: Path, head: str, worker: str, **keys: object) -> None:
        self.directory = ClusterDirectory(home / "abc123")
        self.directory.create()
        self.tmp = home / "node"
        self.tmp.mkdir()
        path = home / "job.sh"
        path.write_text(script_of(home, self.directory, head, worker, **keys))
        self.process = subprocess.Popen(
            ["/bin/bash", str(path)],
            env={"PATH": os.environ["PATH"], "TMPDIR": str(self.tmp), "D": str(home)},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def log(self, name: str) -> str:
        """Return what one of the logs holds."""
        path = self.directory.logs / name
        return path.read_text() if path.exists() else ""


@pytest.mark.slow
def test_workers_may_end_while_the_head_goes_on_and_the_job_ends_with_the_head(home: Path) -> None:
    job = HeadJob(
        home, 'echo up "$@"; until [ -e "$D/stop" ]; do sleep 0.1; done; exit 7', "exit 3"
    )
    until(lambda: job.directory.exit_codes() == {KEY: 3})
    until(lambda: "--workers" in job.log("head.log"))
    assert job.process.poll() is None
    assert len(list(job.tmp.glob("gpc-abc123-*"))) == 1
    (home / "stop").touch()
    assert job.process.wait(20) == 7
    assert list(job.tmp.iterdir()) == []


@pytest.mark.slow
def test_a_head_that_ends_takes_the_workers_of_its_job_with_it(home: Path) -> None:
    ignorant = 'trap "" TERM; echo $$ >"$D/worker"; sleep 300 & wait; sleep 300'
    job = HeadJob(home, 'until [ -s "$D/worker" ]; do sleep 0.1; done; exit 0', ignorant)
    assert job.process.wait(40) == 0
    until(lambda: start_time(int((home / "worker").read_text())) is None)


@pytest.mark.slow
def test_a_job_that_is_told_to_end_lets_its_head_tidy_up(home: Path) -> None:
    head = 'trap "echo tidied; exit 0" TERM; echo up; while :; do sleep 0.1; done'
    job = HeadJob(home, head, "sleep 300")
    until(lambda: "up" in job.log("head.log"))
    os.kill(job.process.pid, signal.SIGTERM)
    assert job.process.wait(20) == 0
    assert "tidied" in job.log("head.log")


@pytest.mark.slow
def test_the_last_gpus_of_the_job_are_the_heads(home: Path) -> None:
    head = 'echo "head has $CUDA_VISIBLE_DEVICES"; until [ -e "$D/worker" ]; do sleep 0.1; done'
    worker = 'echo "workers have $CUDA_VISIBLE_DEVICES"; touch "$D/worker"'
    job = HeadJob(home, head, worker, gpus=1)
    assert job.process.wait(20) == 0
    assert "head has 3\n" in job.log("head.log")
    assert "workers have 0,1,2\n" in job.log(f"{KEY}.log")


def test_gpus_of_the_head_are_asked_for_by_its_own_job_only(home: Path) -> None:
    directory = ClusterDirectory(home / "abc123")
    text = script_of(home, directory, "", "", gpus=1)
    assert "#SBATCH --gpus-per-node=4" in text


@pytest.mark.parametrize("sent", [{"directives": ["-M other"]}, {"submit_args": ["-M", "other"]}])
def test_a_head_is_not_sent_to_another_cluster_by_a_directive(sent: dict[str, Any]) -> None:
    profile = Profile.model_validate({"title": "x", "backend": "slurm", "job": {"gpus": 0, **sent}})
    with pytest.raises(InvalidInput, match="another cluster") as caught:
        head_lines(profile, "abc123", "head", [])
    assert "SLURM_CLUSTERS" in caught.value.hint
    elsewhere = profile.model_copy(update={"backend": "lsf"})
    assert head_lines(elsewhere, "abc123", "head", [])  # -M is a limit of memory there


def test_a_head_may_be_in_a_pod_of_any_namespace_and_context() -> None:
    job = {"gpus": 0, "account": "physics", "submit_args": ["--context=far"]}
    profile = Profile.model_validate({"title": "x", "backend": "kubernetes", "job": job})
    assert head_lines(profile, "abc123", "head", [])


def test_gpus_of_a_head_beside_jupyter_are_refused() -> None:
    with pytest.raises(ValueError, match="needs `placement: job`"):
        Profile.model_validate({"title": "x", "backend": "slurm", "head": {"gpus": 1}})


def test_gpus_of_the_head_do_not_go_with_a_launcher(home: Path) -> None:
    profile = Profile.model_validate(
        {
            "title": "x",
            "backend": "slurm",
            "launcher": "srun",
            "job": {"gpus": 2},
            "head": {"placement": "job", "gpus": 1},
        }
    )
    directory = ClusterDirectory(home / "abc123")
    spec = spec_for(profile, directory, workers=2)
    with pytest.raises(InvalidInput, match="one node without a launcher"):
        render(profile, spec, directory, "head")
