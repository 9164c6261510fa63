"""Clusters of an ordinary user on a real OAR: a life with all that can happen to jobs."""

from __future__ import annotations

import asyncio
import os

import pytest

from jupyter_gpucluster.backends.oar import Oar
from jupyter_gpucluster.records import Job, JobState, Phase
from jupyter_gpucluster.submission import ProcessRunner

from .life import (
    Life,
    grow_and_shrink_through_the_relay,
    live_and_end_clean,
    worker_of,
    write_profile,
)
from .oar_site import CORES, GPUS, OarSite
from .ordinary_user import Person
from .places import RealPlace
from .refusing import refusal

pytestmark = pytest.mark.parametrize("place", ["oar"], indirect=True)

BRIEF = (
    '{cpus: 1, memory: 500 MiB, walltime: "00:00:30", queue: besteffort,'
    ' directives: ["-t besteffort"]}'
)
NOT_AGAIN = "policy: {at_walltime: stop, drain_before: null}\n"


def test_a_cluster_lives_and_ends_clean(place: RealPlace, oar: OarSite, somebody: Person) -> None:
    def suffer(life: Life) -> None:
        brief = Life(somebody, write_profile(somebody, place, BRIEF, NOT_AGAIN), 2)
        brief.ready(2)
        before = brief.living()
        with oar.better_job(CORES - 4):
            give_way(brief, before)
            lose_a_worker_and_a_node(life, oar, somebody)
            run_out_of_time(brief, before)
        life.ready(3)
        assert somebody.owners() == {somebody.name}
        end_as_far_as_asked(brief)

    live_and_end_clean(place, somebody, suffer)


def give_way(brief: Life, before: list[Job]) -> None:
    """See one of two jobs end for the sake of a better one; what follows it waits."""
    brief.until(lambda v: any(brief.now(job).ended for job in before))
    [lost] = [job for job in map(brief.now, before) if job.ended]
    assert lost.state is JobState.PREEMPTED
    assert lost.cause == "A job that is not besteffort took its place."
    brief.until(lambda v: v.workers.pending == 1)


def run_out_of_time(brief: Life, before: list[Job]) -> None:
    """See the other one reach its walltime."""
    brief.until(lambda v: all(brief.now(job).ended for job in before))
    [late] = [job for job in map(brief.now, before) if job.state is not JobState.PREEMPTED]
    assert late.state is JobState.TIMEOUT
    assert "It reached its walltime" in late.cause


def end_as_far_as_asked(brief: Life) -> None:
    """See that what was lost was replaced, and what had its time was not."""
    view = brief.until(lambda v: v.workers.ready == 1)
    assert view.phase is Phase.RUNNING
    assert "1 gone at the walltime and not replaced" in view.words
    brief.stop()


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


@pytest.mark.parametrize(
    "directive,said,cure",
    [
        ("-l /nodes=1/core=99", "There are not enough resources", "lower job.gpus"),
        ("-l /nodes=1/nosuch=1", "Bad resource request", "the site has none of that name"),
        ("-p nosuch=1", "Bad resource request", "the site has none of that name"),
        ("-t nosuch", "unknown job type", "directive -t"),
        ("-q admin", "admin queue", "Choose another job.queue"),
        ("--nosuchoption", "Not able to scan file line", "job.directives"),
    ],
)
def test_a_refusal_tells_the_words_and_the_cure(
    directive: str, said: str, cure: str, place: RealPlace
) -> None:
    text = f"#!/bin/bash\n#OAR {directive}\nsleep 60\n"
    error = refusal(place, text)
    assert said in error.message
    assert cure in error.hint


def test_free_gpus_are_counted(place: RealPlace) -> None:
    runner = ProcessRunner({**os.environ, **place.environment})
    [found] = Oar().parse_capacity(asyncio.run(runner.run(Oar().capacity() or [])))
    assert (found.partition, found.free, found.total) == ("GPUs", GPUS, GPUS)
