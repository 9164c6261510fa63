"""All-to-all between GPUs through TLS, plain TCP and UCX, in turn on the same cards."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from measuring import cli, own_place

PROTOCOLS = ("tls", "tcp", "ucx")


def shuffle(protocol: str, gpus: int, repeats: int, folder: Path) -> dict[str, Any]:
    """Start a cluster that talks so, and return the report of a shuffle on it."""
    _, view = cli("start", f"links-{protocol}", "--gpus", str(gpus), "--wait", "--json")
    file = folder / f"shuffle-{protocol}.json"
    argv = [sys.executable, "-m", "jupyter_gpucluster", "bench", "shuffle"]
    argv += ["--cluster", view["name"], "--json", str(file), "--repeats", str(repeats)]
    subprocess.run(argv, check=True)
    cli("stop", view["name"], "--wait")
    report: dict[str, Any] = json.loads(file.read_text())
    return report


def links(gpus: int, rounds: int, repeats: int, place: Path, folder: Path) -> None:
    """Measure each protocol some times in turn, and print its rates."""
    profiles = place / "gpucluster" / "profiles"
    profiles.mkdir(parents=True, exist_ok=True)
    for protocol in PROTOCOLS:
        text = f"title: {protocol}\nbackend: local\nnetwork: {{protocol: {protocol}}}\n"
        (profiles / f"links-{protocol}.yaml").write_text(text)
    rates: dict[str, list[float]] = {protocol: [] for protocol in PROTOCOLS}
    for _ in range(rounds):
        for protocol in PROTOCOLS:
            report = shuffle(protocol, gpus, repeats, folder)
            assert report["protocol"] == protocol, report["protocol"]
            rates[protocol].append(report["results"][0]["rate"])
    slowest = statistics.median(rates["tls"])
    for protocol, samples in rates.items():
        times = statistics.median(samples) / slowest
        shown = " ".join(f"{sample:.2f}" for sample in samples)
        print(f"shuffle over {protocol:<4} {shown} GB/s, {times:.2f} times that of tls")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="of a shuffle; the fastest counts")
    parser.add_argument("--results", type=Path, default=Path("gpu-results"))
    chosen = parser.parse_args()
    chosen.results.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("PYTHONPATH", "")
    with own_place() as place:
        os.environ["PYTHONPATH"] += os.pathsep + path
        links(chosen.gpus, chosen.rounds, chosen.repeats, place, chosen.results)


if __name__ == "__main__":
    main()
