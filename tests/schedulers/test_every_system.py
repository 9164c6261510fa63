"""One life of a cluster on every queueing system: wait, run, scale, die, fall silent, stop."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.connection import connect
from jupyter_gpucluster.records import ENDED, FINAL, JobState, Phase, Target
from jupyter_gpucluster.views import ClusterView

from .places import SIMULATED, SYSTEMS, Place, SgePlace, SimulatedPlace, SlurmPlace

SECONDS = 90.0


@pytest.fixture(params=SYSTEMS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Bring one system up, with an empty queue and closed doors."""
    if request.param == "slurm":
        yield SlurmPlace(request.getfixturevalue("site"))
        return
    base = Path(tempfile.mkdtemp(prefix="place-"))
    base.chmod(0o755)
    try:
        if request.param == "sge":
            yield SgePlace(request.getfixturevalue("grid_engine"))
        else:
            programs, words = SIMULATED[request.param]
            yield SimulatedPlace(base, request.param, words, programs)
    finally:
        shutil.rmtree(base)


@pytest.fixture
def here(home: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    """Return the clusters of this test's home; what still lives at its end is stopped."""
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    mine = Clusters()
    yield mine
    place.open()
    for view in mine.live():
        mine.stop(view.id)
        mine.wait_stopped(view.id, timeout=60)
    assert place.queue() == [], "jobs outlived their cluster"


class Life:
    """A cluster, and how to wait for what becomes of it."""

    def __init__(self, clusters: Clusters, profile: str, workers: int) -> None:
        self.clusters = clusters
        self.id = clusters.start(profile, target=Target(workers, workers)).id

    def until(self, reached: Callable[[ClusterView], object]) -> ClusterView:
        deadline = time.monotonic() + SECONDS
        while not reached(view := self.clusters.get(self.id)):
            told = f"{view.phase.value}: {view.words}; {view.reason}"
            assert view.phase not in ENDED, told
            assert time.monotonic() < deadline, told
            time.sleep(0.1)
        return view

    def scale(self, workers: int) -> ClusterView:
        self.clusters.update(self.id, target=Target(workers, workers))
        return self.until(lambda v: v.workers.ready == v.workers.asked == workers)

    def marks(self) -> set[str]:
        return {job.mark for job in self.clusters.jobs(self.id)}


def write_profile(home: Path, backend: str, job: str) -> str:
    path = home / "data" / "gpucluster" / "profiles" / f"on-{backend}-{len(job)}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"title: {backend}\nbackend: {backend}\nnetwork: {{interface: lo}}\njob: {job}\n"
    path.write_text(text)
    return path.stem


def test_a_cluster_lives_and_ends_clean(home: Path, place: Place, here: Clusters) -> None:
    words = place.words
    refused = Life(here, write_profile(home, place.backend, words.refused), 2)
    place.close()
    life = Life(here, write_profile(home, place.backend, words.job), 2)

    view = life.until(lambda v: v.reason.startswith(words.waits))
    assert view.phase is Phase.PENDING
    assert len(life.marks()) == (1 if words.arrays else 2)
    waiting = place.queue()
    assert len(waiting) == 2
    before = here.jobs(life.id)
    with place.silence():
        view = life.until(lambda v: v.stale_since is not None)
        assert (view.phase, view.workers.pending) == (Phase.PENDING, 2)
        assert here.jobs(life.id) == before
    place.hold(waiting)
    life.until(lambda v: v.stale_since is None and v.reason.startswith(words.held))
    place.release(waiting)

    told = refused.until(lambda v: v.phase in ENDED)
    assert told.phase is Phase.FAILED
    for part in (words.said, words.command, f"exit code {words.code}", words.cure):
        assert part in told.reason

    place.open()
    here.wait_ready(life.id, timeout=SECONDS)
    with connect(here.get(life.id).name) as client:
        assert sum(client.gather(client.map(lambda x: x + 1, range(10)))) == 55
        place.kill(waiting[0])
        life.scale(3)
        assert waiting[0] not in place.queue()
        assert len(place.queue()) == 3
        kept = client.scatter(list(range(30)))
        life.scale(1)
        life.until(lambda _: len(place.queue()) == 1)
        assert client.gather(kept) == list(range(30))
    lost = [job for job in here.jobs(life.id) if job.ended and job.leaving is None]
    assert [job.state in FINAL | {JobState.UNKNOWN} for job in lost] == [True]

    here.stop(life.id)
    assert here.wait_stopped(life.id, timeout=SECONDS).phase is Phase.STOPPED
    assert place.queue() == []


@pytest.mark.parametrize("place", ["pbs"], indirect=True)
@pytest.mark.parametrize(
    "line,cause",
    [
        ("spack load cuda || exit 1", "The node has no such command"),
        ("export PYTHONHOME=/nowhere", "PYTHONHOME or PYTHONPATH leads"),
    ],
)
def test_a_job_that_ends_before_its_worker_connects_names_the_cause(
    line: str, cause: str, home: Path, place: Place, here: Clusters
) -> None:
    more = f"environment: {{prologue: ['{line}']}}\npolicy: {{replacements: 0}}\n"
    place.open()
    life = Life(here, write_profile(home, place.backend, f"{place.words.job}\n{more}"), 1)
    view = life.until(lambda v: v.phase in ENDED)
    assert view.phase is Phase.FAILED
    assert "It ended with exit code 1." in view.reason
    assert cause in view.reason
