"""What an idle cluster of two workers takes: memory and processor time of its head."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from pathlib import Path

from measuring import cli, own_place, verdict

SECONDS = 20.0
MIB = 1 << 20


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def main() -> None:
    from jupyter_gpucluster.clusters import Clusters
    from jupyter_gpucluster.records import TOKEN_HEADER
    from jupyter_gpucluster.store import ClusterDirectory

    with own_place():
        _, view = cli("start", "local", "--workers", "2", "--wait", "--json")
        record = ClusterDirectory(Path(view["directory"])).read_record()
        assert record.head is not None
        head = record.head.pid
        [server] = children(head)
        before = resident(head)
        endpoint = Clusters().endpoint(view["id"])
        page = urllib.request.Request(
            f"http://{endpoint.host}:{endpoint.port}/status",
            headers={TOKEN_HEADER: endpoint.token},
        )
        with urllib.request.urlopen(page) as answer:  # noqa: S310  # the head's own page
            assert answer.status == 200
        time.sleep(2)
        pids = {"head": head, "job server": server}
        pids |= {f"worker {n}": pid for n, pid in enumerate(children(server), 1)}
        used = {name: cpu_seconds(pid) for name, pid in pids.items()}
        time.sleep(SECONDS)
        shares = {name: (cpu_seconds(pid) - used[name]) / SECONDS for name, pid in pids.items()}
        sizes = {name: resident(pid) for name, pid in pids.items()}
    print(f"head before its first page: {before:.0f} MiB")
    for name in pids:
        print(f"{name:<12} {sizes[name]:6.1f} MiB {100 * shares[name]:5.2f} % of a core")
    met = [
        verdict("head after one dashboard page", sizes["head"], 120, "MiB"),
        verdict("idle head", 100 * shares["head"], 2.5, "% of a core"),
    ]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
