"""Blocking of the server's loop while clusters start and no scheduler command answers.

Twenty real heads start, whose `sbatch` and `squeue` hang.  Once the server is asked for them, by a
page that polls; once, for comparison, another process starts them beside the same server.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import statistics
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from measuring import own_place, verdict
from serving import Server, at_fixed_times

CLUSTERS = 20
SECONDS = 20.0
EVERY_SECONDS = 0.025
POLL_SECONDS = 1.0
COMMANDS = ("sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol")
PROFILE = """
title: A scheduler that never answers
backend: slurm
job: {nodes: 1, cpus: 1, memory: 1 GiB, walltime: "00:10:00"}
limits: {clusters: 100, workers: 4}
"""
ELSEWHERE = """
import asyncio, sys
from jupyter_gpucluster.server.async_clusters import AsyncClusters

async def start(number):
    clusters = AsyncClusters()
    starts = (clusters.start("hanging", name=f"elsewhere-{i}") for i in range(number))
    await asyncio.gather(*starts)

asyncio.run(start(int(sys.argv[1])))
"""

Begin = Callable[[Server], Awaitable[None]]


def make_site(place: Path) -> None:
    """Put commands that hang on the path, and a profile that uses them."""
    commands = place / "bin"
    commands.mkdir()
    for name in COMMANDS:
        (commands / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (commands / name).chmod(0o755)
    os.environ["PATH"] = f"{commands}{os.pathsep}{os.environ['PATH']}"
    profiles = place / "gpucluster" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "hanging.yaml").write_text(PROFILE)


async def through_the_server(server: Server) -> None:
    """Start the clusters as pages do, and go on polling."""

    async def start(number: int) -> None:
        body = json.dumps({"profile": "hanging", "name": f"here-{number}"})
        await server.request("gpucluster/api/clusters", "POST", body)

    await asyncio.gather(*map(start, range(CLUSTERS)))
    while True:
        await server.get("gpucluster/api/clusters")
        await asyncio.sleep(POLL_SECONDS)


async def elsewhere(server: Server) -> None:
    """Start the clusters without the server."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ELSEWHERE, str(CLUSTERS), env=dict(os.environ)
    )
    await process.wait()


async def measure(begin: Begin, place: Path) -> tuple[list[float], dict[str, dict[str, object]]]:
    """Return seconds of requests at fixed times, and what blocked the loop for longest."""
    async with Server("loop_probe") as server:
        for path in ("gpucluster/api/clusters", "gpucluster/api/profiles", "loop-probe"):
            await server.get(path)  # what is only done once is no stall of a start
        load = asyncio.ensure_future(begin(server))
        took = await at_fixed_times(
            server, "api/status", round(SECONDS / EVERY_SECONDS), EVERY_SECONDS
        )
        blocked = json.loads((await server.get("loop-probe")).body)
        load.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await load
        server.client.close()
    end_heads(place)
    return took, blocked


def end_heads(place: Path) -> None:
    """Kill what runs in this folder; their scheduler would let nobody stop in time."""
    mark = os.fsencode(f"JUPYTER_DATA_DIR={place}")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(process.name) != os.getpid() and mark in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
    # Whoever looked at them would ask their scheduler what they left.
    shutil.rmtree(place / "gpucluster" / "clusters", ignore_errors=True)


def tell(
    title: str, took: list[float], blocked: dict[str, dict[str, object]]
) -> tuple[float, float]:
    """Print one round; return the 95th percentile and the longest block in milliseconds."""
    cuts = statistics.quantiles(took, n=20)
    p95, longest = 1000 * cuts[-1], 1000 * float(str(blocked["wall"]["seconds"]))
    middle, most = 1000 * cuts[9], 1000 * max(took)
    print(title)
    print(f"  GET api/status: median {middle:.1f} ms, p95 {p95:.1f}, most {most:.1f}")
    for kind, found in blocked.items():
        milliseconds = 1000 * float(str(found["seconds"]))
        print(f"  longest block ({kind}): {milliseconds:.1f} ms, {found['what']}", flush=True)
    return p95, longest


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with own_place() as place:
        make_site(place)
        beside = tell("clusters started elsewhere", *asyncio.run(measure(elsewhere, place)))
        ours = tell("through the server", *asyncio.run(measure(through_the_server, place)))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{CLUSTERS} heads, every scheduler command hangs; load of the machine {load}")
    met = [
        verdict("longest block of the loop", ours[1], 50, "ms"),
        verdict("p95 of requests, beside the same load alone", ours[0] / beside[0], 1.25, "times"),
    ]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
