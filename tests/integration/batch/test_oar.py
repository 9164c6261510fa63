"""Clusters of an ordinary user on a real OAR: a life with all that can happen to jobs."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.job import Job, JobState

from .life import (
    Life,
    grow_and_shrink_through_the_relay,
    live_and_end_clean,
    worker_of,
    write_profile,
)
from .oar_site import CORES, OarSite
from .ordinary_user import Person
from .places import RealPlace

pytestmark = pytest.mark.parametrize("place", ["oar"], indirect=True)

CHEAP = (
    '{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: besteffort,'
    ' directives: ["-t besteffort"]}'
)
BRIEF = '{cpus: 1, memory: 500 MiB, walltime: "00:00:30", queue: default}'
NOT_AGAIN = "policy: {at_walltime: stop, drain_before: null}\n"


def test_a_cluster_lives_and_ends_clean(place: RealPlace, oar: OarSite, somebody: Person) -> None:
    def suffer(life: Life) -> None:
        brief = Life(somebody, write_profile(somebody, place, BRIEF, NOT_AGAIN), 1)
        cheap = Life(somebody, write_profile(somebody, place, CHEAP), 1)
        brief.ready(1)
        [late] = brief.living()
        cheap.ready(1)
        with oar.better_job(CORES - len(place.queue()) + 1):
            give_way(cheap)
            lose_a_worker_and_a_node(life, oar, somebody)
            run_out_of_time(brief, late)
        life.ready(3)
        cheap.ready(1)
        assert somebody.owners() == {somebody.name}
        cheap.stop()

    live_and_end_clean(place, somebody, suffer)


def give_way(cheap: Life) -> None:
    """See a job end for the sake of a better one; what follows it waits."""
    [job] = cheap.living()
    lost = cheap.lost(job)
    assert lost.state is JobState.PREEMPTED
    assert lost.cause == "A job that is not besteffort took its place."
    cheap.until(lambda v: v.workers.pending == 1)


def run_out_of_time(brief: Life, late: Job) -> None:
    """See a cluster end with its only job, at the walltime."""
    over = brief.ended()
    assert over.phase is Phase.STOPPED
    assert over.reason == "All jobs reached their time limit, and `at_walltime` is `stop`."
    assert brief.now(late).state is JobState.TIMEOUT
    assert "It reached its walltime" in brief.now(late).cause


def lose_a_worker_and_a_node(life: Life, oar: OarSite, somebody: Person) -> None:
    """Kill one worker, and declare dead what another one runs on: both are to be replaced."""
    first, second, _ = life.living()
    somebody.work.kill(worker_of(first))
    with oar.node_down(second.id):
        lost = life.lost(second)
    assert lost.state is JobState.CANCELLED
    assert lost.cause == "It was ended by the site: its node may have failed."
    lost = life.lost(first)
    assert lost.state is JobState.FAILED
    assert "killed by signal 9, as when memory runs out" in lost.cause


def test_a_head_in_a_job_grows_and_shrinks_through_the_relay(
    place: RealPlace, somebody: Person
) -> None:
    life = grow_and_shrink_through_the_relay(place, somebody)
    states = {(job.state, bool(job.nodes)) for job in somebody.clusters.jobs(life.id)}
    assert states == {(JobState.CANCELLED, True)}
