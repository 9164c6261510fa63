"""Our readings of GPUs, as `show --json` has them, beside those of nvidia-smi; idle and loaded."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from measuring import cli, own_place, verdict

FIELDS = ("utilization.gpu", "memory.used", "power.draw", "temperature.gpu")
SETTLED = 6.0
"""Seconds after which a load is steady, and both sides have seen it."""
NEAR = 0.05
LOADED_ROWS = 10_000_000
"""Of 500,000 numbers each, for each card: some 25 s at 1.4 TB/s and more."""


def smi() -> dict[str, dict[str, float]]:
    """Return what nvidia-smi reads of each card, in percent, bytes, watts and degrees."""
    query = ["nvidia-smi", f"--query-gpu=uuid,{','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    told = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    found = {}
    for line in told.splitlines():
        uuid, load, memory, power, heat = (word.strip() for word in line.split(","))
        found[uuid] = {
            "utilization": float(load),
            "memory_used": float(memory) * 2**20,
            "power": float(power),
            "temperature": float(heat),
        }
    return found


def compared(name: str, state: str, looks: int) -> list[dict[str, Any]]:
    """Read both sides some times, a second apart."""
    found = []
    for _ in range(looks):
        beside, now = smi(), time.time()
        _, view = cli("show", name, "--json")
        for reading in view["gpus"]:
            card = beside[reading["uuid"]]
            age = now - reading["time"]
            found.append({"state": state, "age": age, "ours": reading, "smi": card})
            words = [f"{key} {reading[key]:.4g} / {card[key]:.4g}" for key in card]
            print(f"  {state:<8} {', '.join(words)}; {age:.1f} s old", flush=True)
        time.sleep(1)
    return found


def furthest(found: list[dict[str, Any]]) -> dict[str, float]:
    """Return the largest difference for each reading, as part of the full scale."""

    def part(one: dict[str, Any], key: str) -> float:
        ours = one["ours"]
        scale = {"memory_used": ours["memory_total"], "power": ours["power_limit"]}.get(key, 100.0)
        return float(abs(ours[key] - one["smi"][key]) / scale)

    return {key: max(part(one, key) for one in found) for key in found[0]["smi"]}


def readings(gpus: int, looks: int) -> list[dict[str, Any]]:
    """Compare on idle cards, then while they compute, then after."""
    from jupyter_gpucluster import connect
    from jupyter_gpucluster.benchmark import Options, run_benchmark

    _, view = cli("start", "local", "--gpus", str(gpus), "--wait", "--json")
    name = view["name"]

    def load() -> None:
        # One run without a gap: a look between two would find neither load nor rest.
        shape = (LOADED_ROWS * gpus, 500_000)
        with connect(name, set_as_default=False) as client:
            run_benchmark(client, Options(shape=shape, mode="peak"))

    time.sleep(SETTLED)
    found = compared(name, "idle", looks)
    worker = threading.Thread(target=load)
    worker.start()
    time.sleep(2 * SETTLED)
    found += compared(name, "loaded", looks)
    assert worker.is_alive(), "the load ended before the last look"
    worker.join()
    time.sleep(2 * SETTLED)
    found += compared(name, "after", looks)
    cli("stop", name, "--wait")
    return found


def judged(found: list[dict[str, Any]]) -> bool:
    """Print how far the two sides are apart, and tell whether all is near enough."""
    apart = furthest(found).items()
    return all([verdict(f"{key}, of its full scale", far, NEAR, "") for key, far in apart])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--looks", type=int, default=4)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    path = os.environ.get("PYTHONPATH", "")
    with own_place():
        os.environ["PYTHONPATH"] += os.pathsep + path
        found = readings(chosen.gpus, chosen.looks)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
    sys.exit(not judged(found))


if __name__ == "__main__":
    main()
