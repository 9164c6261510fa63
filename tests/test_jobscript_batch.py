"""The script of a batch job, run by a real shell as a queueing system would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpucluster.backends import find_backend
from jupyter_gpucluster.jobscript import MARK, render
from jupyter_gpucluster.machine import Machine
from jupyter_gpucluster.profiles import Profile
from jupyter_gpucluster.specs import make_spec
from jupyter_gpucluster.store import ClusterDirectory
from tests.waiting import until

pytestmark = pytest.mark.slow
JOB = "gpc-abc123-1_3"


class BatchJob:
    """A job of a cluster in a directory with a difficult name."""

    def __init__(self, home: Path, worker: str, prologue: tuple[str, ...] = ()) -> None:
        place = home / "it's a place"
        place.mkdir()
        self.directory = ClusterDirectory(place / "abc123")
        self.directory.create()
        self.directory.renew_lease()
        python = home / "python"
        python.write_text(f"#!/bin/sh\n{worker}\n")
        python.chmod(0o755)
        profile = Profile.model_validate(
            {"title": "x", "backend": "slurm", "environment": {"prologue": prologue}}
        )
        spec = make_spec(
            profile,
            name="x",
            workers=4,
            machine=Machine(4, 2**33),
            python=str(python),
            environment="",
            directory=self.directory,
            scratch=home / "scratch",
            options={},
        )
        # Slurm refuses such a path; its lines are comments to the shell that runs the rest.
        plain = ClusterDirectory(Path("/state/abc123"))
        text = render(profile, spec, find_backend("slurm"), plain)
        quoted = str(self.directory.path).replace("'", "'\"'\"'")
        self.script = text.replace(MARK, "gpc-abc123-1").replace("/state/abc123", f"'{quoted}'")

    def start(self, **variables: str) -> subprocess.Popen[bytes]:
        """Start the job as a queueing system does: a session of its own, standard input closed."""
        path = self.directory.jobs / "job.sh"
        path.write_text(self.script)
        return subprocess.Popen(
            ["/bin/bash", str(path)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "SLURM_ARRAY_TASK_ID": "3", **variables},
        )

    def log(self) -> str:
        """Return what the job has written."""
        path = self.directory.logs / f"{JOB}.log"
        return path.read_text() if path.exists() else ""


def test_a_worker_knows_its_name_and_its_end_is_on_record(tmp_path: Path) -> None:
    job = BatchJob(tmp_path, 'echo "args: $*"; exit 7')
    assert job.start().wait(30) == 7
    assert f"--name {JOB}" in job.log()
    assert job.directory.exit_codes() == {JOB: 7}


def test_a_requeued_job_does_not_meet_its_own_name(tmp_path: Path) -> None:
    job = BatchJob(tmp_path, 'echo "args: $*"')
    assert job.start(SLURM_RESTART_COUNT="2").wait(30) == 0
    assert f"--name {JOB}.r2" in job.log()


def test_a_request_to_end_reaches_the_worker_and_its_own_code_counts(tmp_path: Path) -> None:
    job = BatchJob(tmp_path, "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done")
    process = job.start()
    until(lambda: "ready" in job.log())
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 5
    assert job.directory.exit_codes() == {JOB: 5}


def test_names_that_a_site_s_prologue_sets_do_not_disturb_the_script(tmp_path: Path) -> None:
    names = ("cluster", "worker", "code", "guard", "now", "seen", "restarts")
    job = BatchJob(tmp_path, "exit 3", prologue=tuple(f"export {n}=/nowhere" for n in names))
    assert job.start().wait(30) == 3
    assert job.directory.exit_codes() == {JOB: 3}


def test_what_the_prologue_says_is_in_the_job_s_log(tmp_path: Path) -> None:
    job = BatchJob(tmp_path, "exit 0", prologue=("echo loading", "no-such-command"))
    assert job.start().wait(30) == 0
    assert "loading" in job.log()
    assert "no-such-command" in job.log()


def test_the_script_is_sound_to_the_shell(tmp_path: Path) -> None:
    job = BatchJob(tmp_path, f"exec {sys.executable} -V")
    subprocess.run(["/bin/bash", "-n"], input=job.script, text=True, check=True)
