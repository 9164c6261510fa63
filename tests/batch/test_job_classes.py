"""Texts of dask-jobqueue's own classes, from a process apart, whatever the user has set."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import BACKENDS, job_classes
from jupyter_gpucluster.core.errors import BackendError
from tests.launch.script.test_job import HOSTILE

CLASSES = """
import importlib, inspect, json, pkgutil
import dask_jobqueue
from dask_jobqueue.core import Job
found = set()
for module in pkgutil.iter_modules(dask_jobqueue.__path__):
    if module.name in ("tests", "local"):
        continue
    loaded = importlib.import_module("dask_jobqueue." + module.name)
    for name, kind in inspect.getmembers(loaded, inspect.isclass):
        if issubclass(kind, Job) and kind is not Job and kind.__module__ == loaded.__name__:
            found.add(module.name + "." + name)
print(json.dumps(sorted(found)))
"""
WRITER = [sys.executable, "-P", str(job_classes.WRITER)]
FORKING = """
import os, sys
from jupyter_gpucluster.batch import job_classes
job_classes.begin()
child = job_classes._WRITER.child
pid = os.fork()
if pid == 0:
    sys.exit(job_classes._WRITER.child is not None)
assert os.waitpid(pid, 0)[1] == 0
assert job_classes.head("sge.SGEJob", {"job_name": "one"})[0] == "#$ -N one"
assert job_classes._WRITER.child is child
"""


@pytest.fixture
def anew() -> Iterator[None]:
    """Begin and end without a child and without answers that are remembered."""
    forget()
    yield
    forget()


def forget() -> None:
    job_classes._WRITER.end()
    job_classes._asked.cache_clear()


def test_each_class_of_dask_jobqueue_s_writes_the_jobs_of_its_system(home: Path) -> None:
    said = subprocess.run([sys.executable, "-c", CLASSES], capture_output=True, check=True)
    used = {backend.job_class for backend in BACKENDS.values() if backend.job_class}
    assert used == set(json.loads(said.stdout))


@pytest.mark.usefixtures("anew")
def test_the_user_s_dask_configuration_has_no_say_and_gets_no_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = home / ".config" / "dask"
    own.mkdir(parents=True)
    (own / "own.yaml").write_text("jobqueue: {slurm: {queue: long, job-extra-directives: [-x n]}}")
    monkeypatch.setenv("DASK_JOBQUEUE__SLURM__ACCOUNT", "other")
    before = sorted(home.rglob("*"))
    lines = job_classes.head("slurm.SLURMJob", {"job_name": "m", "job_cpu": 2, "job_mem": "1M"})
    assert lines == [
        "#SBATCH -J m", "#SBATCH -n 1", "#SBATCH --cpus-per-task=2", "#SBATCH --mem=1M",
    ]  # fmt: skip
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_words_of_a_worker_s_command_mean_only_themselves(value: str) -> None:
    line = job_classes.command(
        "slurm.SLURMJob",
        {
            "python": f"printf '%s\\0' {shlex.quote(value)}",
            "worker_command": "distributed.cli.dask_worker",
            "scheduler": f"--scheduler-file {shlex.quote(value)}",
            "name": '"$NAME"',
            "cores": 4,
            "memory": 2**33,
            "processes": 2,
            "death_timeout": 60,
            "local_directory": shlex.quote(value),
            "worker_extra_args": [shlex.join(["--resources", value])],
        },
    )
    ran = subprocess.run(
        ["bash", "-c", line], env={**os.environ, "NAME": "it's"}, capture_output=True, check=True
    )
    assert os.fsdecode(ran.stdout).split("\0")[:-1] == [
        value, "-m", "distributed.cli.dask_worker", "--scheduler-file", value, "--name", "it's",
        "--nthreads", "2", "--memory-limit", "4.00GiB", "--nworkers", "2", "--nanny",
        "--death-timeout", "60", "--local-directory", value, "--resources", value,
    ]  # fmt: skip


@pytest.mark.usefixtures("anew")
def test_where_it_cannot_be_imported_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dask_jobqueue.py").write_text("import gone_with_an_upgrade")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ".")
    with pytest.raises(BackendError, match="SLURMJob cannot write the job's script") as caught:
        job_classes.head("slurm.SLURMJob", {"job_name": "m"})
    assert "No module named 'gone_with_an_upgrade'" in caught.value.detail
    assert "pip install --upgrade 'dask-jobqueue>=0.9" in caught.value.hint


@pytest.mark.usefixtures("anew")
def test_where_no_process_can_be_started_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    job_classes.begin()
    with pytest.raises(BackendError) as caught:
        job_classes.head("slurm.SLURMJob", {"job_name": "m"})
    assert caught.value.detail == "/nowhere/python: No such file or directory"


@pytest.mark.usefixtures("anew")
def test_what_a_site_has_each_python_print_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text('print("Welcome to the site")')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert job_classes.head("sge.SGEJob", {"job_name": "one"})[0] == "#$ -N one"


@pytest.mark.usefixtures("anew")
def test_an_answer_to_an_interrupted_question_is_not_taken_for_the_next_one() -> None:
    job_classes.begin()
    assert job_classes._WRITER.child is not None
    child, _ = job_classes._WRITER.child
    child.send_signal(signal.SIGSTOP)

    def interrupt(*_: object) -> None:
        child.send_signal(signal.SIGCONT)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            job_classes.head("sge.SGEJob", {"job_name": "one"})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert job_classes.head("slurm.SLURMJob", {"job_name": "two"})[0] == "#SBATCH -J two"


@pytest.mark.usefixtures("anew")
def test_a_child_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_classes, "READING_SECONDS", 0.1)
    job_classes.begin()
    assert job_classes._WRITER.child is not None
    child, _ = job_classes._WRITER.child
    child.send_signal(signal.SIGSTOP)
    with pytest.raises(BackendError) as caught:
        job_classes.head("slurm.SLURMJob", {"job_name": "m"})
    assert "timed out" in caught.value.detail
    assert child.poll() == -signal.SIGKILL


def test_a_process_that_forks_keeps_its_child_to_itself() -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True, timeout=60)


@pytest.mark.usefixtures("anew")
def test_a_child_that_has_ended_is_followed_by_another() -> None:
    job_classes.begin()
    assert job_classes.head("sge.SGEJob", {"job_name": "one"})[0] == "#$ -N one"
    assert job_classes._WRITER.child is not None
    child, _ = job_classes._WRITER.child
    os.kill(child.pid, signal.SIGKILL)
    assert job_classes.head("sge.SGEJob", {"job_name": "two"})[0] == "#$ -N two"
    # What is known is not asked for again.
    job_classes._WRITER.end()
    assert job_classes.head("sge.SGEJob", {"job_name": "one"})[0] == "#$ -N one"
    assert job_classes._WRITER.child is None


def test_what_a_class_refuses_is_told() -> None:
    with pytest.raises(BackendError) as caught:
        job_classes.head("slurm.SLURMJob", {"no_such_argument": 1})
    assert "no_such_argument" in caught.value.detail


def test_the_child_ends_with_its_parent_and_when_nobody_asks() -> None:
    assert subprocess.run(WRITER, stdin=subprocess.DEVNULL, timeout=60, check=False).returncode == 0
    idle = (
        "import sys; from jupyter_gpucluster.batch import job_writer as own;"
        " own.IDLE_SECONDS = 0.1; own.main(sys.stdout)"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", idle], stdin=subprocess.PIPE) as child:
        assert child.wait(60) == 0
