"""Find processes and jobs left over from ended or unknown clusters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..batch.cancel import expected, left_jobs, stray_jobs
from ..core.cluster import ENDED
from ..host.processes import heads, leftover_processes
from ..host.state_root import cluster_at
from .reader import directories, see


def all_orphans(root: Path, systems: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Return a line for each process and job left over from ended or unknown clusters.

    Parameters
    ----------
    systems
        The batch systems to ask, as in `stray_jobs`.
    """
    every = list(directories(root))
    looks = [look for each in every if (look := see(each, ended=True))]
    live = {look.record.id for look in looks if look.record.phase not in ENDED}
    # Of these the record may be damaged.
    read = {look.record.id for look in looks}
    live |= {each.id for each in every if each.id not in read and each.head_may_live()}
    ended = [look.record for look in looks if look.record.phase in ENDED]
    doubtful = [record for record in ended if any(not job.is_over for job in expected(record))]
    known = live | {record.id for record in doubtful}
    with ThreadPoolExecutor(1) as thread:
        strays = thread.submit(stray_jobs, systems, known, root)
        return [*find_orphans(root, live), *left_jobs(doubtful, root), *strays.result()]


def find_orphans(root: Path, live: Set[str]) -> list[str]:
    """Return a line for each process of this user that belongs to none of the live clusters.

    Parameters
    ----------
    root
        The directory of cluster directories; clusters of other roots are not ours.
    live
        Ids of the clusters that are looked after.
    """
    schedulers = ((pid, f"gpc-{Path(path).name}", path) for pid, path in heads())
    return [
        f"process {pid} of {mark}: {_command(pid)}"
        for pid, mark, directory in (*schedulers, *leftover_processes())
        if _belongs(root, Path(directory)) and mark.split("-")[1] not in live and pid != os.getpid()
    ]


def _belongs(root: Path, directory: Path) -> bool:
    return directory.parent == root or cluster_at(root, directory.name).path == directory


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return "gone meanwhile"
    return words.decode("utf-8", "replace").strip()[:80]
