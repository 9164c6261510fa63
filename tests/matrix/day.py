"""A day of a cluster with random faults: of the batch system, of jobs, and by its user."""

from __future__ import annotations

import random
from dataclasses import replace

from jupyter_gpucluster.core.cluster import ENDED, Phase, Target

from . import faults
from .world import Fault, World

READS: tuple[Fault, ...] = (
    faults.no_answer,
    faults.down,
    faults.denied,
    faults.garbage,
    faults.swapped,
    faults.empty,
    faults.partial,
)
SUBMITS: tuple[Fault, ...] = (
    faults.answer_lost,
    faults.no_answer,
    faults.down,
    faults.garbage,
    faults.several_ids,
)
CANCELS: tuple[Fault, ...] = (faults.answer_lost, faults.no_answer, faults.down, faults.denied)
ENDS = ("walltime", "memory")
LONGEST = 40
"""Turns of the longest fault: twenty minutes."""
SETTLING = 100
"""Turns after the last fault within which a cluster reaches its target: the budget of replacements
is that of ten minutes, and a job without proof is asked about ever more seldom."""


async def disturb(world: World, dice: random.Random) -> None:
    """Do one random thing to a cluster, and let time pass."""
    kind = dice.choice(("submit", "read", "cancel", "job", "job", "scale", "nothing", "nothing"))
    chosen = {"submit": SUBMITS, "read": READS, "cancel": CANCELS}.get(kind)
    proves = world.backend.listing_proves
    if chosen is not None:
        fault = dice.choice(chosen)
        if proves and fault in (faults.empty, faults.partial):
            return  # such a listing of this system is true by its contract
        world.faults[kind] = dice.choice((fault, faults.once(fault), faults.flapping(fault)))
    elif kind == "scale":
        workers = dice.randint(1, 4)
        world.record = replace(world.record, target=Target(workers, workers))
    elif kind == "job" and (jobs := world.living()):
        harm(world, dice, dice.randrange(len(jobs)))
    world.mute = dice.random() < 0.05
    await world.steps(dice.randint(1, LONGEST))
    if dice.random() < 0.7:
        world.faults.clear()


def harm(world: World, dice: random.Random, number: int) -> None:
    """Let something happen to one job."""
    job = world.living()[number]
    pod = world.backend.name == "kubernetes"
    what = dice.choice(("exit", "end", "vanish", *(() if pod else ("suspend", "requeue"))))
    if what == "vanish":
        world.site.jobs.remove(job)
    elif what == "suspend" and job.state in ("running", "suspended"):
        job.state = "running" if job.state == "suspended" else "suspended"
    elif what == "requeue" and job.started:
        job.state, job.started, job.restarts = "waiting", 0.0, job.restarts + 1
    elif what == "end" and job.started:
        world.site.end([job], by=dice.choice(ENDS))
    elif what == "exit" and job.started:
        job.state, job.ended, job.code = "ended", world.now, dice.choice((0, 1))


async def live(world: World, seed: int, turns: int) -> None:
    """Live with faults for some turns; then, without faults, reach the target, stop, and end.

    Raises
    ------
    AssertionError
        A promise was broken; the message has the timeline.
    """
    dice = random.Random(seed)  # noqa: S311  # a seed's day can be lived again
    begun = world.now
    while (world.now - begun) / 30 < turns and world.record.phase not in ENDED:
        await disturb(world, dice)
    world.faults.clear()
    world.mute = False
    for job in world.living():
        if job.state == "suspended":
            job.state = "running"
    await world.steps(SETTLING)
    if world.record.phase not in ENDED:
        target = world.record.target.maximum
        assert world.record.phase is Phase.RUNNING, (world.words, world.events)
        assert len(world.living()) == target, (world.words, world.events)
    world.stop()
    await world.steps(SETTLING)
    assert world.record.phase in ENDED, (world.words, world.events)
    assert world.living() == [], (world.words, world.events)
