"""Find what runs in the name of clusters that are over: jobs that nobody looks after."""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path

from ..host.processes import heads, heirs


def find_orphans(root: Path, live: Set[str]) -> list[str]:
    """Return a line for each process of this user that belongs to none of the live clusters.

    Parameters
    ----------
    root
        The directory of cluster directories; clusters that lie elsewhere are none of ours.
    live
        Ids of the clusters that are looked after.
    """
    schedulers = ((pid, f"gpc-{Path(path).name}", path) for pid, path in heads())
    return [
        f"process {pid} of {mark}: {_command(pid)}"
        for pid, mark, directory in (*schedulers, *heirs())
        if Path(directory).parent == root and mark.split("-")[1] not in live and pid != os.getpid()
    ]


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return "gone meanwhile"
    return words.decode("utf-8", "replace").strip()[:80]
