"""Live simulated days with random faults, and print what they cost.

    python benchmarks/soak.py --clusters 200

Each cluster is one of `tests/matrix`: the product's dialect, queue and decisions against a batch
system in this process, with a clock of its own.  A broken promise ends the run, and names the seed
with which the same day can be lived again.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.matrix.day import live
from tests.matrix.world import PERIOD, SYSTEMS, World

DAY = 86400.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--hours", type=float, default=24.0)
    options = parser.parse_args()
    begun, early, late = time.monotonic(), 0, 0
    jobs = turns = 0
    for number in range(options.clusters):
        seed, system = options.first + number, list(SYSTEMS)[number % len(SYSTEMS)]
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as base:
            world = World(system, Path(base), patch)
            first = world.now
            try:
                asyncio.run(live(world, seed, int(options.hours * 3600 / PERIOD)))
            except AssertionError as error:
                sys.exit(f"{system}, seed {seed}: {error}")
            jobs += len(world.site.jobs)
            turns += int((world.now - first) / PERIOD)
        late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        early = late if number == options.clusters // 10 else early
    seconds = time.monotonic() - begun
    print(
        f"{options.clusters} clusters, {turns} turns of 30 s, {jobs} jobs still listed at the end"
    )
    print(f"{seconds:.0f} s, {1000 * seconds / turns:.2f} ms a turn; no promise broken")
    if early:
        print(f"memory from the first tenth to the end: {100 * (late / early - 1):+.1f} %")


if __name__ == "__main__":
    main()
