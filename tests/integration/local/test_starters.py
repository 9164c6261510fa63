"""A starter may be killed at any point: its cluster goes on without it, or is cleaned away."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.state.reader import START_SECONDS

from .conftest import Start
from .driving import client_of, command_of, fixed, processes_of, traces_of, until
from .tasks import double

KILLED_AT = """
import os, signal, subprocess, sys
from jupyter_gpucluster import clusters
from jupyter_gpucluster.core.cluster import Target
from jupyter_gpucluster.launch import create
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] != "afterwards":
    setattr(create, sys.argv[1], die)
clusters.Clusters().start("local", name="orphan", target=Target(1, 1))
die()
"""
IN_ANOTHER_PROCESS = """
import json, sys
from distributed import Client
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.client.connect import security_of
clusters = Clusters()
[listed] = clusters.list()
view = clusters.wait_ready(listed.name, timeout=60)
with Client(view.scheduler_address, security=security_of(view)) as client:
    answer = client.submit(lambda number: 2 * number, 21).result()
clusters.stop(view.name)
over = clusters.wait_stopped(view.name, timeout=30)
print(json.dumps([view.name, answer, over.phase.value]))
"""
CHECKOUT = Path(__file__).parents[3]


def python(code: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *argv],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )


def killed_starter(point: str) -> None:
    assert python(KILLED_AT, point).returncode == -signal.SIGKILL


def test_a_cluster_goes_on_without_its_starter_and_serves_other_processes(
    clusters: Clusters,
) -> None:
    killed_starter("afterwards")
    told = python(IN_ANOTHER_PROCESS)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == ["orphan", 42, "stopped"]
    [view] = clusters.list(ended=True)
    until(lambda: not processes_of(view.id))


def test_a_starter_killed_while_the_head_leaves_it_leaves_a_cluster(clusters: Clusters) -> None:
    code = KILLED_AT.replace("create, sys.argv[1], die", "subprocess.Popen, 'wait', die")
    assert python(code, "spawn").returncode == -signal.SIGKILL
    [view] = clusters.list()
    ready = clusters.wait_ready(view.id, timeout=60)
    with client_of(ready) as client:
        assert client.submit(double, 21).result() == 42


def test_a_starter_killed_before_there_is_a_head_is_told_after_a_while(
    clusters: Clusters, temporary: Path
) -> None:
    killed_starter("spawn")
    [over] = clusters.list()
    assert over.phase is Phase.FAILED
    assert "never started" in over.reason
    assert not traces_of(over.id)
    assert not (Path(over.directory) / "tls").exists()
    clusters.forget(over.id)


@pytest.mark.parametrize("point", ["make_scratch", "make_certificates", "render"])
def test_a_starter_killed_before_there_is_a_record_is_cleaned_away(
    clusters: Clusters, point: str
) -> None:
    killed_starter(point)
    assert clusters.survey(ended=True) == ([], [])  # it may be at work
    [directory] = [path for path in clusters.root.iterdir() if path.is_dir()]
    long_ago = directory.stat().st_mtime - START_SECONDS - 1
    os.utime(directory, (long_ago, long_ago))
    assert clusters.list(ended=True) == []
    assert not directory.exists()
    # The lock went with the killed starter, and so did the name.
    assert clusters.start("local", name="orphan", target=fixed(1)).name == "orphan"


def test_an_interrupted_starter_takes_its_head_along(
    clusters: Clusters, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = subprocess.Popen.wait

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout is None or "__main__.py" not in str(process.args):
            return wait(process, timeout)
        wait(process, timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clusters.start("local", target=fixed(1))
    monkeypatch.undo()
    until(lambda: not any(b"__main__.py" in command_of(pid) for pid in own_processes()))
    assert not list(temporary.glob("gpc-*"))
    assert [path.name for path in clusters.root.iterdir()] == [".lock"]


def own_processes() -> list[int]:
    """Return the processes that were started from here."""
    home = os.environ["HOME"].encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        try:
            if home in (entry / "environ").read_bytes() and pid != os.getpid():
                found.append(pid)
        except OSError:
            continue
    return found


def test_a_head_opens_as_many_files_as_it_may_and_its_workers_as_many_as_before(
    start: Start, clusters: Clusters
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (700, hard))
    try:
        view = start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    head = ClusterDirectory(clusters.root / view.id).read_process()
    assert head is not None
    assert open_files(head.pid) == (hard, hard)
    [job] = clusters.jobs(view.id)
    assert open_files(job.process[0]) == (700, hard)


def open_files(pid: int) -> tuple[int, int]:
    """Return soft and hard limit of a process."""
    return resource.prlimit(pid, resource.RLIMIT_NOFILE)
