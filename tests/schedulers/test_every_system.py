"""One life of a cluster on every queueing system: wait, run, scale, die, fall silent, stop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from distributed import get_worker

from jupyter_gpucluster.backends import find_backend
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.connection import connect
from jupyter_gpucluster.records import ENDED, FINAL, Job, JobState, Phase, Target
from jupyter_gpucluster.submission import ProcessRunner
from jupyter_gpucluster.views import ClusterView

from .ordinary_user import NOBODY, ordinary_user
from .places import REAL, SIMULATED, SYSTEMS, RealPlace, SimulatedPlace

SECONDS = 90.0
FIXTURES = {"slurm": "site", "sge": "grid_engine", "oar": "oar"}
Place = RealPlace | SimulatedPlace


@pytest.fixture(params=SYSTEMS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Bring one system up, with an empty queue."""
    if request.param in REAL:
        site = request.getfixturevalue(FIXTURES[request.param])
        return RealPlace(site, request.param, *REAL[request.param])
    programs, words = SIMULATED[request.param]
    return SimulatedPlace(tmp_path, request.param, words, programs)


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


@dataclass(frozen=True)
class Ends:
    """How jobs end on a system that nobody can install, and what users are told then."""

    memory: JobState
    memory_words: str
    walltime: JobState | None
    """None = as its script ends, which may still end well."""
    walltime_words: str
    suspends: bool = True


AT_WALLTIME = (JobState.TIMEOUT, "It reached its walltime; its results went with it.")
OVER_MEMORY = (JobState.OUT_OF_MEMORY, "It used more memory than")
ENDS = {
    "pbs": Ends(*OVER_MEMORY, *AT_WALLTIME),
    "torque": Ends(*OVER_MEMORY, *AT_WALLTIME),
    "lsf": Ends(*OVER_MEMORY, *AT_WALLTIME),
    "htcondor": Ends(*OVER_MEMORY, *AT_WALLTIME),
    # Moab says of jobs at their walltime what it says of cancelled ones.
    "moab": Ends(
        JobState.FAILED, "It was killed by signal 9", JobState.CANCELLED, "ended by Moab at its"
    ),
    # Cobalt says nothing of jobs that have ended; their scripts do, if they may end by themselves.
    "cobalt": Ends(JobState.UNKNOWN, "", None, "", suspends=False),
}


def suffer(life: Life, place: SimulatedPlace) -> None:
    """Suspend, starve, requeue and end at its walltime what runs."""
    ends = ENDS[place.backend]
    here, id = life.clusters, life.id
    first, second, third = (job for job in here.jobs(id) if job.ended is None)

    def now(job: Job) -> Job:
        return next(each for each in here.jobs(id) if each.id == job.id)

    place.close()
    with place.doing_to(first) as (site, jobs):
        if ends.suspends:
            site.suspend(jobs)
    with place.doing_to(second) as (site, jobs):
        site.starve(jobs)
    with place.doing_to(third) as (site, jobs):
        site.requeue(jobs)
    life.until(lambda _: now(second).ended and now(third).state is JobState.PENDING)
    assert now(second).state is ends.memory
    assert ends.memory_words in now(second).cause
    assert (now(first).state is JobState.SUSPENDED) == ends.suspends
    with place.doing_to(first) as (site, jobs):
        site.resume(jobs)
        jobs[0].walltime = 0.0
    place.open()
    life.until(lambda _: now(first).ended and now(third).state is JobState.RUNNING)
    assert ends.walltime in (None, now(first).state)
    assert ends.walltime_words in now(first).cause


def test_a_cluster_lives_and_ends_clean(home: Path, place: Place, here: Clusters) -> None:
    words = place.words
    refused = Life(here, write_profile(home, place.backend, words.refused), 2)
    place.close()
    life = Life(here, write_profile(home, place.backend, words.job), 2)

    told = refused.until(lambda v: v.phase in ENDED)
    assert told.phase is Phase.FAILED
    for part in (words.said, words.command, f"exit code {words.code}", words.cure):
        assert part in told.reason

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

    place.open()
    here.wait_ready(life.id, timeout=SECONDS)
    with connect(here.get(life.id).name) as client:
        assert sum(client.gather(client.map(lambda x: x + 1, range(10)))) == 55
        place.kill(waiting[0])
        life.scale(3)
        assert waiting[0] not in place.queue()
        assert len(place.queue()) == 3
        if isinstance(place, SimulatedPlace):
            suffer(life, place)
        kept = client.scatter(list(range(30)))
        life.scale(1)
        life.until(lambda _: len(place.queue()) == 1)
        assert client.gather(kept) == list(range(30))
    lost = [job for job in here.jobs(life.id) if job.ended and job.leaving is None]
    assert {job.state in FINAL | {JobState.UNKNOWN} for job in lost} == {True}

    here.stop(life.id)
    assert here.wait_stopped(life.id, timeout=SECONDS).phase is Phase.STOPPED
    assert place.queue() == []


