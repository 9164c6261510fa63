"""The script of a batch job, run by a real shell as a batch system would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from jupyter_gpucluster.core.lease import GUARD_SECONDS, LATE_SECONDS
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.script.job import GUARD_FILE, render, write_node_files
from jupyter_gpucluster.profiles import Profile
from tests.launch.specs import DIRECTORY, ShellJob, spec_for
from tests.mounting import ROOT_ONLY, failing
from tests.waiting import until

pytestmark = pytest.mark.slow
JOB = "gpc-abc123-1_3"


class BatchJob(ShellJob):
    """A job of a cluster in a directory with a difficult name."""

    key = JOB
    variables: Mapping[str, str] = {"SLURM_ARRAY_TASK_ID": "3"}

    def __init__(self, home: Path, worker: str, prologue: tuple[str, ...] = ()) -> None:
        place = home / "it's a place"
        place.mkdir(exist_ok=True)
        self.directory = ClusterDirectory(place / "abc123")
        self.directory.create()
        self.directory.renew_lease()
        write_node_files(self.directory)
        python = home / "python"
        guards = f'case "$2" in */{GUARD_FILE}) exec {sys.executable} "$@" ;; esac'
        python.write_text(f"#!/bin/sh\n{guards}\n{worker}\n")
        python.chmod(0o755)
        profile = Profile.model_validate(
            {"title": "x", "backend": "slurm", "environment": {"prologue": prologue}}
        )
        spec = spec_for(
            profile, self.directory, workers=4, python=str(python), scratch=home / "scratch"
        )
        # Slurm refuses such a path; its lines are comments to the shell that runs the rest.
        text = render(profile, spec, DIRECTORY)
        quoted = str(self.directory.path).replace("'", "'\"'\"'")
        self.script = text.replace("/state/abc123", f"'{quoted}'")


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


@pytest.mark.parametrize(
    "line, code, words",
    [
        ("no-such-command -x", 127, "exit code 127: command not found: no-such-command -x"),
        ("/etc/passwd", 126, "exit code 126: command cannot be executed: /etc/passwd"),
        ("f() { no-such-command; return 5; }; f", 0, "exit code 5: f() { no-such-command;"),
        ("source ./sets || echo left", 0, ""),
        ("source ./sets", 0, "exit code 3: source ./sets"),
        ("if false; then :", 0, ""),
    ],
)
def test_a_line_of_the_prologue_that_fails_is_named_and_a_missing_command_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sets").write_text("no-such-command\nexport HERE=1\nreturn 3\n")
    closing = ("fi",) if line.startswith("if") else ()
    job = BatchJob(tmp_path, "echo works; false; exit 0", ("echo loading", line, *closing))
    assert job.start().wait(30) == code
    named = [text for text in job.log().splitlines() if text.startswith("gpucluster: environment.")]
    assert len(named) == bool(words)
    assert all(words in text for text in named)
    assert "loading" in job.log()
    assert ("works" in job.log()) == (code == 0)


# The guard: `tests/node/test_guard.py` tells when it ends a job.

TICKING = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"


class GuardedJob(BatchJob):
    """A job whose guard looks often."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, TICKING)
        file = self.directory.jobs / GUARD_FILE
        text = file.read_text()
        file.write_text(text.replace("LOOK_SECONDS = 30.0", "LOOK_SECONDS = 0.1"))
        limits = f'"$worker" {LATE_SECONDS:.0f} {GUARD_SECONDS} &'
        assert text != file.read_text()
        assert limits in self.script
        self.script = self.script.replace(limits, '"$worker" 45 0.5 &')

    def begin(self) -> subprocess.Popen[bytes]:
        process = self.start()
        until(lambda: "ready" in self.log())
        until((self.directory.path / "exit" / f".{JOB}").exists)  # the guard has looked
        return process

    def guards(self) -> list[int]:
        file = str(self.directory.jobs / GUARD_FILE).encode()
        return [
            int(entry.parent.name)
            for entry in Path("/proc").glob("[0-9]*/cmdline")
            if file in _read(entry)
        ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_lost_cluster_ends_the_job_with_the_true_reason(tmp_path: Path) -> None:
    job = GuardedJob(tmp_path)
    process = job.begin()
    assert process.poll() is None
    job.directory.lease.unlink()
    assert process.wait(30) == 5
    assert "The cluster's lease could not be read, and its scheduler" in job.log()
    assert job.directory.exit_codes() == {JOB: 5}
    until(lambda: not job.guards())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_guard_ends_with_the_job(tmp_path: Path, number: signal.Signals) -> None:
    job = GuardedJob(tmp_path)
    process = job.begin()
    if number == signal.SIGTERM:
        process.send_signal(number)
        assert process.wait(30) == 5
    else:
        os.killpg(process.pid, number)
        process.wait(30)
    until(lambda: not job.guards())


@ROOT_ONLY
def test_a_job_ends_although_its_disk_hangs(tmp_path: Path) -> None:
    job = GuardedJob(tmp_path)
    process = job.begin()
    with (job.directory.logs / f"{JOB}.log").open() as log, failing(job.directory.path):
        until(lambda: "ending this job" in log.read())
        assert process.wait(30) in (5, -signal.SIGKILL)
    until(lambda: not job.guards())
