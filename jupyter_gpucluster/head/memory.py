"""Keep the memory limits of a local cluster's workers within what this machine has.

A worker without a nanny takes another limit while it runs.  When the cluster grows, the running
workers take the lower limit first, and write to disk what is then too much; only then do others
start.  When workers have ended, the limits of the others rise.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import dask
from distributed import Scheduler

from ..batch.local import limit_command, parse_limit
from ..core.cluster import Record, Spec
from ..core.errors import BackendError
from ..host.memory_shares import amount, share_of
from .adaptive import job_of
from .reconcile.groups import own_part
from .reconcile.model import jobs_wanted, without_successor
from .worker import TAKE_LIMIT

if TYPE_CHECKING:
    from ..batch.queue import Queue

TERMINATE = "distributed.worker.memory.terminate"
AGAIN_SECONDS = 0.1
ANSWER_SECONDS = 5.0
"""A task that holds the GIL keeps its worker from answering."""
TELL_SECONDS = 3.0
"""Workers that start, or write to disk, take about as long."""


def ending_bytes(limit: int | None) -> int | None:
    """Return the bytes at which a worker without a nanny is ended, as a nanny would."""
    fraction = dask.config.get(TERMINATE)
    return int(limit * fraction) if limit and fraction else None


@dataclass
class MemoryShares:
    """Limits of the cluster's own workers; those of groups run under nannies and stay.

    Parameters
    ----------
    record_of
        Returns the record as it is now.
    wake
        Set when more workers may start, or when the reason why they may not has changed.
    """

    scheduler: Scheduler
    queue: Queue
    record_of: Callable[[], Record]
    wake: asyncio.Event
    room: int = 0
    """The number of workers for which the limits of all that run leave memory."""
    wanted: int = 0
    held: str = ""
    """Why no more workers start, in a sentence."""
    waiting: set[str] = field(default_factory=set)
    """Marks of submissions that wait for room."""
    unsure: set[str] = field(default_factory=set)
    """Workers that did not answer, and may take the limit that was sent to them later."""
    numbers: Iterator[int] = field(default_factory=itertools.count)
    task: asyncio.Task[None] | None = None

    def admit(self, desired: int) -> int:
        """Return how many of the desired workers may exist now, and make room for the others."""
        record = own_part(self.record_of())
        if share_of(record.spec, 1) is None:
            return desired
        each = record.spec.worker.per_job
        there, stay = self.there(record), len(without_successor(record))
        missing = max(0, jobs_wanted(record, desired) - stay)
        self.wanted = (len(there) + missing) * each
        if not there:  # no limit is to be lowered first
            self.room = self.wanted
        self.follow()
        if self.wanted <= self.room or record.stop_requested is not None:
            self.held = ""
            return desired
        may = stay + max(0, self.room // each - len(there))
        # Not 0, with which results are given up.
        return min(desired, max(1, may * each))

    def there(self, record: Record) -> set[str]:
        """Return the jobs that hold memory, or will; a connection may outlive its job a moment."""
        connected = self.connected()
        return {job.key for job in record.jobs if not job.is_over or job.key in connected}

    def connected(self) -> set[str]:
        """Return the jobs with connected workers."""
        return {job_of(str(state.name)) for state in self.scheduler.workers.values()}

    def limit_of(self, spec: Spec) -> int | None:
        """Return the limit of a worker that starts now."""
        record = own_part(self.record_of())
        alive = len(self.there(record)) * spec.worker.per_job
        share = share_of(spec, max(self.room, self.wanted, alive))
        return spec.worker.memory_limit if share is None else share

    async def make_room(self, mark: str) -> None:
        """Wait until a submission on record has room; one that replaces another waits seconds."""
        record = own_part(self.record_of())
        if share_of(record.spec, 1) is None:
            return
        self.wanted = max(self.wanted, len(self.there(record)) * record.spec.worker.per_job)
        self.waiting.add(mark)
        self.follow()
        if self.room < self.wanted and self.task is not None:
            await asyncio.wait({self.task}, timeout=2 * ANSWER_SECONDS)
        self.waiting.discard(mark)

    def follow(self) -> None:
        """Begin to change limits that are not as they should be."""
        if (self.task is None or self.task.done()) and self.unsettled():
            self.task = asyncio.create_task(self.settle())

    def unsettled(self) -> bool:
        """Return whether the limits differ from the share of the workers that are wanted."""
        share = share_of(self.record_of().spec, self.wanted)
        return self.room != self.wanted or any(limit != share for limit in self.own().values())

    def own(self) -> dict[str, int]:
        """Return the limits of the connected workers that take others."""
        jobs = {job.key for job in own_part(self.record_of()).jobs}
        workers = self.scheduler.workers.items()
        return {at: ws.memory_limit for at, ws in workers if job_of(str(ws.name)) in jobs}

    async def settle(self) -> None:
        """Change limits until all are the share of the workers that are wanted."""
        began = time.monotonic()
        while self.unsettled() and self.record_of().stop_requested is None:
            wanted = self.wanted
            share = share_of(self.record_of().spec, wanted)
            if share is None:
                return
            if wanted > self.room:
                why = await self.lower(share)
                if not why:
                    self.room, self.held = wanted, ""
                    self.wake.set()
                    continue
                if time.monotonic() - began > TELL_SECONDS and why != self.held:
                    self.held = why
                    self.wake.set()
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                # First of all, so that no worker is admitted into the room that is given away.
                self.room = wanted
                await self.end_above(ending_bytes(share))
                if not await self.tell(share):
                    await asyncio.sleep(AGAIN_SECONDS)

    async def lower(self, share: int) -> str:
        """Let all workers that run take a lower limit; return which of them has not yet, or ''."""
        record = own_part(self.record_of())
        connected = self.connected()
        for job in record.jobs:
            # Its command has the higher limit, which it can be told to leave once it is connected.
            starting = not job.is_over and not job.connected and job.mark not in self.waiting
            if starting and job.key not in connected:
                return f"More workers start when {job.key} has started."
        high = [at for at, limit in self.own().items() if limit > share or at in self.unsure]
        if high and not await self.tell(share, high):
            left = [at for at in self.own() if at in self.unsure]
            names = [str(self.scheduler.workers[at].name) for at in left]
            if names:
                return f"More workers start when {names[0]} answers and takes less memory."
        most = ending_bytes(share)
        above = await self.end_above(most)
        if most is not None and above:
            return f"More workers start when {above[0]} uses less than {amount(most)} of memory."
        return ""

    async def tell(self, share: int, addresses: Sequence[str] | None = None) -> bool:
        """Let workers take a limit; return whether all did."""
        chosen = self.own() if addresses is None else addresses
        return all(await asyncio.gather(*(self.tell_one(each, share) for each in chosen)))

    async def tell_one(self, address: str, share: int) -> bool:
        try:
            number = next(self.numbers)
            call = getattr(self.scheduler.rpc(address), TAKE_LIMIT)(limit=share, number=number)
            await asyncio.wait_for(call, ANSWER_SECONDS)
            self.unsure.discard(address)
        except (OSError, TimeoutError, RuntimeError):  # a worker that ends, or is busy
            self.unsure.add(address)
            return address not in self.scheduler.workers
        state = self.scheduler.workers.get(address)
        if state is not None:
            self.scheduler.total_memory += share - state.memory_limit
            state.memory_limit = share
        return True

    async def end_above(self, most: int | None) -> Sequence[str]:
        """Let the job server end workers above these bytes; return those that are above them."""
        record = own_part(self.record_of())
        ids = [job.id for job in record.jobs if job.id and not job.is_over]
        if most is not None and ids:
            with contextlib.suppress(BackendError):  # jobs end with a job server that has gone
                return parse_limit(await self.queue.change(limit_command(ids, most)))
        return ()
