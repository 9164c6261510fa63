"""The wanted number of workers, the choice of those to leave, and a retreat without loss."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable

from distributed import Scheduler
from distributed.scheduler import WorkerState

from ..core.cluster import Target

KEY = re.compile(r"gpc-[a-z0-9]+-\d+_\d+")
"""A job's key; behind it stand ``-i`` where dask-cuda has several GPUs, ``.ri`` after a requeue."""

LOOKS = 3
"""So many looks in a row must find too many jobs before some of them leave."""


def job_of(worker_name: str) -> str:
    """Return the job that a worker belongs to, or its own name where it is not one of ours."""
    match = KEY.match(worker_name)
    return match.group() if match else worker_name


class Adaptation:
    """The number of jobs that the scheduler's work is worth; less than there are only for long."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.looks = 0
        """The number of looks in a row that found too many jobs."""

    def jobs_wanted(self, target: Target, per_job: int, alive: int) -> int:
        """Return how many jobs are wanted now, within a target's bounds.

        Dask's own `Adaptive` waits as long: a pause between two tasks is no reason to go.
        """
        worth = -(-int(self.scheduler.adaptive_target()) // per_job)
        most = max(1, target.maximum // per_job)
        wanted = min(max(worth, -(-target.minimum // per_job)), most)
        self.looks = self.looks + 1 if wanted < alive else 0
        return min(alive, most) if 0 < self.looks < LOOKS else wanted


def leaving_order(scheduler: Scheduler, count: int) -> list[str]:
    """Return jobs in the order in which they had best leave, for ``count`` workers less.

    The scheduler's own choice (idle first, least data first) comes before the rest: it gives no
    worker away that is the only one to hold something it cannot move.
    """
    if count <= 0 or not scheduler.workers:
        return []
    workers = scheduler.workers.values()
    names = scheduler.workers_to_close(
        n=min(count, len(workers)), key=lambda ws: job_of(str(ws.name)), attribute="name"
    )
    rest = sorted(workers, key=lambda ws: (len(ws.processing), ws.nbytes, str(ws.name)))
    return list(dict.fromkeys(job_of(str(name)) for name in (*names, *(ws.name for ws in rest))))


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
