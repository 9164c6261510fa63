"""What the head sees of work in a real scheduler."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from distributed import Client, Scheduler, Worker

from jupyter_gpucluster.head.observation import Watch


async def idle_times(logs: Path, *, work: bool) -> tuple[float | None, ...]:
    """Look at seconds 1, 2 and 3; between the last two a task may come and go."""
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Worker(scheduler.address, host="127.0.0.1", dashboard_address="127.0.0.1:0"),
        Client(scheduler.address, asynchronous=True) as client,
    ):
        watch = Watch(scheduler, logs, asyncio.Event())
        seen = []
        for now in (1.0, 2.0, 3.0, 4.0):
            if work and now == 3.0:
                kept = client.submit(len, "four", pure=False)  # to be forgotten is work, too
                assert await kept == 4
            watch.look(now, waiting=False)
            seen.append(watch.idle_since)
        return tuple(seen)


@pytest.mark.parametrize("work", [False, True])
def test_work_between_two_looks_sets_the_idle_clock_back(tmp_path: Path, work: bool) -> None:
    first, second, third, last = asyncio.run(idle_times(tmp_path, work=work))
    assert first == second is not None
    assert (third, last) == ((None, 4.0) if work else (first, first))
