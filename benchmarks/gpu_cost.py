"""Cost of the readings of GPUs: the same sum for a minute with them and without, in turn."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from measuring import MOCKED, cli, mock_gpus, own_place, verdict


def switch(on: bool, dask_worker: Any) -> bool:
    """Begin or end a worker's readings; tell whether a thread reads."""
    reader = dask_worker.plugins["gpucluster-gpus"]
    reader.teardown(dask_worker)
    reader.thread.join(10)
    if on:
        reader.setup(dask_worker)
    return bool(reader.thread.is_alive())


def rate(client: Any, options: Any, seconds: float) -> float:
    """Return GB/s of runs that follow each other for so many seconds."""
    from jupyter_gpucluster.benchmark import run_benchmark

    began, done = time.perf_counter(), 0.0
    while (passed := time.perf_counter() - began) < seconds:
        done += run_benchmark(client, options).nbytes / 1e9
    return done / passed


def cost(name: str, rounds: int, seconds: float, *, mocked: bool) -> dict[str, list[float]]:
    """Measure in turn, beginning with the other way in every second round."""
    from jupyter_gpucluster import connect
    from jupyter_gpucluster.benchmark import Options
    from jupyter_gpucluster.benchmark.sending import carried

    size = {"shape": (4_000, 4_000)} if mocked else {"preset": "deepops"}
    options = Options(**size, mode="peak")
    found: dict[str, list[float]] = {"with": [], "without": []}
    with connect(name, set_as_default=False) as client:
        rate(client, options, seconds / 10)
        for number in range(rounds):
            for on in (True, False) if number % 2 == 0 else (False, True):
                reads = set(client.run(carried(switch), on).values())
                # A mocked GPU has no NVML, so its reader ends at once.
                assert mocked or reads == {on}, reads
                found["with" if on else "without"].append(rate(client, options, seconds))
    for way, samples in found.items():
        print(f"  {way + ' readings':<34} {' '.join(f'{s:.1f}' for s in samples)} GB/s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--mock", action="store_true", help="try the script without a GPU")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    path = os.environ.get("PYTHONPATH", "")
    with own_place() as place:
        os.environ["PYTHONPATH"] += os.pathsep + path
        if chosen.mock:
            mock_gpus(place, chosen.gpus)
        profile = MOCKED if chosen.mock else "local"
        _, view = cli("start", profile, "--gpus", str(chosen.gpus), "--wait", "--json")
        found = cost(view["name"], chosen.rounds, chosen.seconds, mocked=chosen.mock)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
    lost = 1 - statistics.median(found["with"]) / statistics.median(found["without"])
    sys.exit(not (verdict("part of the rate that readings cost", lost, 0.01, "") or chosen.mock))


if __name__ == "__main__":
    main()
