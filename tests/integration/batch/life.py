"""One life of a cluster on any batch system: wait, run, scale, die, fall silent, stop."""

from __future__ import annotations

import time
from collections.abc import Callable

from jupyter_gpucluster.core.cluster import ENDED, Phase, Target
from jupyter_gpucluster.core.job import FINAL, Job, JobState
from jupyter_gpucluster.state.view import ClusterView

from .ordinary_user import Person
from .places import RealPlace, SimulatedPlace

SECONDS = 90.0
Place = RealPlace | SimulatedPlace


class Life:
    """A cluster, and how to wait for what becomes of it."""

    def __init__(self, person: Person, profile: str, workers: int) -> None:
        self.clusters = person.clusters
        self.id = self.clusters.start(profile, target=Target(workers, workers)).id

    def until(
        self, reached: Callable[[ClusterView], object], *, may_end: bool = False
    ) -> ClusterView:
        """Wait until something is so; by default the cluster may not end meanwhile."""
        deadline = time.monotonic() + SECONDS
        while not reached(view := self.clusters.get(self.id)):
            told = f"{view.phase.value}: {view.words}; {view.reason}"
            assert may_end or view.phase not in ENDED, told
            assert time.monotonic() < deadline, told
            time.sleep(0.1)
        return view

    def ended(self) -> ClusterView:
        """Wait until the cluster has ended."""
        return self.until(lambda view: view.phase in ENDED, may_end=True)

    def ready(self, workers: int) -> ClusterView:
        """Wait until that many workers are there, and no more are wanted."""
        return self.until(lambda view: view.workers.ready == view.workers.asked == workers)

    def scale(self, workers: int) -> ClusterView:
        self.clusters.update(self.id, target=Target(workers, workers))
        return self.ready(workers)

    def marks(self) -> set[str]:
        return {job.mark for job in self.clusters.jobs(self.id)}

    def living(self) -> list[Job]:
        """Return the jobs that have not ended, oldest first."""
        return [job for job in self.clusters.jobs(self.id) if job.ended is None]

    def now(self, job: Job) -> Job:
        """Return what is known of a job now."""
        return next(each for each in self.clusters.jobs(self.id) if each.id == job.id)

    def lost(self, job: Job) -> Job:
        """Wait until a job has ended, and return what is told of it."""
        self.until(lambda _: self.now(job).ended, may_end=True)
        return self.now(job)

    def stop(self) -> None:
        """Stop the cluster and wait for the end of its last job."""
        self.clusters.stop(self.id)
        assert self.clusters.wait_stopped(self.id, timeout=SECONDS).phase is Phase.STOPPED


def worker_of(job: Job) -> str:
    """Return the name of a job's worker."""
    return job.key


def write_profile(person: Person, place: Place, job: str, more: str = "") -> str:
    """Write a profile with this ``job`` section and return its name."""
    name = f"on-{place.backend}-{len(job + more)}"
    head = f"title: {name}\nbackend: {place.backend}\nnetwork: {{interface: lo}}\n"
    return person.write_profile(name, f"{head}job: {job}\n{more}")


def live_and_end_clean(
    place: Place, person: Person, suffer: Callable[[Life], None] = lambda life: None
) -> None:
    """Lead a cluster through its life.

    Parameters
    ----------
    suffer
        What else the system does to a cluster of three workers, which mends itself.
    """
    words, here, work = place.words, person.clusters, person.work
    refused = Life(person, write_profile(person, place, words.refused), 2)
    place.close()
    life = Life(person, write_profile(person, place, words.job), 2)

    told = refused.ended()
    assert told.phase is Phase.FAILED
    for part in (words.said, words.command, f"exit code {words.code}", words.fix):
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
    view = life.ready(2)
    work.begin(view.name)
    assert work.computes()
    place.kill(waiting[0])
    life.scale(3)
    assert waiting[0] not in place.queue()
    assert len(place.queue()) == 3
    suffer(life)
    work.hold()
    life.scale(1)
    life.until(lambda _: len(place.queue()) == 1)
    assert work.still_holds()
    work.end()
    lost = [job for job in here.jobs(life.id) if job.ended and job.retiring_since is None]
    assert {job.state in FINAL | {JobState.UNKNOWN} for job in lost} == {True}

    life.stop()
    assert place.queue() == []


def grow_and_shrink_through_the_relay(place: Place, person: Person) -> Life:
    """Have the head run in a job, from where a relay submits and cancels for it."""
    place.close()
    job, head = place.words.job.replace("500", "900"), "head: {placement: job, submit: relay}\n"
    life = Life(person, write_profile(person, place, job, head), 1)
    life.until(lambda v: v.reason.startswith(place.words.waits))
    [own] = place.queue()
    place.open()
    person.work.begin(life.ready(1).name)
    life.scale(2)
    assert len(place.queue()) == 2
    person.work.hold()
    life.scale(1)
    life.until(lambda _: place.queue() == [own])
    assert person.work.still_holds()
    person.work.end()
    life.stop()
    assert place.queue() == []
    return life
