"""350 records, 50 of them live, and 40 pages that poll: blocks of the server's loop, and answers.

The heads are doubles: records on disk whose head is this very process, which answers for all of
them and changes some all the time.  Beside the polls, every other route is asked in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import itertools
import json
import os
import secrets
import statistics
import sys
import time
from pathlib import Path

from measuring import own_place, show, verdict
from serving import Server, at_fixed_times, resident
from tornado import httpserver, netutil, web

from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target
from jupyter_gpucluster.core.job import Job, JobShape, JobState
from jupyter_gpucluster.core.serialize import to_json
from jupyter_gpucluster.core.summary import Summary, WorkerCounts
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.private_files import make_private
from jupyter_gpucluster.host.processes import this_process

LIVE, ENDED, PAGES = 50, 300, 40
WORKERS = 20
POLL_SECONDS = 2.0
"""Between two polls of a visible page."""
CHANGES_A_SECOND = 10
LIST = "gpucluster/api/clusters"
ROUTES = ("", "/jobs", "/logs", "/events", "/scripts", "/why", "/client-code")
"""Of one cluster."""
OTHERS = ("gpucluster/api/profiles", "gpucluster/api/environments", "gpucluster/api/health")


def make_cluster(root: Path, number: int, address: str) -> tuple[Record, Summary]:
    """Put a cluster on disk; the head of a live one is this process."""
    live = number < LIVE
    directory = ClusterDirectory(root / f"b{number:05}")
    directory.create()
    now = time.time()
    phase, state = (Phase.RUNNING, JobState.RUNNING) if live else (Phase.STOPPED, JobState.DONE)
    job = Job(f"gpc-{directory.id}-1", 0, state, nodes=("node0001",), started=now, connected=True)
    record = Record(
        id=directory.id,
        name=f"cluster-{number}",
        spec=Spec("double", "A double", "slurm", sys.executable, job=JobShape(gpus=1)),
        phase=phase,
        phase_since=now,
        created=now,
        target=Target(WORKERS, WORKERS),
        jobs=tuple(
            dataclasses.replace(job, task=task, id=f"{number}_{task}", ended=None if live else now)
            for task in range(WORKERS)
        ),
        head=this_process() if live else None,
        scheduler_address="tls://127.0.0.1:1",
        http_address=address if live else "",
        revision=1,
    )
    counts = WorkerCounts(asked=WORKERS, ready=WORKERS if live else 0)
    words = f"{counts.ready} of {WORKERS} GPUs ready"
    summary = Summary(record.id, record.name, "double", phase, now, "", words, 1, now, counts)
    directory.write_record(record)
    directory.write_summary(summary)
    (directory.path / "token").write_text(secrets.token_hex())
    return record, summary


class Doubles:
    """The clusters, and the HTTP side of their heads."""

    def __init__(self, root: Path, address: str) -> None:
        make_private(root.parent)
        make_private(root)
        self.root = root
        every = [make_cluster(root, number, address) for number in range(LIVE + ENDED)]
        self.live = every[:LIVE]
        tokens = [(root / record.id / "token").read_text() for record, _ in self.live]
        self.numbers = {token: number for number, token in enumerate(tokens)}

    async def change(self) -> None:
        """Change one cluster after the other, as a head writes it; all renew their leases."""
        for number in itertools.cycle(range(LIVE)):
            record, summary = self.live[number]
            revision = record.revision + 1
            record = dataclasses.replace(record, revision=revision)
            summary = dataclasses.replace(summary, revision=revision, written=time.time())
            self.live[number] = record, summary
            directory = ClusterDirectory(self.root / record.id)
            await asyncio.to_thread(directory.write_record, record)
            await asyncio.to_thread(directory.write_summary, summary)
            await asyncio.to_thread(directory.renew_lease)
            await asyncio.sleep(1 / CHANGES_A_SECOND)


class Head(web.RequestHandler):
    """Answers with the summary of the cluster whose token the request has."""

    doubles: Doubles

    def get(self) -> None:
        number = self.doubles.numbers[self.request.headers["X-Gpucluster-Token"]]
        _ = self.finish({"summary": to_json(self.doubles.live[number][1])})


async def browse(server: Server, seconds: float) -> list[float]:
    """Ask for every other route in turn, of one cluster after the other."""
    took: list[float] = []
    end = time.monotonic() + seconds
    paths = (f"{LIST}/b{number:05}{path}" for number in itertools.count() for path in ROUTES)
    for path in itertools.chain.from_iterable(zip(paths, itertools.cycle(OTHERS))):
        if time.monotonic() > end:
            return took
        began = time.perf_counter()
        await server.get(path)
        took.append(time.perf_counter() - began)
        await asyncio.sleep(0.1)
    raise AssertionError


async def measure(root: Path, seconds: float) -> tuple[dict[str, list[float]], float, float]:
    """Return seconds of each kind of request, the longest block, and MiB for a cluster."""
    heads = httpserver.HTTPServer(
        web.Application([("/gpucluster/summary", Head)], log_function=lambda _: None)
    )
    [socket] = netutil.bind_sockets(0, "127.0.0.1")
    heads.add_sockets([socket])
    async with Server("loop_probe") as server:
        await server.get(LIST)
        before = resident(server.pid)
        Head.doubles = doubles = await asyncio.to_thread(
            Doubles, root, f"127.0.0.1:{socket.getsockname()[1]}"
        )
        changes = asyncio.create_task(doubles.change())
        found = json.loads((await server.get(LIST)).body)["clusters"]
        assert sum(cluster["workers"]["ready"] for cluster in found) == LIVE * WORKERS
        for path in OTHERS:
            await server.get(path)  # what is only done once is no block of a page
        await server.get("loop-probe")
        every, count = POLL_SECONDS / PAGES, round(seconds * PAGES / POLL_SECONDS)
        polls, floor, others = await asyncio.gather(
            at_fixed_times(server, LIST, count, every),
            at_fixed_times(server, "api/status", round(seconds), 1.0),
            browse(server, seconds),
        )
        blocked = json.loads((await server.get("loop-probe")).body)
        changes.cancel()
        grown = resident(server.pid) - before
    heads.stop()
    for kind, what in blocked.items():
        print(f"longest block ({kind}): {1000 * what['seconds']:.1f} ms, {what['what']}")
    took = {"GET clusters": polls, "other routes": others, "GET api/status, the floor": floor}
    return took, float(blocked["processor"]["seconds"]), grown / (LIVE + ENDED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with own_place() as place:
        root = place / "gpucluster" / "clusters"
        took, block, memory = asyncio.run(measure(root, seconds))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{LIVE} live clusters, {ENDED} ended, {PAGES} pages; load of the machine {load}")
    p99 = {}
    for kind, samples in took.items():
        show(kind, samples)
        p99[kind] = 1000 * statistics.quantiles(samples, n=100)[-1]
    floor = p99.pop("GET api/status, the floor")
    met = [verdict("longest block of the loop, processor", 1000 * block, 50, "ms")]
    for kind, value in p99.items():
        met.append(verdict(f"{kind}, p99", value, 100, "ms"))
        print(f"  {value / floor:.1f} times the floor's p99 of {floor:.0f} ms")
    met.append(verdict("server memory for each record", memory, 2, "MiB"))
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
