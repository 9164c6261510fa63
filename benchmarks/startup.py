"""Time from a shell's prompt to two ready workers, in turn with a plain ``LocalCluster`` script."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from measuring import cli, own_place, show, verdict

LOCAL_CLUSTER = """
from distributed import Client, LocalCluster

if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1)
    client = Client(cluster)
    client.wait_for_workers(2)
    print("ready", flush=True)
    input()
    client.close()
    cluster.close()
"""
NANNIES = "title: With nannies\nbackend: local\nworkers: {extra_args: [--nanny]}\n"


def ours(profile: str) -> tuple[float, float]:
    """Start and stop a cluster of two workers; return both times."""
    started, view = cli("start", profile, "--workers", "2", "--wait", "--json")
    assert view["workers"]["ready"] == 2
    stopped, _ = cli("stop", view["name"], "--wait")
    return started, stopped


def local_cluster(script: Path) -> float:
    """Return how long a script takes from its start to two workers; ending it is not timed."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        took = time.perf_counter() - began
        process.communicate("\n")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    local: list[float] = []
    forked: list[float] = []
    nannies: list[float] = []
    stops: list[float] = []
    with own_place() as place:
        script = place / "local_cluster.py"
        script.write_text(LOCAL_CLUSTER)
        profiles = place / "gpucluster" / "profiles"
        profiles.mkdir(parents=True)
        (profiles / "nannies.yaml").write_text(NANNIES)
        for number in range(rounds + 1):  # the first only warms the disk's cache
            samples = local_cluster(script), ours("local"), ours("nannies")
            if number:
                local.append(samples[0])
                forked.append(samples[1][0])
                stops.append(samples[1][1])
                nannies.append(samples[2][0])
    print(f"{'':<44} {'least':>6} {'median':>6} {'most':>6}")
    base = show("LocalCluster script, imports included", local)
    shipped = show("start local --workers 2 --wait (as shipped)", forked)
    nanny = show("the same with `dask worker` and nannies", nannies)
    stop = show("stop --wait, idle", stops)
    met = [
        verdict("as shipped / LocalCluster", shipped / base, 0.9, "x"),
        verdict("with nannies / LocalCluster", nanny / base, 1.5, "x"),
        verdict("stop --wait", stop, 1.5, "s"),
    ]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
