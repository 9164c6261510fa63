"""All that is to be measured on a machine with GPUs, by one command, on 1, 2, 4 ... of them."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gpu_cost
import gpu_links
import gpu_readings
import gpu_sum
from measuring import MOCKED, cli, mock_gpus, own_place, verdict

EFFICIENCY = 0.95
"""Of so many GPUs against one: 3.8 times on four."""


def counts(gpus: int) -> list[int]:
    """Return 1, 2, 4 ... and all."""
    return [*(2**power for power in range(gpus.bit_length()) if 2**power < gpus), gpus]


def bench(name: str, folder: Path, title: str, *words: str) -> list[dict[str, Any]]:
    """Run the benchmark on a cluster that runs; print and keep its reports and plots."""
    file = folder / f"{title}.json"
    plots = folder / title
    argv = [sys.executable, "-m", "jupyter_gpucluster", "bench", *words]
    argv += ["--cluster", name, "--json", str(file), "--plots", str(plots)]
    subprocess.run(argv, check=True)
    reports: list[dict[str, Any]] = json.loads(file.read_text())["reports"]
    return reports


def measure(gpus: int, rounds: int, seconds: float, place: Path, folder: Path, mock: bool) -> bool:
    """Measure starts, scaling, all workloads and the readings' cost; tell whether all is met."""
    profile = MOCKED if mock else "local"
    met = []
    for count in counts(gpus):
        print(f"start of {count} GPUs", flush=True)
        found = gpu_sum.starts(count, rounds, place, profile=profile)
        (folder / f"start-{count}.json").write_text(json.dumps(found, indent=2) + "\n")
        theirs = statistics.median(found["start_local_cuda_cluster"])
        ratio = statistics.median(found["start_ours"]) / theirs
        met.append(verdict(f"start of {count} over LocalCUDACluster", ratio, 1.3, "times"))
    _, view = cli("start", profile, "--gpus", str(gpus), "--wait", "--json")
    name = view["name"]
    size = ["--shape", "4000"] if mock else ["--preset", "deepops"]
    for kind in ("strong", "weak"):
        words = ("sum", *size, "--mode", "peak", "--scaling", kind, "--repeats", "3")
        one, *_, most = [*bench(name, folder, kind, *words)] * (2 if gpus == 1 else 1)
        speed_up = most["results"][0]["rate"] / one["results"][0]["rate"]
        slow_down = gpus / speed_up
        met.append(verdict(f"{kind} scaling, loss on {gpus}", slow_down, 1 / EFFICIENCY, "times"))
    bench(name, folder, "check-up", "check-up")
    cost = gpu_cost.cost(name, rounds, seconds, mocked=mock)
    (folder / "cost.json").write_text(json.dumps(cost, indent=2) + "\n")
    lost = 1 - statistics.median(cost["with"]) / statistics.median(cost["without"])
    met.append(verdict("part of the rate that readings cost", lost, 0.01, ""))
    cli("stop", name, "--wait")
    if mock:
        print("skipped without GPUs: readings beside nvidia-smi, links by protocol")
        return all(met)
    readings = gpu_readings.readings(gpus, 4)
    (folder / "readings.json").write_text(json.dumps(readings, indent=2) + "\n")
    met.append(gpu_readings.judged(readings))
    if gpus > 1 and find_spec("distributed_ucxx"):
        gpu_links.links(gpus, 2, 3, place, folder)
    else:
        print("skipped: links by protocol need two GPUs and distributed-ucxx")
    return all(met)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, required=True, help="as many as the machine has")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="of a run with readings or not")
    parser.add_argument("--mock", action="store_true", help="try the script without a GPU")
    parser.add_argument("--results", type=Path, default=Path("gpu-results"))
    chosen = parser.parse_args()
    chosen.results.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = {"gpus": chosen.gpus, "mocked": chosen.mock}
    facts["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    facts["versions"] = {} if chosen.mock else gpu_sum.versions()
    (chosen.results / "machine.json").write_text(json.dumps(facts, indent=2) + "\n")
    path = os.environ.get("PYTHONPATH", "")
    with own_place() as place:
        os.environ["PYTHONPATH"] += os.pathsep + path
        if chosen.mock:
            mock_gpus(place, chosen.gpus)
        met = measure(
            chosen.gpus, chosen.rounds, chosen.seconds, place, chosen.results, chosen.mock
        )
    # Mocked GPUs meet no target, and need not.
    sys.exit(not (met or chosen.mock))


if __name__ == "__main__":
    main()
