"""Read cluster directories, determine which heads live, and record the death of the others."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..core.cluster import ENDED, EXISTING, Phase, Process, Record
from ..core.errors import ClusterNotFound, GpuClusterError, RecordError, StateError
from ..core.lease import LAPSED_SECONDS
from ..core.summary import Summary
from ..host.cluster_directory import ClusterDirectory, Files
from ..host.private_files import check_private, locked
from ..host.processes import is_alive
from ..host.state_root import cluster_at
from .control_client import ask_all, responds
from .view import ClusterView, Look, is_shown, view_of

START_LOCK = ".lock"
"""A file in the state root, which a starter locks until its head has written its process."""
START_SECONDS = 90.0
"""A head that is not on record this long after its start never will be."""
ID = re.compile(r"[a-z0-9]{6}", re.ASCII)


def directories(root: Path) -> Iterator[ClusterDirectory]:
    """Yield the cluster directories of a user.

    Raises
    ------
    StateError
        The directory of directories cannot be read, or is not the user's alone.
    """
    try:
        found = sorted(name for name in os.listdir(root) if ID.fullmatch(name))  # noqa: PTH208  # a Path each costs more than the look
    except FileNotFoundError:
        return
    except OSError as error:
        raise StateError(
            f"Cannot read {root}: {error.strerror}.",
            hint="Check its permissions, or point JUPYTER_DATA_DIR at another directory.",
        ) from error
    check_private(root)
    every = [cluster_at(root, name) for name in found]
    ask_all(each for each in every if each.lease_is_late())
    yield from every


def see(
    directory: ClusterDirectory,
    *,
    ended: bool,
    troubles: list[GpuClusterError] | None = None,
    jobs: bool = True,
) -> Look | None:
    """Read one cluster; None if it is unreadable, or has ended and ``ended`` is false.

    Parameters
    ----------
    troubles
        Takes the error of a cluster that cannot be read, so that it is never missing unexplained.
    jobs
        Whether to read the record's jobs; views do not show them.
    """
    if not ended:
        phase, since, unaccounted = directory.read_phase()
        if unaccounted:
            ask_later(directory, since)
        if not is_shown(phase, since):
            return None
    try:
        found = look_at(directory, jobs=jobs)
    except (RecordError, StateError) as error:
        if not sweep(directory) and troubles is not None:
            troubles.append(error)
        return None
    return found if ended or is_shown(found.record.phase, found.record.phase_since) else None


class Memory:
    """Views of earlier looks, for a process that looks again and again.

    Files are replaced whole, so a file with the same inode, size and time is unchanged.  The life
    of each head is checked every time.
    """

    def __init__(self) -> None:
        self._looks: dict[str, tuple[Files, Look, ClusterView]] = {}

    def looks(
        self, root: Path, *, ended: bool, troubles: list[GpuClusterError]
    ) -> list[tuple[Look, ClusterView]]:
        """Return the looks at all clusters that `see` shows, each with its view."""
        every = list(directories(root))
        seen = [self._seen(each, ended=ended, troubles=troubles) for each in every]
        for gone in self._looks.keys() - {each.id for each in every}:
            self._looks.pop(gone, None)  # another thread may have been here as well
        return [each for each in seen if each is not None]

    def _seen(
        self, directory: ClusterDirectory, *, ended: bool, troubles: list[GpuClusterError]
    ) -> tuple[Look, ClusterView] | None:
        files = directory.files()
        known = self._looks.get(directory.id)
        if known is not None and known[0] == files and unchanged(known[1]):
            shown = ended or is_shown(known[2].phase, known[2].phase_since)
            return known[1:] if shown else None
        look = see(directory, ended=ended, troubles=troubles, jobs=False)
        if look is None:
            return None
        view = view_of(look)
        self._looks[directory.id] = (files, look, view)
        return look, view


def unchanged(look: Look) -> bool:
    """Return whether a head whose files are the same still lives, or still does not."""
    try:
        look.directory.check()
    except StateError:
        return False
    if look.record.phase in ENDED:
        return look.record.unaccounted is None
    waits = look.record.spec.in_job and head_of(look.directory, look.record) is None
    if waits or look.record.spec.backend == EXISTING:
        return False  # what it shows changes without a head
    alive = head_lives(look.directory, look.record)
    return alive is not False and alive == look.head_alive


def ask_later(directory: ClusterDirectory, ended: float) -> None:
    """Have a process ask again about jobs whose end nothing proves."""
    from . import unaccounted  # not needed by a look that finds all well

    unaccounted.ask_later(directory, ended)


def find(root: Path, name: str, *, jobs: bool = True) -> Look:
    """Find a cluster by id or name; of several with one name the live one, else the newest.

    ``jobs`` as in `see`.

    Raises
    ------
    ClusterNotFound
        There is none.
    """
    return find_all(root, name, jobs=jobs)[0]


def find_all(root: Path, name: str, *, jobs: bool = True) -> list[Look]:
    """Find all clusters of an id or name, live ones first, then the newest; else as `find`."""
    if ID.fullmatch(name) and (root / name).exists():
        check_private(root)
        return [look_at(cluster_at(root, name), jobs=jobs)]
    troubles: list[GpuClusterError] = []
    looks = [f for d in directories(root) if (f := see(d, ended=True, troubles=troubles))]
    named = [found for found in looks if found.record.name == name]
    if not named:
        known = ", ".join(f.record.name for f in looks if f.record.phase not in ENDED)
        told = f"Running: {known}." if known else "No cluster is running."
        if any(f.record.phase in ENDED for f in looks):
            told += " The command list --all names those that have ended."
        unreadable = "".join(f" {trouble.message} {trouble.hint}".rstrip() for trouble in troubles)
        raise ClusterNotFound(
            f"There is no cluster named {ascii(name)[1:-1][:80]}.", hint=told + unreadable
        )
    return sorted(named, key=lambda found: (found.record.phase in ENDED, -found.record.created))


def look_at(directory: ClusterDirectory, *, jobs: bool = True) -> Look:
    """Read a cluster; if its head is dead, record the death and clean up."""
    directory.check()
    record = directory.read_record(jobs=jobs)
    summary = directory.read_summary()
    if record.phase in ENDED:
        if record.unaccounted is not None:
            ask_later(directory, record.phase_since)
        return Look(directory, record, summary)
    if record.spec.in_job:
        return look_in_job(directory, record, summary)
    if record.spec.backend == EXISTING:
        from .external import look_at_existing

        return Look(directory, *look_at_existing(directory, record))
    alive = head_lives(directory, record)
    if alive is False:
        # The head may have written its end between our two reads.
        record = directory.read_record()
        if record.phase not in ENDED:
            from .reaper import record_death  # not needed by a look that finds all well

            record = record_death(directory, record)
    return Look(directory, record, summary, alive)


def look_in_job(directory: ClusterDirectory, record: Record, summary: Summary | None) -> Look:
    """Read a cluster whose head runs in a job; before the head is up, its job shows the state."""
    if record.spec.relayed:
        from .head_job import keep_relay

        keep_relay(directory, record)
    came = head_of(directory, record) is not None
    alive = head_lives(directory, record) if came else None
    if alive and (summary is not None or record.phase is not Phase.PENDING):
        return Look(directory, record, summary)
    from . import head_job  # not needed by a look that finds all well

    record = directory.read_record()  # with its jobs, which a listing does without
    if record.phase in ENDED:
        return Look(directory, record, directory.read_summary())
    if alive:
        return Look(directory, *head_job.begun(directory, record))
    job = head_job.watch(directory, record)
    if alive is None and not job.is_over:
        if came:
            return Look(directory, record, summary, None)
        return Look(directory, *head_job.waiting(record, job))
    # The head may have started, or written its end, between our reads.
    record = directory.read_record()
    if record.phase not in ENDED:
        from .reaper import record_death

        if record.head is None:
            record = replace(record, jobs=(job,))
        record = record_death(directory, record, head_job.end_reason(directory, record, job))
    return Look(directory, record, directory.read_summary())


def head_of(directory: ClusterDirectory, record: Record) -> Process | None:
    """Return the head's process, or None before its start."""
    return record.head or directory.read_process()


