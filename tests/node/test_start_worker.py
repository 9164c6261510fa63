"""The file that starts a worker's Python: what the log gets to know, and that nothing changes."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.host.startup_watch import STACK, SlowStarts
from jupyter_gpucluster.node import start_worker
from tests.waiting import until

KEY = "gpc-abc123-1_0"
STACK_SECONDS = 0.5
SLOW = """\
import sys
import time
from pathlib import Path

place = str(Path(__file__).parent)
while place in sys.path and not Path(place, "go").exists():
    time.sleep(0.05)
# The real one.
sys.path.remove(place)
del sys.modules["click"]
import click
"""
"""A module that Dask imports, on a file system that takes its time."""
MODULES = {"distributed.cli.dask_worker": ["--nworkers", "1"]}
if importlib.util.find_spec("dask_cuda"):
    mock = ["--worker-class", "dask_cuda.utils_test.MockWorker", "--device-memory-limit", "0"]
    MODULES["dask_cuda.cli"] = mock


class Started:
    """A worker's process, started as the script of a job does."""

    def __init__(self, place: Path, *arguments: str, **variables: str) -> None:
        self.place = place
        starter = place / "workerstart.py"
        text = Path(start_worker.__file__).read_text()
        assert "STACK_SECONDS = 60.0" in text
        starter.write_text(text.replace("STACK_SECONDS = 60.0", f"STACK_SECONDS = {STACK_SECONDS}"))
        (place / "work").mkdir(exist_ok=True)
        with (place / f"{KEY}.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(starter), "-m", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=place / "work",
                env={**os.environ, **variables},
                start_new_session=True,
            )

    def log(self) -> str:
        """Return what it has said."""
        return (self.place / f"{KEY}.log").read_text()

    def words(self) -> str:
        """Return what a head says of it."""
        job = Job("gpc-abc123-1", 0, JobState.RUNNING, started=time.time() - 180)
        [(_, words)] = SlowStarts(self.place).look([job], time.time())
        return words


@pytest.fixture(scope="module")
def scheduler(module_home: Path) -> Iterator[LocalCluster]:
    """Start a scheduler for all workers."""
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", protocol="tcp") as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_imports_that_hang_are_reported_by_their_line_and_the_worker_is_dask_s_own(
    tmp_path: Path, scheduler: LocalCluster, module: str
) -> None:
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "click.py").write_text(SLOW)
    started = Started(
        tmp_path,
        module,
        scheduler.scheduler_address,
        *(*MODULES[module], "--nthreads", "1", "--name", KEY, "--no-dashboard"),
        PYTHONPATH=str(slow),
        CUDA_VISIBLE_DEVICES="GPU-11111111-2222-3333-4444-555555555555",
        DASK_CUDA_TEST_SINGLE_GPU="1",
        DASK_CUDA_TEST_DISABLE_DEVICE_SPECIFIC="1",
    )
    try:
        line = f"line 7 of {slow / 'click.py'}"
        until(lambda: line in started.words())
        package = module.partition(".")[0]
        assert f"without a worker: importing {package} since" in started.words()
        (slow / "go").touch()
        with Client(scheduler) as client:
            client.wait_for_workers(1, timeout=60)
            [pid] = client.run(os.getpid).values()
            assert client.submit(sum, [1, 2]).result(timeout=60) == 3
            # What the nanny starts is a new interpreter, which imports the main module anew.
            assert client.submit(lambda: sys.modules["__main__"].__name__).result(timeout=60)
            os.kill(pid, signal.SIGKILL)
            until(lambda: {*client.run(os.getpid, on_error="ignore").values()} - {pid})
            assert client.submit(os.getcwd).result(timeout=60)
        assert "starting workers since" in started.log()
        stacks = started.log().count(STACK)
        assert stacks >= 1
        time.sleep(2 * STACK_SECONDS)
        assert started.log().count(STACK) == stacks
    finally:
        started.process.terminate()
        started.process.wait(30)


PROBE = """\
import sys

if __name__ == "__main__":
    print(sys.argv[1:], sys.path[0], __spec__.name, file=sys.stderr)
    sys.exit(7)
"""


def test_a_module_runs_as_python_m_runs_it(tmp_path: Path) -> None:
    work = tmp_path / "work" / "probe"
    work.mkdir(parents=True)
    (work / "__init__.py").touch()
    (work / "cli.py").write_text(PROBE)
    started = Started(tmp_path, "probe.cli", "--name", "it's")
    assert started.process.wait(60) == 7
    like = subprocess.run(
        [sys.executable, "-m", "probe.cli", "--name", "it's"],
        cwd=work.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert like.stderr in started.log()
    assert "importing probe since" in started.log()


@pytest.mark.parametrize(
    "own, variable, counts",
    [
        ("", "50 s", "50 s"),
        ("distributed: {worker: {lifetime: {duration: 20 min}}}", "50 s", "20 min"),
        ("distributed: {worker: {lifetime: {stagger: 1 s}}}", "50 s", "50 s"),
        # Not what the job's script made of the walltime: somebody's own word.
        ("distributed: {worker: {lifetime: {duration: 20 min}}}", "30 s", "30 s"),
    ],
)
def test_a_lifetime_in_the_user_s_dask_files_counts_more_than_the_script_s(
    tmp_path: Path, own: str, variable: str, counts: str
) -> None:
    work = tmp_path / "work" / "probe"
    work.mkdir(parents=True)
    (work / "__init__.py").touch()
    (work / "cli.py").write_text(
        "import dask\nprint('lifetime:', dask.config.get('distributed.worker.lifetime.duration'))\n"
    )
    settings = tmp_path / "dask"
    settings.mkdir()
    (settings / "own.yaml").write_text(own)
    left = {"GPUCLUSTER_LEFT": "50", start_worker.LIFETIME: variable}
    started = Started(tmp_path, "probe.cli", DASK_CONFIG=str(settings), **left)
    assert started.process.wait(60) == 0, started.log()
    assert f"lifetime: {counts}\n" in started.log()


def test_a_package_that_is_not_there_is_named(tmp_path: Path) -> None:
    started = Started(tmp_path, "no_such_package.cli")
    assert started.process.wait(60) == 1
    assert "No module named 'no_such_package'" in started.log()
