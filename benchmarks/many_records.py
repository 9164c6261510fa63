"""``GET clusters`` with 500 live clusters of 20 workers each, and the server's memory for each.

The heads are doubles: records on disk whose head is this very process, which answers the server's
long requests and gives some of the clusters news all the time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import os
import secrets
import statistics
import sys
import time
from pathlib import Path

from measuring import own_place, show, verdict
from serving import Server, at_fixed_times, processor_seconds, resident
from tornado import httpserver, netutil, web
from tornado.iostream import StreamClosedError

from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target
from jupyter_gpucluster.core.job import Job, JobShape, JobState
from jupyter_gpucluster.core.summary import Summary, WorkerCounts
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.private_files import make_private
from jupyter_gpucluster.host.processes import this_process

CLUSTERS = 500
WORKERS = 20
CHANGES_A_SECOND = 20
EVERY_SECONDS = 0.5
"""Between two lists: as from twenty pages that poll every ten seconds."""


def an_id(number: int) -> str:
    return f"b{number:05}"


def make_cluster(root: Path, number: int, address: str) -> tuple[Record, Summary]:
    """Put a live cluster on disk whose head is this process."""
    directory = ClusterDirectory(root / an_id(number))
    directory.create()
    now = time.time()
    jobs = tuple(
        Job(
            mark=f"gpc-{directory.id}-1",
            task=task,
            state=JobState.RUNNING,
            id=f"{1000 * number + task}",
            nodes=(f"node{task:04}",),
            started=now,
            connected=True,
        )
        for task in range(WORKERS)
    )
    record = Record(
        id=directory.id,
        name=f"cluster-{number}",
        spec=Spec("double", "A double", "slurm", sys.executable, job=JobShape(gpus=1)),
        phase=Phase.RUNNING,
        phase_since=now,
        created=now,
        target=Target(WORKERS, WORKERS),
        jobs=jobs,
        head=this_process(),
        scheduler_address="tls://127.0.0.1:1",
        http_address=address,
        revision=1,
    )
    counts = WorkerCounts(asked=WORKERS, ready=WORKERS)
    words = f"{WORKERS} of {WORKERS} GPUs ready"
    summary = Summary(
        record.id, record.name, "double", Phase.RUNNING, now, "", words, 1, now, counts
    )
    directory.write_record(record)
    directory.write_summary(summary)
    (directory.path / "token").write_text(secrets.token_hex())
    return record, summary


class Doubles:
    """Five hundred clusters, and the HTTP side of their heads."""

    def __init__(self, root: Path, address: str) -> None:
        make_private(root.parent)
        make_private(root)
        self.root = root
        self.clusters = [make_cluster(root, number, address) for number in range(CLUSTERS)]

    async def change(self) -> None:
        """Give one cluster after the other news, as a head writes it."""
        number = 0
        while True:
            record, summary = self.clusters[number]
            record = dataclasses.replace(record, revision=record.revision + 1)
            summary = dataclasses.replace(summary, revision=record.revision)
            self.clusters[number] = record, summary
            directory = ClusterDirectory(self.root / record.id)
            await asyncio.to_thread(directory.write_record, record)
            await asyncio.to_thread(directory.write_summary, summary)
            number = (number + 1) % CLUSTERS
            await asyncio.sleep(1 / CHANGES_A_SECOND)


class Head(web.RequestHandler):
    """Has nothing to tell for as long as a head may."""

    async def get(self) -> None:
        await asyncio.sleep(float(self.get_query_argument("timeout")))
        with contextlib.suppress(StreamClosedError):  # the server has ended meanwhile
            await self.finish({"revision": int(self.get_query_argument("after"))})


async def measure(root: Path, lists: int) -> tuple[list[float], float, float]:
    """Return seconds of each list, the processor's for one, and MiB of memory for a cluster."""
    heads = httpserver.HTTPServer(
        web.Application([("/gpucluster/summary", Head)], log_function=lambda _: None)
    )
    [socket] = netutil.bind_sockets(0, "127.0.0.1")
    heads.add_sockets([socket])
    async with Server() as server:
        await server.get("gpucluster/api/clusters")
        before = resident(server.pid)
        doubles = await asyncio.to_thread(Doubles, root, f"127.0.0.1:{socket.getsockname()[1]}")
        found = json.loads((await server.get("gpucluster/api/clusters")).body)["clusters"]
        assert sum(cluster["workers"]["ready"] for cluster in found) == CLUSTERS * WORKERS
        changes = asyncio.create_task(doubles.change())
        busy = processor_seconds(server.pid)
        took = await at_fixed_times(server, "gpucluster/api/clusters", lists, EVERY_SECONDS)
        busy = processor_seconds(server.pid) - busy
        changes.cancel()
        grown = resident(server.pid) - before
    heads.stop()
    return took, busy / lists, grown / CLUSTERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=int, default=60)
    lists = parser.parse_args().lists
    with own_place() as place:
        took, busy, memory = asyncio.run(measure(place / "gpucluster" / "clusters", lists))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{CLUSTERS} live clusters, {CLUSTERS * WORKERS} workers; load of the machine {load}")
    show("GET clusters, at fixed times", took)
    print(f"processor time of the server for each, news included {1000 * busy:.0f} ms")
    p95 = statistics.quantiles(took, n=20)[-1]
    met = [
        verdict("GET clusters, p95", 1000 * p95, 100, "ms"),
        verdict("server memory for each live cluster", memory, 2, "MiB"),
    ]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
