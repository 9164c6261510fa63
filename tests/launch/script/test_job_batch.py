"""The script of a batch job, run by a real shell as a batch system would."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.script.job import render
from jupyter_gpucluster.profiles import Profile
from tests.launch.specs import DIRECTORY, ShellJob, spec_for
from tests.mounting import ROOT_ONLY, fill_inodes, mounted
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
        python = home / "python"
        python.write_text(f"#!/bin/sh\n{worker}\n")
        python.chmod(0o755)
        profile = Profile.model_validate(
            {"title": "x", "backend": "slurm", "environment": {"prologue": prologue}}
        )
        spec = spec_for(
            profile, self.directory, workers=4, python=str(python), scratch=home / "scratch"
        )
        # Slurm refuses such a path; its lines are comments to the shell that runs the rest.
        text = render(profile, spec, find_backend("slurm"), DIRECTORY)
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


# The guard: it ends the workers of a cluster that has lost its scheduler process, and no others.

LOOKS = 0.1
"""Seconds between two looks of the guard in these tests, each of which still counts for 30."""
FIVE_LOOKS = 5.4 * LOOKS
TICKING = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"


class GuardedJob(BatchJob):
    """A job whose guard looks often."""

    def __init__(self, home: Path, worker: str = TICKING) -> None:
        super().__init__(home, worker)
        self.script = self.script.replace("sleep 30 &", f"sleep {LOOKS} &")
        assert f"sleep {LOOKS} &" in self.script

    def begin(self, **variables: str) -> subprocess.Popen[bytes]:
        process = self.start(**variables)
        until(lambda: "ready" in self.log())
        return process


def end(process: subprocess.Popen[bytes]) -> None:
    """End a job that still runs, and see that it was its own end."""
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 5


@contextlib.contextmanager
def renewed(job: BatchJob) -> Iterator[None]:
    """Renew the lease as a head does, each time with another second, since looks are close."""
    over = threading.Event()
    began = time.time()

    def renew() -> None:
        for second in itertools.count():
            if over.wait(LOOKS / 2):
                return
            with contextlib.suppress(OSError):
                os.utime(job.directory.lease, (began - second % 60, began - second % 60))

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_lease_that_cannot_be_read_for_a_while_ends_nothing(tmp_path: Path) -> None:
    job = GuardedJob(tmp_path)
    process = job.begin()
    place = job.directory.path.parent
    with renewed(job):
        for _ in range(3):
            place.rename(tmp_path / "away")
            time.sleep(FIVE_LOOKS - 2 * LOOKS)
            (tmp_path / "away").rename(place)
            time.sleep(5 * LOOKS)
        end(process)
    assert "ending this job" not in job.log()


def test_one_answer_among_stale_file_handles_is_enough(tmp_path: Path) -> None:
    job = GuardedJob(tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "stat").write_text(
        f"#!/bin/bash\necho >>'{tmp_path}/looks'\n"
        # Every fourth look succeeds; a look that fails asks for no second time.
        f"(( $(wc -l <'{tmp_path}/looks') % 4 < 2 )) && exec /usr/bin/stat \"$@\"\n"
        "echo \"stat: cannot statx '$3': Stale file handle\" >&2; exit 1\n"
    )
    (tools / "stat").chmod(0o755)
    looks = tmp_path / "looks"
    with renewed(job):
        process = job.begin(PATH=f"{tools}:{os.environ['PATH']}")
        until(lambda: looks.exists() and len(looks.read_text()) > 40)
        end(process)
    assert "ending this job" not in job.log()


def test_a_lease_that_stays_unreadable_ends_the_job_with_the_true_reason(tmp_path: Path) -> None:
    job = GuardedJob(tmp_path)
    process = job.begin()
    began = time.monotonic()
    job.directory.lease.unlink()
    assert process.wait(30) == 5
    assert time.monotonic() - began > FIVE_LOOKS
    assert "The cluster's lease could not be read for 180 s: ending this job." in job.log()
    assert job.directory.exit_codes() == {JOB: 5}


def test_a_lease_that_is_not_renewed_ends_the_job_with_the_true_reason(tmp_path: Path) -> None:
    job = GuardedJob(tmp_path)
    then = time.time() - 400
    os.utime(job.directory.lease, (then, then))
    process = job.start()
    assert process.wait(30) == 5
    assert "process has not renewed its lease for 4" in job.log()


@ROOT_ONLY
@pytest.mark.parametrize("looked", [True, False])
def test_the_guard_works_where_no_file_can_be_made(tmp_path: Path, looked: bool) -> None:
    with mounted(tmp_path / "it's a place", "nr_inodes=24,size=1m,mode=0700") as place:
        job = GuardedJob(tmp_path)
        if looked:
            (job.directory.path / "exit" / f".{JOB}").touch()
        process = job.begin()
        fill_inodes(place)
        with renewed(job):
            time.sleep(2 * FIVE_LOOKS)
        assert process.poll() is None
        assert "No space left" not in job.log()
        then = time.time() - 100
        os.utime(job.directory.lease, (then, then))
        time.sleep(FIVE_LOOKS - LOOKS)
        assert process.poll() is None
        if looked:
            os.utime(job.directory.lease, (then - 100, then - 100))
        assert process.wait(30) == 5
        assert "has not renewed its lease for" in job.log()
