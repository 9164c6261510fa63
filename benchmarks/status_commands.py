"""Status commands a minute that the clusters of a user send to a batch system.

Heads look for listings as in a cluster, with a stand-in for the status command and a simulated
clock, so that half an hour of 200 clusters takes seconds.  No process is started.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import selectors
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

CLUSTERS = (1, 20, 200)
USERS = 500
TURN = 10.0
SITES = {
    "slurm, all workers connected": ("slurm", 0.1, True, 0.0, 120.0),
    "slurm, jobs wait": ("slurm", 0.1, True, 0.0, 30.0),
    "slurm, jobs wait, answers in 6 s": ("slurm", 6.0, True, 0.0, 30.0),
    "slurm, jobs wait, never answers": ("slurm", 60.0, False, 0.0, 30.0),
    "slurm, each cluster cancels a job every 60 s": ("slurm", 0.1, True, 60.0, 30.0),
    "pbs (by job ids), jobs wait": ("pbs", 0.1, True, 0.0, 30.0),
}
"""Dialect, seconds of an answer, whether it comes, seconds between a cluster's changes, period."""


class Skipping(selectors.DefaultSelector):
    """Lets the clock jump to the next event in place of waiting for it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += (timeout or 0.0) + 1e-6  # no wait ends at the very moment it is for
        return super().select(0)


def simulate(work: Callable[[Skipping], Coroutine[Any, Any, Any]]) -> Any:
    """Run work on a loop of its own whose clock jumps; threads' work is done at once."""

    async def at_once(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    clock = Skipping()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now  # type: ignore[method-assign]  # what a jump is for
    try:
        with mock.patch.object(asyncio, "to_thread", at_once):
            return loop.run_until_complete(work(clock))
    finally:
        loop.close()


class StandIn:
    """Answers status commands as a site would, and counts all commands."""

    def __init__(self, seconds: float, answers: bool) -> None:
        self.seconds = seconds
        self.answers = answers
        self.listings = self.changes = 0

    async def run(self, argv: Sequence[str], stdin: str = "") -> Any:
        from jupyter_gpucluster.core.job import CommandResult

        if argv[0] in ("scancel", "qdel"):
            self.changes += 1
            return CommandResult(tuple(argv), 0, "")
        self.listings += 1
        await asyncio.sleep(self.seconds)
        text = '{"Jobs": {}}' if argv[0] == "qstat" else ""
        return CommandResult(tuple(argv), 0 if self.answers else None, text)


async def half_an_hour(
    site: tuple[str, float, bool, float, float], clusters: int, minutes: int, clock: Skipping
) -> tuple[float, float]:
    """Return listings and changes a minute."""
    from jupyter_gpucluster.batch import find_backend, status_cache
    from jupyter_gpucluster.batch.queue import Queue

    # Its name in older versions, which --package measures.
    cache = getattr(status_cache, "StatusCache", None) or status_cache.SharedQueue  # type: ignore[attr-defined]
    name, seconds, answers, change, period = site
    backend, runner = find_backend(name), StandIn(seconds, answers)

    async def head(number: int, root: Path) -> None:
        queue = Queue(backend, runner, cache(root, backend, "ann", f"b{number:05}"))
        await asyncio.sleep(TURN * number / clusters)
        changed = clock.now
        while True:
            poll = await queue.look([f"{number}.a"], period)
            if change and clock.now - changed >= change:
                await queue.cancel([f"{number}.a"])
                changed = clock.now
            await asyncio.sleep(min(TURN, poll.again or TURN))

    with (
        tempfile.TemporaryDirectory(prefix="gpc-bench-") as root,
        mock.patch.object(status_cache, "boot_time", asyncio.get_running_loop().time),
    ):
        heads = [asyncio.create_task(head(number, Path(root))) for number in range(clusters)]
        await asyncio.sleep(60.0 * minutes)
        for task in heads:
            task.cancel()
        await asyncio.gather(*heads, return_exceptions=True)
    return runner.listings / minutes, runner.changes / minutes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--package", help="a checkout of another version, to compare with")
    given = parser.parse_args()
    sys.path.insert(0, given.package or str(Path(__file__).resolve().parents[1]))
    heading = "listings (+ changes) a minute, by clusters"
    print(f"{heading:<46}", *(f"{count:>13}" for count in CLUSTERS))
    for title, site in SITES.items():
        row = []
        for count in CLUSTERS:
            work = functools.partial(half_an_hour, site, count, given.minutes)
            listings, changes = simulate(work)
            row.append(f"{listings:.1f}" + (f" (+{changes:.1f})" if changes else ""))
        print(f"{title:<46}", *(f"{cell:>13}" for cell in row))
    for title in list(SITES)[:2]:
        listings, _ = simulate(functools.partial(half_an_hour, SITES[title], 1, given.minutes))
        print(f"{USERS} users with a cluster each, {title}: {USERS * listings / 60:.1f} commands/s")


if __name__ == "__main__":
    main()
