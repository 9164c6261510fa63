"""The wanted number of workers, the choice of those to leave, and a retreat without loss."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from distributed import Scheduler
from distributed.deploy.adaptive_core import AdaptiveCore
from distributed.scheduler import WorkerState

from ..core.cluster import Target

KEY = re.compile(r"gpc-[a-z0-9]+-\d+_\d+")
"""A job's key; behind it stand ``-i`` where dask-cuda has several GPUs, ``.ri`` after a requeue."""


def job_of(worker_name: str) -> str:
    """Return the job that a worker belongs to, or its own name where it is not one of ours."""
    match = KEY.match(worker_name)
    return match.group() if match else worker_name


class Adaptation(AdaptiveCore):
    """Dask's own adaptive logic, in jobs; it only says what it wants."""

    def __init__(self, scheduler: Scheduler, target: Target, per_job: int = 1) -> None:
        super().__init__(
            minimum=-(-target.minimum // per_job), maximum=max(1, target.maximum // per_job)
        )
        self.scheduler = scheduler
        self.per_job = per_job
        self.desired = self.minimum
        self.volunteers: tuple[str, ...] = ()
        self.alive: frozenset[str] = frozenset()

    @property
    def plan(self) -> set[str]:  # type: ignore[override]  # the base class says WorkerState, any token will do
        """The jobs that should exist."""
        return set(self.alive)

    @property
    def requested(self) -> set[str]:  # type: ignore[override]  # as above
        """The jobs that were asked for."""
        return set(self.alive)

    @property
    def observed(self) -> set[str]:  # type: ignore[override]  # as above
        """The jobs of which a worker is connected."""
        return {job_of(str(ws.name)) for ws in self.scheduler.workers.values()}

    async def target(self) -> int:
        """Ask the scheduler how many workers its work is worth."""
        return -(-int(self.scheduler.adaptive_target()) // self.per_job)

    async def workers_to_close(self, target: int) -> list[str]:
        """Name the jobs that hold least."""
        return leaving_order(self.scheduler, (len(self.alive) - target) * self.per_job)

    async def scale_up(self, n: int) -> None:  # type: ignore[override]  # the base class has the two signatures swapped
        """Want ``n`` jobs."""
        self.desired = n

    async def scale_down(self, workers: Iterable[str]) -> None:  # type: ignore[override]  # as above
        """Want these jobs to go."""
        self.volunteers = tuple(workers)
        self.desired = max(self.minimum, len(self.alive) - len(self.volunteers))

    async def recommend(self, alive: Iterable[str]) -> None:
        """Look at the work and settle `desired` and `volunteers`."""
        self.alive = frozenset(alive)
        self.desired = min(max(self.desired, self.minimum), int(self.maximum))
        await self.adapt()


def leaving_order(scheduler: Scheduler, count: int) -> list[str]:
    """Return jobs in the order in which they had best leave, for ``count`` workers less.

    The scheduler's own choice (idle first, least data first) comes before the rest: it gives no
    worker away that is the only one to hold something it cannot move.
    """
    if count <= 0 or not scheduler.workers:
        return []
    key = _job_of_state
    names = scheduler.workers_to_close(
        n=min(count, len(scheduler.workers)), key=key, attribute="name"
    )
    rest = sorted(
        scheduler.workers.values(), key=lambda ws: (len(ws.processing), ws.nbytes, str(ws.name))
    )
    ordered = [job_of(str(name)) for name in names] + [key(ws) for ws in rest]
    return list(dict.fromkeys(ordered))


def _job_of_state(ws: WorkerState) -> str:
    return job_of(str(ws.name))


class Retirement:
    """Retires the workers of jobs, and knows which jobs have handed everything over."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.begun: set[str] = set()
        self.retired: set[str] = set()
        self.running: set[asyncio.Task[None]] = set()

    def start(self, keys: Iterable[str], done: asyncio.Event) -> None:
        """Begin to retire jobs, each once; sets the event each time that one is ready to go."""
        for key in sorted(set(keys) - self.begun):
            self.begun.add(key)
            task = asyncio.create_task(self.retire(key, done))
            self.running.add(task)
            task.add_done_callback(self.running.discard)

    async def retire(self, key: str, done: asyncio.Event) -> None:
        """Retire all workers of one job by address: names would silently do nothing.

        ``retire_workers`` moves what is in memory but does not wait for running tasks, so it is
        asked again when they are done.  A worker that cannot hand its data over (no other has
        room) comes back unretired and is asked again too: data is worth more than a worker.
        """
        while workers := self.workers_of(key):
            left = await self.scheduler.retire_workers(
                workers=[ws.address for ws in workers],
                close_workers=False,
                remove=False,
                stimulus_id=f"gpucluster-scale-{key}",
            )
            if all(ws.address in left and not ws.processing for ws in workers):
                break
            await asyncio.sleep(1.0)
            while any(ws.processing for ws in self.workers_of(key)):  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.2)
        self.retired.add(key)
        done.set()

    def workers_of(self, key: str) -> list[WorkerState]:
        """Return the connected workers of a job."""
        return [ws for ws in self.scheduler.workers.values() if job_of(str(ws.name)) == key]