@pytest.mark.parametrize(
    "place,gpus",
    [("slurm", {"gpu": 40, "short": 40, "scavenge": 40}), ("oar", {"GPUs": 2})],
    indirect=["place"],
)
def test_free_gpus_are_counted(place: Place, gpus: dict[str, int]) -> None:
    backend = find_backend(place.backend)
    argv = backend.capacity()
    assert argv is not None
    answer = asyncio.run(ProcessRunner({**os.environ, **place.environment}).run(argv))
    counted = {
        found.partition: (found.free, found.total) for found in backend.parse_capacity(answer)
    }
    assert counted == {name: (number, number) for name, number in gpus.items()}


@pytest.mark.parametrize("place", ["slurm", "sge"], indirect=True)
def test_an_ordinary_user_s_jobs_run_as_that_user(place: Place) -> None:
    with ordinary_user(place.environment) as user:
        # Grid Engine hands no variables on.
        path = f"environment: {{variables: {{PYTHONPATH: '{user.environment['PYTHONPATH']}'}}}}\n"
        backend = f"title: Small\nbackend: {place.backend}\nnetwork: {{interface: lo}}\n"
        user.write_profile("small", f"{backend}{path}job: {place.words.job}\n")
        user.run("start", "small", "--name", "ours", "--workers", "2", "--wait", "90")
        assert len(place.queue()) == 2
        owners = user.owners()
        assert set(owners) == {NOBODY}
        assert len(owners) >= 3, "a head and two workers"
        logs = list(user.home.glob("data/gpucluster/clusters/*/logs/*"))
        assert {log.owner() for log in logs} == {NOBODY}
        user.run("stop", "ours", "--wait", "90")
        assert place.queue() == []


@pytest.mark.parametrize(
    "place,line,cause",
    [
        ("pbs", "spack load cuda || exit 1", "The node has no such command"),
        ("pbs", "export PYTHONHOME=/nowhere", "PYTHONHOME or PYTHONPATH leads"),
        ("slurm", "spack load cuda || exit 1", "The node has no such command"),
    ],
    indirect=["place"],
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


IN_JOB = "head: {placement: job, submit: relay}\n"
GROUPS = """
workers: {resources: {CARD: 1}}
groups: {io: {count: 1, workers: {resources: {IO: 4}}}}
"""


@pytest.mark.parametrize("place", ["pbs"], indirect=True)
def test_a_head_in_a_job_grows_and_shrinks_through_the_relay(
    home: Path, place: Place, here: Clusters
) -> None:
    job = place.words.job.replace("500", "900")
    life = Life(here, write_profile(home, place.backend, f"{job}\n{IN_JOB}"), 1)
    life.until(lambda v: v.reason.startswith(place.words.waits))
    [own] = place.queue()
    place.open()
    view = here.wait_ready(life.id, timeout=SECONDS)
    with connect(view.name) as client:
        life.scale(2)
        assert len(place.queue()) == 2
        kept = client.scatter(list(range(30)))
        life.scale(1)
        life.until(lambda _: place.queue() == [own])
        assert client.gather(kept) == list(range(30))
    here.stop(life.id)
    assert here.wait_stopped(life.id, timeout=SECONDS).phase is Phase.STOPPED
    assert place.queue() == []


@pytest.mark.parametrize("place", ["lsf"], indirect=True)
def test_two_kinds_of_workers_get_their_tasks(home: Path, place: Place, here: Clusters) -> None:
    place.open()
    life = Life(here, write_profile(home, place.backend, place.words.job + GROUPS), 1)
    life.until(lambda v: v.workers.ready == 1 and "1 of 1 io workers" in v.words)
    assert len(place.queue()) == 2
    groups = {f"{job.mark}_{job.task}": job.group for job in here.jobs(life.id)}
    with connect(here.get(life.id).name) as client:
        for resource, group in (("CARD", ""), ("IO", "io")):
            ran = client.submit(where, resources={resource: 1}, pure=False).result()
            assert groups[ran] == group
    here.stop(life.id)
    assert here.wait_stopped(life.id, timeout=SECONDS).phase is Phase.STOPPED
    assert place.queue() == []


def where() -> str:
    return str(get_worker().name)
