"""Faults of a batch system, each on four systems: no job twice, none left, and true words.

Cells that a system cannot have are left out, by `QUEUES`, `PROVES` and `ENDS`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import Phase

from . import faults
from .world import PROVES, SYSTEMS, Fault, World

TEN_MINUTES = 20
"""Turns of 30 s."""

QUEUES = [name for name in SYSTEMS if name != "kubernetes"]
"""Systems that suspend and requeue jobs, and give ids out again; a pod's id is its name, ours."""


@pytest.fixture(params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def world(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Return a cluster of two workers; at the end of each cell it stops and leaves nothing."""
    world = World(system, tmp_path, monkeypatch)
    yield world
    world.faults.clear()
    world.site.deaf = False
    world.stop()
    asyncio.run(world.steps(TEN_MINUTES))
    assert world.record.phase in (Phase.STOPPED, Phase.FAILED)
    assert world.living() == []


def play(world: World, turns: int = 1) -> None:
    asyncio.run(world.steps(turns))


def settle(world: World) -> None:
    """End the fault; the cluster reaches its target with as many jobs as it wants."""
    world.faults.clear()
    play(world, 2 * TEN_MINUTES)
    assert world.record.phase is Phase.RUNNING, (world.words, world.events)
    assert len(world.living()) == len(world.alive()) == 2, (world.words, world.events)


LOST = {
    "answer lost": faults.answer_lost,
    "no answer": faults.no_answer,
    "garbage": faults.garbage,
    "down": faults.down,
    "several ids": faults.several_ids,
}


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
def test_a_submission_without_a_usable_answer_is_found_or_repeated(
    world: World, fault: Fault
) -> None:
    world.faults["submit"] = fault
    play(world)
    settle(world)


@pytest.mark.parametrize("fault", [faults.no_answer, faults.down])
def test_a_system_that_is_down_for_ten_minutes_gets_one_submission(
    world: World, fault: Fault
) -> None:
    world.faults |= dict.fromkeys(("submit", "read", "cancel"), fault)
    play(world, TEN_MINUTES)
    assert world.card.stale_since is not None
    settle(world)


def test_a_refusal_is_the_end_of_a_cluster_without_jobs_and_shown(world: World) -> None:
    world.faults["submit"] = faults.denied
    play(world, 3)
    assert world.record.phase is Phase.FAILED
    assert "permission denied" in world.words


def test_submissions_that_never_succeed_end_the_cluster_and_leave_nothing(world: World) -> None:
    world.faults["submit"] = faults.no_answer
    play(world, 2 * TEN_MINUTES)
    assert world.record.phase is Phase.FAILED
    assert "Its submission was not answered, and it never appeared." in world.words


READS = {
    "no answer": faults.no_answer,
    "down": faults.down,
    "denied": faults.denied,
    "garbage": faults.garbage,
    "swapped": faults.swapped,
    "empty": faults.empty,
    "partial": faults.partial,
    "every second one empty": faults.flapping(faults.empty),
    "every second one without answer": faults.flapping(faults.no_answer),
}

FALSE = [
    (system, name)
    for system in SYSTEMS
    for name in READS
    if system not in PROVES or name not in ("empty", "partial")
]
UNREADABLE = (faults.no_answer, faults.down, faults.denied, faults.garbage, faults.swapped)


@pytest.mark.parametrize("fault", READS.values(), ids=READS)
def test_no_false_listing_ends_jobs_whose_workers_are_connected(world: World, fault: Fault) -> None:
    play(world, 4)
    jobs = world.keys()
    assert world.record.phase is Phase.RUNNING
    world.faults["read"] = fault
    play(world, TEN_MINUTES)
    assert world.keys() == jobs
    assert world.record.phase is Phase.RUNNING, world.words
    assert fault not in UNREADABLE or world.card.stale_since is not None
    settle(world)
    assert world.keys() == jobs


@pytest.mark.parametrize("system, name", FALSE, indirect=["system"])
def test_no_false_listing_doubles_jobs_that_wait(world: World, name: str) -> None:
    fault = READS[name]
    world.site.slots = 0
    play(world, 3)
    world.faults["read"] = fault
    play(world, TEN_MINUTES)
    world.site.slots = 100
    settle(world)


@pytest.mark.parametrize("fault", READS.values(), ids=READS)
def test_a_stop_under_false_listings_leaves_no_job(world: World, fault: Fault) -> None:
    play(world, 4)
    world.faults["read"] = fault
    world.stop()
    play(world, 3 * TEN_MINUTES)
    assert world.living() == []


CANCELS = {
    "no answer": faults.no_answer,
    "answer lost": faults.answer_lost,
    "down": faults.down,
    "denied": faults.denied,
    "garbage": faults.garbage,
    "fails once": faults.once(faults.denied),
}


@pytest.mark.parametrize("fault", CANCELS.values(), ids=CANCELS)
def test_a_stop_goes_on_until_its_cancel_has_an_effect(world: World, fault: Fault) -> None:
    play(world, 4)
    world.faults["cancel"] = fault
    world.stop()
    play(world, 6 * TEN_MINUTES)
    if world.living():
        assert world.record.phase is Phase.STOPPING
        assert world.words.startswith("stopping: 2 jobs still ending")
        assert any("was asked 4 times to end job" in event for event in world.events)


def test_a_cancel_that_is_accepted_without_effect_is_reported(world: World) -> None:
    play(world, 4)
    world.site.deaf = True
    world.stop()
    play(world, 6 * TEN_MINUTES)
    assert len(world.living()) == 2
    assert world.record.phase is Phase.STOPPING
    # A pod is listed as terminating, so that request had an effect.
    reported = any("was asked 4 times to end job" in event for event in world.events)
    assert reported != (world.backend.name == "kubernetes")


def test_a_stop_of_jobs_that_are_gone_already_ends(world: World) -> None:
    play(world, 4)
    world.site.jobs.clear()
    world.stop()
    play(world, 10)
    assert world.record.phase is Phase.STOPPED
    assert world.record.unaccounted is None


def test_a_job_that_vanished_from_listing_and_history_is_replaced(world: World) -> None:
    play(world, 4)
    del world.site.jobs[0]
    play(world, TEN_MINUTES)
    settle(world)


@pytest.mark.parametrize("system", QUEUES, indirect=True)
@pytest.mark.parametrize("stops", [False, True])
def test_a_job_of_another_user_with_a_used_id_is_left_alone(world: World, stops: bool) -> None:
    play(world, 4)
    other = world.site.jobs[0]
    other.name = "train"
    if stops:
        world.stop()
    play(world, TEN_MINUTES)
    assert other.state == "running"
    if not stops:
        settle(world)
        assert other.state == "running"


def test_jobs_that_end_at_once_are_replaced_within_the_budget(world: World) -> None:
    world.dying = True
    play(world, 2 * TEN_MINUTES)
    assert world.record.phase is Phase.FAILED
    assert "workers failed within 10 minutes: It ended with exit code 1." in world.words
    assert len(world.site.jobs) <= 2 + world.record.spec.policy.replacements


def test_jobs_without_workers_are_starting_and_stay(world: World) -> None:
    world.mute = True
    play(world, TEN_MINUTES)
    assert world.record.phase is Phase.STARTING
    jobs = world.keys()
    world.mute = False
    settle(world)
    assert world.keys() == jobs


@pytest.mark.parametrize("system", QUEUES, indirect=True)
def test_a_suspended_job_counts_as_waiting_and_continues(world: World) -> None:
    play(world, 4)
    world.site.jobs[0].state = "suspended"
    play(world, 2)
    assert world.words.startswith("1 of 2 workers ready, 1 waiting")
    world.site.jobs[0].state = "running"
    settle(world)
    assert len(world.site.jobs) == 2


@pytest.mark.parametrize("system", QUEUES, indirect=True)
def test_a_requeued_job_waits_again_and_is_not_replaced(world: World) -> None:
    play(world, 4)
    job, world.site.slots = world.site.jobs[0], 1
    job.state, job.started, job.restarts = "waiting", 0.0, 1
    play(world, 2)
    assert world.words.startswith("1 of 2 workers ready, 1 waiting")
    world.site.slots = 100
    settle(world)
    assert len(world.site.jobs) == 2


ENDS = {
    "walltime": ("slurm", "pbs", "torque", "kubernetes"),
    "memory": ("slurm", "pbs", "torque", "kubernetes"),
    "node": ("slurm", "kubernetes"),
    "preemption": ("slurm",),
    "eviction": ("kubernetes",),
}
"""The systems whose answers name that end."""
CAUSES = {
    "walltime": "walltime",
    "memory": "memory",
    "node": "[Nn]ode",
    "preemption": "higher priority",
    "eviction": "node",
}


@pytest.mark.parametrize(
    "system, by",
    [(system, by) for by, systems in ENDS.items() for system in systems],
    indirect=["system"],
)
def test_a_job_that_its_system_ends_is_replaced_and_the_cause_named(world: World, by: str) -> None:
    play(world, 4)
    lost = world.site.jobs[0]
    key = world.key(lost)
    world.site.end([lost], by=by)
    play(world, 2)
    [job] = [job for job in world.record.jobs if job.key == key]
    assert re.search(CAUSES[by], job.cause), job
    settle(world)
