"""Look at cluster directories: read them, tell which heads live, and bury the dead."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .errors import ClusterNotFound, GpuClusterError, RecordError, StateError
from .processes import end_heirs, is_alive, kill_group
from .records import ENDED, FINAL, Event, Phase, Record
from .store import ClusterDirectory, check_private
from .views import Look

START_SECONDS = 90.0
"""A head that is not on record this long after its start never will be."""
LAPSED_SECONDS = 120.0
"""Lease period, its renewal once missed, and a minute of attribute cache."""
RECENT_SECONDS = 86400.0
"""For so long a failed cluster is shown beside the live ones, so that nobody misses why."""
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
    for name in found:
        yield ClusterDirectory(root / name)


def see(
    directory: ClusterDirectory, *, ended: bool, troubles: list[GpuClusterError] | None = None
) -> Look | None:
    """Look at one directory; None where it is over and nobody asks, or cannot be read.

    Parameters
    ----------
    troubles
        Takes up why it cannot be read, so that a cluster never vanishes without a word.
    """
    phase, since = (None, 0.0) if ended else directory.read_phase()
    if phase in ENDED:
        recent = time.time() - since < RECENT_SECONDS
        if phase is not Phase.FAILED or not recent:
            return None
    try:
        found = look_at(directory)
    except (RecordError, StateError) as error:
        if not sweep(directory) and troubles is not None:
            troubles.append(error)
        return None
    return found if ended or shown(found.record) else None


def shown(record: Record) -> bool:
    """Tell whether a cluster belongs among the live ones: it lives, or has just failed."""
    if record.phase is Phase.FAILED:
        return time.time() - record.phase_since < RECENT_SECONDS
    return record.phase not in ENDED


def find(root: Path, name: str) -> Look:
    """Find a cluster by id or name; of several with one name the live one, else the newest.

    Raises
    ------
    ClusterNotFound
        There is none.
    """
    directory = ClusterDirectory(root / name)
    if ID.fullmatch(name) and directory.path.is_dir():
        check_private(root)
        return look_at(directory)
    troubles: list[GpuClusterError] = []
    looks = [f for d in directories(root) if (f := see(d, ended=True, troubles=troubles))]
    named = [found for found in looks if found.record.name == name]
    if not named:
        known = ", ".join(f.record.name for f in looks if f.record.phase not in ENDED)
        unreadable = "".join(f" {trouble.message}" for trouble in troubles)
        raise ClusterNotFound(
            f"There is no cluster named {ascii(name)[1:-1][:80]}.",
            hint=(f"Running: {known}." if known else "No cluster is running.") + unreadable,
        )
    return max(named, key=lambda found: (found.record.phase not in ENDED, found.record.created))


def damaged(root: Path, *, ended: bool = True) -> list[GpuClusterError]:
    """Return what cannot be read, each with its way out; `ended` as in `see`."""
    troubles: list[GpuClusterError] = []
    for directory in directories(root):
        see(directory, ended=ended, troubles=troubles)
    return troubles


def look_at(directory: ClusterDirectory) -> Look:
    """Read a cluster; where its head is dead, say so on record and clean up."""
    check_private(directory.path)
    record = directory.read_record()
    summary = directory.read_summary()
    if record.phase in ENDED:
        return Look(directory, record, summary)
    alive = head_lives(directory, record)
    if alive is False:
        # The head may have written its last word between our two reads.
        record = directory.read_record()
        if record.phase not in ENDED:
            record = bury(directory, record)
    return Look(directory, record, summary, alive)


def lives(record: Record) -> bool:
    """Tell whether a head that was on this host is still there."""
    return record.head is not None and is_alive(record.head) is True


def head_lives(directory: ClusterDirectory, record: Record) -> bool | None:
    """Tell whether the head lives: by its process here, by its lease elsewhere."""
    head = record.head or directory.read_process()
    if head is None:
        # Not even begun: the starter is about to spawn it, or died before it could.
        return time.time() - record.created < START_SECONDS
    alive = is_alive(head)
    if alive is not None:
        return alive
    probe = directory.path / ".clock"
    try:
        probe.touch(mode=0o600)
        # Both times are the file server's, so no two clocks are compared.
        age = probe.stat().st_mtime - directory.lease.stat().st_mtime
        probe.unlink(missing_ok=True)
    except OSError:
        return None
    return True if age < LAPSED_SECONDS else None


def bury(directory: ClusterDirectory, record: Record) -> Record:
    """Put on record that a head is dead, end what it left, and remove what it cannot remove."""
    for job in record.jobs:
        if len(job.process) == 2 and job.state not in FINAL:
            kill_group(job.process[0], job.process[1], grace=0)
    if record.spec.backend == "local":
        end_heirs(directory.path)
    now = time.time()
    if record.head is not None:
        reason = "Its head is gone: it was killed, or the machine was restarted."
    elif directory.process_file.exists():
        reason = "Its head ended before it was up."
    else:
        reason = "Its head never started: whoever started the cluster was ended meanwhile."
    last = last_error(directory.logs / "head.log")
    buried = replace(
        record,
        phase=Phase.FAILED,
        phase_since=now,
        ended=now,
        reason=f"{reason} {last}".strip(),
        revision=record.revision + 1,
    )
    # Nothing that does not bear the cluster's name, whatever became of the record.
    if Path(record.spec.scratch).name.startswith(f"gpc-{directory.id}-"):
        shutil.rmtree(record.spec.scratch, ignore_errors=True)
    directory.remove_private()
    # On a full disk it is told, and the next look tries to write it again.
    with contextlib.suppress(StateError):
        directory.write_record(buried)
        summary = directory.read_summary()
        if summary is not None:
            directory.write_summary(
                replace(summary, phase=Phase.FAILED, phase_since=now, reason=buried.reason)
            )
        directory.append_event(Event(now, "phase", f"failed: {buried.reason}"))
    return buried


def sweep(directory: ClusterDirectory) -> bool:
    """Remove what a starter left that was killed before there was a record; tell whether it did."""
    try:
        begun = any(path.name.startswith("record.json") for path in directory.path.iterdir())
        fresh = time.time() - directory.path.stat().st_mtime < START_SECONDS
    except OSError:
        return False
    if begun or fresh:
        return False
    import tempfile  # takes 4 ms, and is hardly ever needed

    for scratch in Path(tempfile.gettempdir()).glob(f"gpc-{directory.id}-*"):
        shutil.rmtree(scratch, ignore_errors=True)
    directory.remove()
    return True


def last_error(path: Path) -> str:
    """Return the last line of a log that names an exception."""
    lines = [
        line for line in tail(path, 50).splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)
    ]
    return lines[-1][:200] if lines else ""


def tail(path: Path, lines: int, *, most: int = 1 << 20) -> str:
    """Return the last lines of a log, at most ``most`` bytes of it; nothing where there is none."""
    try:
        if not path.is_file():  # a pipe would be waited for, a device never ends
            return ""
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - most))
            text = stream.read(most).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
