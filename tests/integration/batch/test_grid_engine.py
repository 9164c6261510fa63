"""Clusters of an ordinary user on a real Grid Engine: a life with all that can happen to jobs."""

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
from .ordinary_user import Person
from .places import RealPlace
from .sge_site import ROOT, SgeSite

pytestmark = pytest.mark.parametrize("place", ["sge"], indirect=True)

# The limit holds for each process's addresses, and for what all of the job's use together.
BRIEF = '{memory: 1600 MiB, memory_request: h_vmem, walltime: "00:00:40", queue: all.q}'
ONCE = "policy: {replacements: 0, at_walltime: stop, drain_before: null}\n"
EATEN = 600_000_000


def test_a_cluster_lives_and_ends_clean(
    place: RealPlace, grid_engine: SgeSite, somebody: Person
) -> None:
    def suffer(life: Life) -> None:
        somebody.work.end()
        brief = Life(somebody, write_profile(somebody, place, BRIEF, ONCE), 2)
        second = run_out_of_memory(brief, somebody)
        somebody.work.begin(life.id)
        give_way_and_lose_a_worker(life, grid_engine, somebody)
        run_out_of_time(brief, second)
        lose_the_node(life, grid_engine)
        assert somebody.owners() == {somebody.name}

    # All users have this file, which is read like a user's own; else it hides all jobs.
    defaults = ROOT / "default/common/sge_qstat"
    defaults.write_text("-s z -q nosuch.q\n")
    try:
        live_and_end_clean(place, somebody, suffer)
    finally:
        defaults.unlink()


def test_the_doctor_tells_what_a_submission_would_come_to_and_submits_nothing(
    place: RealPlace, grid_engine: SgeSite, somebody: Person
) -> None:
    words = place.words
    for job, said in ((words.job, "found suitable queue"), (words.refused, words.said)):
        code, told = somebody.work.command("doctor", write_profile(somebody, place, job))
        assert (code, said in " ".join(told.split())) == (int(job == words.refused), True)
    assert place.queue() == []


def give_way_and_lose_a_worker(life: Life, site: SgeSite, somebody: Person) -> None:
    """Suspend all jobs for a better one, while one of them is killed in its sleep."""
    first, second, _ = life.living()
    somebody.work.kill(worker_of(second))
    lost = life.lost(second)
    assert lost.state is JobState.FAILED
    assert "killed by signal 9, as when memory runs out" in lost.cause
    with site.better_job():
        life.until(lambda v: life.now(first).state is JobState.SUSPENDED)
        view = life.until(lambda v: v.workers.ready == 0)
        assert view.reason.startswith("Suspended because its queue gives way to a busier one")
    life.ready(3)


def run_out_of_memory(brief: Life, somebody: Person) -> Job:
    """Let one of two jobs take more memory than it may; return the other one."""
    brief.ready(2)
    first, second = brief.living()
    somebody.work.begin(brief.id)
    somebody.work.eat(worker_of(first), EATEN)
    lost = brief.lost(first)
    somebody.work.end()
    assert lost.state is JobState.OUT_OF_MEMORY
    assert lost.cause.startswith("It used more memory than it may")
    return second


def run_out_of_time(brief: Life, second: Job) -> None:
    """See a cluster that replaces nothing end with its last job, and say why."""
    over = brief.ended()
    assert over.phase is Phase.FAILED
    assert "It used more memory than it may" in over.reason
    late = brief.now(second)
    assert late.state is JobState.TIMEOUT
    assert "It reached its walltime" in late.cause


def lose_the_node(life: Life, site: SgeSite) -> None:
    """Let the only node go down and come back: jobs run again where they may."""
    before = life.living()
    with site.node_down():
        life.until(lambda v: v.workers.ready == 0)
        assert {life.now(job).state for job in before} == {JobState.RUNNING}
        life.until(lambda v: "does not answer" in v.reason or "do not answer" in v.reason)
    life.ready(3)
    assert [job.id for job in life.living()] == [job.id for job in before]
    assert ".r" in life.clusters.logs(life.id)


def test_a_head_in_a_job_grows_and_shrinks_through_the_relay(
    place: RealPlace, somebody: Person
) -> None:
    life = grow_and_shrink_through_the_relay(place, somebody)
    states = {(job.state, bool(job.nodes)) for job in somebody.clusters.jobs(life.id)}
    assert states == {(JobState.CANCELLED, True)}
