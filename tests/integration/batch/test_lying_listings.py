"""Commands that exit with code 0 and are wrong: listings that lack jobs, cancels that end none.

No job is submitted twice, and none is left behind.
"""

from __future__ import annotations

import time

import pytest

from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.head.submissions import TRIES

from .life import Life, write_profile
from .ordinary_user import Person
from .places import SimulatedPlace

ONLY = "{cpus: 1, memory: 500 MiB, walltime: '00:10:00'}"
SECONDS = 20.0
"""Duration of the false listings here; five minutes were tried by hand."""


def lie(place: SimulatedPlace, life: Life, left_out: str) -> None:
    """Let listings leave jobs out for a while, in which none ends and none is added."""
    before = place.queue()
    with place.lies(left_out):
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            assert place.queue() == before
            time.sleep(0.5)
    life.until(lambda _: {job.missing for job in life.living()} == {0})
    assert place.queue() == before
    assert len(life.living()) == len(before)


@pytest.mark.parametrize("place", ["pbs"], indirect=True)
@pytest.mark.parametrize("left_out", ["others", "all"])
def test_jobs_that_wait_are_neither_forgotten_nor_submitted_twice(
    left_out: str, place: SimulatedPlace, somebody: Person
) -> None:
    place.close()
    life = Life(somebody, write_profile(somebody, place, ONLY), 2)
    life.until(lambda v: v.workers.pending == 2 and v.reason.startswith(place.words.waits))
    somebody.clusters.update(life.id, target=Target(4, 4))
    life.until(lambda _: len(place.queue()) == 4)
    lie(place, life, left_out)
    assert somebody.clusters.get(life.id).phase is Phase.PENDING
    life.stop()
    assert place.queue() == []


@pytest.mark.parametrize("place", ["pbs"], indirect=True)
def test_a_cluster_that_stops_under_lying_listings_leaves_nothing_behind(
    place: SimulatedPlace, somebody: Person
) -> None:
    place.close()  # jobs that never ran leave no exit file
    life = Life(somebody, write_profile(somebody, place, ONLY), 2)
    life.until(lambda v: v.workers.pending == 2 and len(place.queue()) == 2)
    with place.lies("all"):
        somebody.clusters.stop(life.id)
        life.until(lambda v: v.phase is Phase.STOPPING)
        time.sleep(5)
        assert somebody.clusters.get(life.id).phase is Phase.STOPPING
    assert somebody.clusters.wait_stopped(life.id, timeout=60).phase is Phase.STOPPED
    assert place.queue() == []


@pytest.mark.parametrize("place", ["pbs"], indirect=True)
def test_a_job_that_stays_although_it_is_cancelled_is_reported(
    place: SimulatedPlace, somebody: Person
) -> None:
    place.close()
    life = Life(somebody, write_profile(somebody, place, ONLY), 1)
    life.until(lambda _: [job for job in life.living() if job.id])
    [job] = life.living()
    with place.deafness():
        somebody.clusters.stop(life.id)
        report = f"PBS was asked {TRIES} times to end job {job.id}, and still lists it."
        life.until(lambda _: any(report in e.message for e in somebody.clusters.events(life.id)))
        assert report in somebody.clusters.why(life.id)
    assert somebody.clusters.wait_stopped(life.id, timeout=60).phase is Phase.STOPPED
