"""A computation outlives a state directory that is unreachable; nothing is submitted meanwhile."""

from __future__ import annotations

import contextlib
import errno
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.serialize import to_json
from jupyter_gpucluster.state.control_client import ask
from tests.integration.local.driving import client_of, fixed, record_of
from tests.integration.local.tasks import double
from tests.mounting import ROOT_ONLY, failing, fill, mounted
from tests.waiting import until

from .behalf import Work
from .life import write_profile
from .ordinary_user import Person
from .places import SIMULATED, SimulatedPlace

pytestmark = ROOT_ONLY
ONLY = "{cpus: 1, memory: 500 MiB, walltime: '00:10:00'}"
SECONDS = 90.0
Trouble = Callable[[Path], contextlib.AbstractContextManager[object]]


def run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


@contextlib.contextmanager
def unmounted(directory: Path) -> Iterator[None]:
    root = directory.parent
    kept = root.with_name("kept")
    kept.mkdir()
    run("mount", "--bind", root, kept)
    run("umount", "--lazy", root)
    yield
    run("mount", "--bind", kept, root)
    run("umount", kept)


@contextlib.contextmanager
def read_only(directory: Path) -> Iterator[None]:
    run("mount", "--bind", directory, directory)
    run("mount", "-o", "remount,ro,bind", directory)
    yield
    run("umount", "--lazy", directory)


@contextlib.contextmanager
def full(directory: Path) -> Iterator[None]:
    fill(directory.parent / "filler")
    yield
    (directory.parent / "filler").unlink()


TROUBLES: dict[str, Trouble] = {
    "stale file handle": lambda directory: failing(directory, errno.ESTALE),
    "the file system does not answer": failing,
    "no such file or directory": unmounted,
    "read-only file system": read_only,
    "no space left on device": full,
}


@pytest.fixture
def root(home: Path) -> Iterator[Path]:
    with mounted(Clusters().root, "size=2m,mode=0700") as place:
        yield place


@pytest.fixture(params=["local", "pbs"])
def profile(request: pytest.FixtureRequest, root: Path, home: Path) -> Iterator[str]:
    """Return a profile of this machine, and one of a batch system; nothing of it may be left."""
    if request.param == "local":
        yield "local"
        return
    words = SIMULATED[request.param]
    place = SimulatedPlace(home, request.param, words[1], words[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", place.environment["PATH"])
        place.open()
        yield write_profile(Person(home, Clusters(), Work()), place, ONLY)
        assert place.queue() == []


@pytest.mark.slow
@pytest.mark.parametrize("words", TROUBLES)
def test_a_computation_outlives_an_unreachable_state_directory(
    words: str, root: Path, profile: str
) -> None:
    clusters = Clusters()
    view = clusters.start(profile, target=fixed(1))
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    head = clusters.endpoint(view.id)

    def answer() -> dict[str, Any]:
        return ask(head, "GET", "/gpucluster/summary")

    with client_of(view) as client:
        with TROUBLES[words](Path(view.directory)):
            until(lambda: answer()["summary"]["unsaved_since"])
            ask(head, "PATCH", "/gpucluster/cluster", {"target": to_json(fixed(2))})
            assert client.submit(double, 21).result(timeout=SECONDS) == 42
            time.sleep(3)  # it would submit now
            found = answer()
            assert "not saved since" in found["summary"]["words"]
            assert found["summary"]["words"].endswith(words)
            assert found["summary"]["phase"] not in ("failed", "stopping", "stopped")
            assert len([job for job in found["jobs"] if not job["ended"]]) == 1
        until(lambda: record_of(view).target == fixed(2))
        ready = clusters.wait_ready(view.id, timeout=SECONDS)
        assert (ready.workers.ready, ready.unsaved_since) == (2, None)
        assert client.submit(double, 4).result(timeout=SECONDS) == 8
    assert all(job.cause == "" for job in clusters.jobs(view.id))
    clusters.stop(view.id)
    assert clusters.wait_stopped(view.id, timeout=SECONDS).phase is Phase.STOPPED
