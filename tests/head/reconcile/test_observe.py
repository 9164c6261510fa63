"""Observations of the head about work in a real scheduler."""

from __future__ import annotations

import asyncio
from pathlib import Path

import dask
import pytest
from distributed import Client, Scheduler, Worker

from jupyter_gpucluster.head.reconcile.observe import Watch


async def idle_times(logs: Path, *, work: bool) -> tuple[float | None, ...]:
    """Look at seconds 1, 2 and 3; between the last two a task may come and go."""
    async with (
        Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler,
        Worker(scheduler.address, host="127.0.0.1", dashboard_address="127.0.0.1:0"),
        Client(scheduler.address, asynchronous=True) as client,
    ):
        watch = Watch(scheduler, logs, asyncio.Event())
        scheduler.add_plugin(watch)
        seen = []
        for now in (1.0, 2.0, 3.0, 4.0):
            if work and now == 3.0:
                kept = client.submit(len, "four", pure=False)  # to be forgotten is work, too
                assert await kept == 4
                assert watch.progress() == {"tasks": 1, "tasks_done": 1, "busy": 0.0}
            watch.look(now, waiting=False)
            seen.append(watch.idle_since)
        assert watch.used == (3.0 if work else None)
        return tuple(seen)


@pytest.mark.parametrize("work", [False, True])
def test_work_between_two_looks_sets_the_idle_clock_back(tmp_path: Path, work: bool) -> None:
    first, second, third, last = asyncio.run(idle_times(tmp_path, work=work))
    assert first == second is not None
    assert (third, last) == ((None, 4.0) if work else (first, first))


@pytest.mark.parametrize("timeout, ends", [(600.0, 4600.0), (7200.0, 8200.0), (None, None)])
def test_a_kept_cluster_has_another_hour_at_least_and_counts_as_used(
    tmp_path: Path, timeout: float | None, ends: float | None
) -> None:
    async def kept() -> Watch:
        async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as dask:
            watch = Watch(dask, tmp_path, asyncio.Event())
            watch.look(10.0, waiting=False)
            watch.look(500.0, waiting=False)
            watch.keep(1000.0, timeout)
            watch.look(1100.0, waiting=False)
            return watch

    watch = asyncio.run(kept())
    assert watch.used == 1000.0
    assert watch.idle_since is not None
    assert ends in (None, watch.idle_since + (timeout or 0))


async def ended_in_peace(logs: Path, lifetime: str | None, *, holds: bool) -> set[str]:
    """Return the jobs whose end is no death, after a worker has ended that was alone."""
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        watch = Watch(scheduler, logs, asyncio.Event())
        scheduler.add_plugin(watch)
        with dask.config.set({"distributed.worker.lifetime.duration": lifetime}):
            worker = await Worker(
                scheduler.address,
                name="gpc-7f3a2b-1_0",
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
        if holds:
            async with Client(scheduler.address, asynchronous=True) as client:
                kept = await client.scatter(b"results")
                await worker.finished()
                del kept
        if not lifetime:
            await worker.close()
        await worker.finished()
        return watch.restarted


@pytest.mark.parametrize(
    "lifetime, holds, excused",
    [
        ("100 ms", False, {"gpc-7f3a2b-1_0"}),
        # Nobody is there to take what it holds.
        ("1 s", True, {"gpc-7f3a2b-1_0"}),
        (None, False, set()),
    ],
)
def test_the_end_of_a_worker_by_its_own_lifetime_is_no_death(
    tmp_path: Path, lifetime: str | None, holds: bool, excused: set[str]
) -> None:
    assert asyncio.run(ended_in_peace(tmp_path, lifetime, holds=holds)) == excused


def test_the_death_of_a_worker_that_has_come_back_counts(tmp_path: Path) -> None:
    async def restarted() -> list[set[str]]:
        async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as dask:
            watch = Watch(dask, tmp_path, asyncio.Event())
            dask.add_plugin(watch)
            seen = []
            for _ in range(2):
                async with Worker(
                    dask.address,
                    name="gpc-7f3a2b-1_0",
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                ):
                    seen.append(set(watch.restarted))
                    watch.restart(dask)
                    seen.append(set(watch.restarted))
            return seen

    job = {"gpc-7f3a2b-1_0"}
    assert asyncio.run(restarted()) == [set(), job, set(), job]
