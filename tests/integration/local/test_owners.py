"""A cluster that a program started for itself ends with it; a head that hangs can be ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.cli import perform
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import HeadUnreachable, WaitTimeout
from jupyter_gpucluster.core.job import FINAL
from jupyter_gpucluster.host.processes import signal_group

from .conftest import Start
from .driving import client_of, command_of, head_of, job_server_of, processes_of, record_of, until
from .tasks import hold_the_interpreter

CHECKOUT = Path(__file__).parents[3]
GOES_ON = "import time; print('begun', flush=True); time.sleep(600)"
OWNER = f"""
from jupyter_gpucluster import GPUCluster
cluster = GPUCluster(workers=1, shutdown_on_close={{stops}})
{GOES_ON}
"""


@pytest.fixture
def begun(home: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Take up processes that are killed in the end."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        signal_group(process.pid, signal.SIGKILL)
        process.communicate()


def begin(begun: list[subprocess.Popen[str]], *words: str) -> subprocess.Popen[str]:
    """Run Python until it says that it has begun."""
    process = subprocess.Popen(
        [sys.executable, *words],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    begun.append(process)
    assert process.stdout is not None
    assert "begun" in process.stdout.readline()
    return process


@pytest.mark.parametrize("how", ["run", "GPUCluster"])
def test_a_killed_program_takes_its_cluster_along(
    clusters: Clusters, home: Path, begun: list[subprocess.Popen[str]], how: str
) -> None:
    if how == "run":
        (home / "script.py").write_text(GOES_ON)
        script = str(home / "script.py")
        program = begin(begun, "-m", "jupyter_gpucluster", "run", script, "--workers", "1")
    else:
        program = begin(begun, "-c", OWNER.format(stops=True))
    [view] = clusters.list()
    assert str(program.pid) in view.survival
    assert not view.survives
    program.kill()
    over = clusters.wait_stopped(view.id, timeout=30)
    # The script of `run` goes on without a cluster.
    until(lambda: not [p for p in processes_of(view.id) if b"script.py" not in command_of(p)])
    assert over.phase is Phase.STOPPED
    assert over.reason == "The program that started it has gone."


def test_a_program_that_lets_go_of_its_cluster_leaves_it_behind(
    clusters: Clusters, begun: list[subprocess.Popen[str]]
) -> None:
    program = begin(begun, "-c", OWNER.format(stops=False))
    [view] = clusters.list()
    program.kill()
    program.wait()
    assert record_of(view).owner is None
    with client_of(view) as client:
        assert client.submit(sum, [1, 2]).result() == 3


@pytest.mark.usefixtures("impatient")
def test_a_head_that_hangs_is_named_and_killed_by_force(
    clusters: Clusters, start: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    view = start(workers=2)
    head, server = head_of(view), job_server_of(view)
    with client_of(view) as client:
        tasks = client.map(hold_the_interpreter, [600, 600], pure=False)
        os.kill(head, signal.SIGSTOP)
        os.kill(server, signal.SIGSTOP)
        with pytest.raises(WaitTimeout, match="is not stopped") as late:
            clusters.wait_stopped(view.id, timeout=0.1)
        with pytest.raises(HeadUnreachable) as silent:
            clusters.stop(view.id)
        for error in (late.value, silent.value):
            assert str(head) in error.hint
            assert f"stop --force {view.name}" in error.hint
        assert processes_of(view.id)
        assert perform(["stop", "--force", view.name, "--wait", "--json"], Terminal()) == 0
        document = json.loads(capfd.readouterr().out)
        assert [each["phase"] for each in document["clusters"]] == ["stopped"]
        until(lambda: not processes_of(view.id))
        client.close(timeout=0.5)
        del tasks
    over = clusters.get(view.id)
    assert over.reason == "Stopped by force."
    assert all(job.state in FINAL for job in clusters.jobs(view.id))
    assert clusters.stop(view.id, force=True).phase is Phase.STOPPED
