"""Ask again about the jobs of an ended cluster whose end nothing proves, and cancel them again.

Whoever looks at the cluster starts a process for that, if it is due, and does not wait for it.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import replace
from pathlib import Path

from ..batch.cancel import cancel_jobs
from ..core.cluster import Record
from ..core.errors import ClusterConflict, StateError
from ..core.summary import Event
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import check_private, locked
from .background import start_module

ASKED = ".unaccounted"
"""A file in the cluster's directory: its time is that of the last question."""
LEAST_SECONDS, MOST_SECONDS = 60.0, 3600.0
"""Between two questions: the time since the end, within these limits."""


def is_due(directory: ClusterDirectory, ended: float) -> bool:
    """Return whether to ask again: ever more seldom, at most hourly in the end."""
    try:
        last = (directory.path / ASKED).stat().st_mtime
    except OSError:
        last = ended
    return time.time() >= last + min(MOST_SECONDS, max(LEAST_SECONDS, last - ended))


def ask_later(directory: ClusterDirectory, ended: float) -> None:
    """Start a process that asks again, if that is due."""
    if not is_due(directory, ended):
        return
    note_time(directory)  # keeps others from starting one meanwhile
    start_module("unaccounted", directory)


def ask_now(directory: ClusterDirectory) -> Record:
    """Ask and cancel again, and return the record with the answer.

    While another process does that, it returns the record as it is.
    """
    with locked(directory.path / ASKED) as held:
        record = directory.read_record()
        if record.unaccounted is None or held is False:
            return record
        note_time(directory)
        newer, outcome = cancel_jobs(record, directory)
        # On a full disk the next question finds the same out.
        with contextlib.suppress(StateError):
            newer = write(directory, record, newer, outcome)
        return newer


def write(directory: ClusterDirectory, record: Record, newer: Record, outcome: str) -> Record:
    """Write the answer to a record; return what was written."""
    assert record.unaccounted is not None  # noqa: S101  # for mypy: only such records are written
    before, left = record.unaccounted, newer.unaccounted
    words = "" if left is None else left.words
    reason = record.reason.replace(before.words, words).replace("  ", " ").strip()
    newer = replace(newer, reason=reason, revision=record.revision + 1)
    if newer.jobs == record.jobs and left == before:
        return record
    if left is None:
        outcome = f"The end of {named(record)} is proved. {outcome}".strip()
    directory.write_end(newer, Event(time.time(), "jobs", outcome))
    if left is None:
        directory.remove_private(newer)
        (directory.path / ASKED).unlink(missing_ok=True)
    return newer


def named(record: Record) -> str:
    """Name the jobs of a record whose end nothing proves: by id, or by job name without one."""
    left = record.unaccounted
    names = () if left is None else left.ids or left.tags
    return f"job{'s' if len(names) > 1 else ''} {', '.join(names)}"


def refusal(record: Record) -> ClusterConflict:
    """Return why a record is not deleted yet, and what to do."""
    command = record.unaccounted.command if record.unaccounted is not None else ""
    by_hand = f"; to cancel by hand: {command}" if command else ""
    return ClusterConflict(
        f"Nothing proves that {named(record)} of cluster {record.name} has ended.",
        hint=f"To ask and cancel again: jupyter gpucluster stop {record.id}{by_hand}"
        f"; to delete the record all the same: jupyter gpucluster forget --force {record.id}",
    )


def note_time(directory: ClusterDirectory) -> None:
    """Note that the question is asked now."""
    with contextlib.suppress(OSError):
        (directory.path / ASKED).touch(mode=0o600)


if __name__ == "__main__":
    cluster = ClusterDirectory(Path(sys.argv[1]))
    check_private(cluster.path)
    ask_now(cluster)