def lives(record: Record) -> bool:
    """Return whether a head of this host still lives."""
    return record.head is not None and is_alive(record.head) is True


def head_lives(directory: ClusterDirectory, record: Record) -> bool | None:
    """Return whether the head lives: by its process here, by its lease elsewhere.

    None if that is unknown: the lease is old, and a head of this host does not answer either.
    """
    head = head_of(directory, record)
    if head is None:
        return time.time() - record.created < START_SECONDS and not starter_died(directory)
    alive = is_alive(head)
    if alive and record.http_address and directory.lease_is_late():
        if responds(directory, record):
            return True
        return None if is_alive(head) else False  # it may have ended while it was asked
    if alive is not None:
        return alive
    age = directory.lease_age()
    return True if age is not None and age < LAPSED_SECONDS else None


def starter_died(directory: ClusterDirectory) -> bool:
    """Return whether a cluster has no head, and its starter on this host is at work no more."""
    from ..host.processes import heads  # not needed by a look that finds all well

    path = directory.root / START_LOCK
    with contextlib.suppress(OSError), locked(path) as held:
        here = path.read_text("utf-8", "replace").endswith(f" on {os.uname().nodename}")
        if held is True and here and str(directory.path) not in {at for _, at in heads()}:
            return directory.read_process() is None
    return False


def sweep(directory: ClusterDirectory) -> bool:
    """Remove the directory of a starter that was killed early.

    Returns False if the directory has a record, or a head.
    """
    try:
        begun = any(path.name.startswith("record.json") for path in directory.path.iterdir())
        fresh = time.time() - directory.path.stat().st_mtime < START_SECONDS
    except OSError:
        return False
    if begun or directory.head_may_live():
        return False
    if fresh:
        return True  # it is being made
    import tempfile  # takes 4 ms, and is hardly ever needed

    for scratch in Path(tempfile.gettempdir()).glob(f"gpc-{directory.id}-*"):
        shutil.rmtree(scratch, ignore_errors=True)
    directory.remove()
    return True
