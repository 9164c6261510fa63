"""Cost of an idle cluster of two workers: memory and processor time of its head.

Three times in a row, since a page costs for a while: before the first page of the dashboard, right
after a page that no browser came back for (Bokeh keeps drawing it for 10 s), and when that is over.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import urllib.request
from pathlib import Path

from measuring import cli, own_place, verdict

SECONDS = 20.0
PAGE_SECONDS = 20.0
"""By then Bokeh has let go of a page without a browser: 10 s, and up to 2 s until it looks."""
MIB = 1 << 20


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process's threads; in nanoseconds, `stat` has hundredths."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def shares(pids: dict[str, int], seconds: float) -> dict[str, float]:
    """Return how much of a core each process takes in the next seconds, in percent."""
    used = {name: cpu_seconds(pid) for name, pid in pids.items()}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return {name: 100 * (cpu_seconds(pid) - used[name]) / took for name, pid in pids.items()}


def main() -> None:
    from jupyter_gpucluster.clusters import Clusters
    from jupyter_gpucluster.core.cluster import TOKEN_HEADER
    from jupyter_gpucluster.host.cluster_directory import ClusterDirectory

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each idle window")
    seconds = parser.parse_args().seconds
    with own_place():
        _, view = cli("start", "local", "--workers", "2", "--wait", "--json")
        record = ClusterDirectory(Path(view["directory"])).read_record()
        assert record.head is not None
        head = record.head.pid
        [server] = children(head)
        pids = {"head": head, "job server": server}
        pids |= {f"worker {n}": pid for n, pid in enumerate(children(server), 1)}
        time.sleep(2)
        before, small = shares(pids, seconds), resident(head)
        endpoint = Clusters().endpoint(view["id"])
        page = urllib.request.Request(
            f"http://{endpoint.host}:{endpoint.port}/status",
            headers={TOKEN_HEADER: endpoint.token},
        )
        with urllib.request.urlopen(page) as answer:  # noqa: S310  # the head's own page
            assert answer.status == 200
        time.sleep(2)
        drawing = shares(pids, PAGE_SECONDS)
        after = shares(pids, seconds)
        sizes = {name: resident(pid) for name, pid in pids.items()}
    print(f"head before its first page: {small:.0f} MiB")
    print("% of a core         idle  after a page  later")
    for name in pids:
        print(
            f"{name:<12} {before[name]:10.2f} {drawing[name]:13.2f} {after[name]:6.2f}"
            f"   {sizes[name]:6.1f} MiB"
        )
    met = [
        verdict("head after one dashboard page", sizes["head"], 120, "MiB"),
        verdict("idle head", max(before["head"], after["head"]), 2.5, "% of a core"),
        verdict("head, 20 s from a page on", drawing["head"], 2.5, "% of a core"),
    ]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
