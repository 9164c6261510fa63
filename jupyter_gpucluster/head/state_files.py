"""The files that the head writes, as far as the disk allows, and the end of their directory.

A failed write is tried again. All writes are off the loop, since a stalled file server must not
stop Dask.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ..core.cluster import BY_USER, ENDED, Phase, Record
from ..core.errors import GpuClusterError, StateError
from ..core.lease import LEASE_SECONDS
from ..core.summary import Event, Summary
from ..host.cluster_directory import FORCED, ClusterDirectory
from ..host.private_files import trouble

logger = logging.getLogger("gpucluster.head")

T = TypeVar("T")
KEPT_SUMMARY_SECONDS = 10.0
DISK_SECONDS = 2.0
"""Longest wait of an answer for the disk."""
SILENT_SECONDS = 10.0
"""A write that takes longer has failed, until it ends."""
RETRY_SECONDS = 5.0
"""Delay before a failed write is tried again."""
LOOK_SECONDS = 5.0
"""Interval of the head's looks for its directory."""
GONE_SECONDS = 60.0
"""For so long every look must miss it: a user may rename it and back, or restore it."""
KEPT_EVENTS = 1000
"""Maximum number of lines of the timeline that wait for room."""


class StateFiles:
    """Record, summary, timeline and lease: what is on disk of them, and why the rest is not."""

    def __init__(self, directory: ClusterDirectory, summary: Summary) -> None:
        self.directory = directory
        self.summary = summary
        """The last one, on disk or not."""
        self.numbered: Record | None = None
        self.saved: Record | None = None
        self.events: list[Event] = []
        """Lines of the timeline that wait to be written."""
        self.news = asyncio.Condition()
        self.written = 0.0
        self.leased = 0.0
        self.troubles: dict[str, GpuClusterError] = {}
        """Why files could not be written, by file."""
        self.since: float | None = None
        self.tried = 0.0
        self.retry = True
        self.hanging: asyncio.Future[Any] | None = None
        """A use of the disk that does not end; no other one is tried meanwhile."""

    # Write.

    async def write_events(self, now: float) -> None:
        """Add to the timeline what waits for that, in order; the first write of a turn."""
        # Whether this turn tries failed writes again, whichever of them fails in it.
        self.retry = now - self.tried >= RETRY_SECONDS
        del self.events[:-KEPT_EVENTS]
        while self.events and (self.retry or "timeline" not in self.troubles):
            if not await self.save("timeline", self.directory.append_event, self.events[0]):
                return
            del self.events[0]

    async def look_for_record(self, now: float) -> bool:
        """Have a record written again that was removed.

        Returns whether the cluster was ended without this head, which seemed to be dead.
        """
        if now - self.leased <= LEASE_SECONDS:
            return False
        if await self.read(self.directory.record_is_lost, otherwise=False):
            self.numbered = None
        return await self.read((self.directory.path / FORCED).exists, otherwise=False)

    def is_news(self, record: Record, summary: Summary) -> bool:
        """Determine whether record or summary differ from those of the last revision."""
        return record != self.numbered or not alike(summary, self.summary)

    async def write_record(self, record: Record, fresh: bool) -> None:
        """Write the record if it has a new revision, or was not saved."""
        if fresh:
            self.numbered = record
        # A submission needs its mark on disk, so a new record is tried at once.
        if fresh or (self.retry and record != self.saved):
            if await self.save("record", self.directory.write_record, record):
                self.saved = record
            elif record.stop_requested is not None and record.outcome is Phase.STOPPED:
                note = record.reason or BY_USER
                await self.read(self.directory.note_stop, note, otherwise=None)

    async def write_summary(self, fresh: bool, now: float) -> None:
        """Write the summary if its revision or its figures are new, and renew the lease."""
        summary = self.summary
        again = self.retry and "summary" in self.troubles
        if fresh or again or now - self.written > KEPT_SUMMARY_SECONDS:
            self.written = now
            await self.save("summary", self.directory.write_summary, summary)
        if (self.retry and "lease" in self.troubles) or now - self.leased > LEASE_SECONDS:
            await self.renew_lease(now)
        if fresh:
            async with self.news:
                self.news.notify_all()

    async def renew_lease(self, now: float) -> None:
        """Show jobs and readers on other hosts that the head lives."""
        self.leased = now
        await self.save("lease", lambda _: self.directory.renew_lease(), None)

    async def save(self, file: str, writer: Callable[[Any], None], value: object) -> bool:
        """Write off the loop, and return whether that succeeded; a failure is logged once."""
        try:
            await self._within_limit(writer, value)
        except GpuClusterError as error:
            known = self.troubles.get(file)
            if known is None or known.message != error.message:
                logger.warning("%s %s", error.message, error.hint)
            self.troubles[file] = error
            self.tried = time.time()
            self.since = self.since or self.tried
            return False
        if self.troubles.pop(file, None) is not None and not self.troubles:
            logger.info("All files are saved again.")
            self.since = None
        return True

    async def read(self, work: Callable[..., T], *args: object, otherwise: T) -> T:
        """Return what is read off the loop, or something else if the disk does not answer."""
        try:
            return await self._within_limit(work, *args)
        except StateError:
            return otherwise

    async def _within_limit(self, work: Callable[..., T], *args: object) -> T:
        """Use the disk in a thread; raise `StateError` if it takes too long, or hangs already."""
        if self.hanging is None or self.hanging.done():
            task = asyncio.ensure_future(asyncio.to_thread(work, *args))
            await asyncio.wait({task}, timeout=SILENT_SECONDS)
            try:
                return task.result()
            except asyncio.InvalidStateError:
                self.hanging = task
            except OSError as error:
                raise trouble(error, self.directory.path) from error
        silence = TimeoutError(errno.ETIMEDOUT, "The file system does not answer")
        raise trouble(silence, self.directory.path)

    async def wait_for_removal(
        self, seconds: float = GONE_SECONDS, every: float = LOOK_SECONDS
    ) -> None:
        """Return when all looks of a while have missed the directory; a failed look misses none."""
        path = self.directory.path.absolute()
        device, missed = await self.read(lambda: path.stat().st_dev, otherwise=-1), 0
        while missed <= seconds / every:
            await asyncio.sleep(every)
            gone = await self.read(is_missing, path, device, otherwise=False)
            missed = missed + 1 if gone else 0

    def save_end(self, record: Record) -> bool:
        """Write what is not on disk yet, once the cluster has ended; return whether that succeeded.

        The files that only a live cluster needs are gone, which made room.
        """
        try:
            if record != self.saved:
                self.directory.write_record(record)
                self.saved = record
            if "summary" in self.troubles:
                self.directory.write_summary(self.summary)
                del self.troubles["summary"]
            while self.events:
                self.directory.append_event(self.events[0])
                del self.events[0]
            return True
        except GpuClusterError:
            return False

    # Wait for the disk.

    async def newer_than(self, revision: int, seconds: float) -> None:
        """Wait until the summary is newer than a revision, or the time is up."""
        await self._wait_for(lambda: self.summary.revision > revision, seconds)

    async def reach_disk(self, record_of: Callable[[], Record]) -> None:
        """Wait until a request is on disk, where the next look finds it."""

        def is_on_disk() -> bool:
            # On a full disk it is enough that the head works by it.
            saved = self.numbered if "record" in self.troubles else self.saved
            seen, wanted = (
                record and (record.name, record.target, record.stop_requested)
                for record in (saved, record_of())
            )
            return seen == wanted

        await self._wait_for(is_on_disk, DISK_SECONDS)

    async def _wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self.news:
                await self.news.wait_for(condition)

    # Users learn of files that could not be written.

    def refusal(self) -> str:
        """Return why no jobs are submitted, and the fix; empty if the record is saved."""
        error = self.troubles.get("record")
        return "" if error is None else f"{_words(error)} No jobs are submitted until then."

    def add_troubles(self, summary: Summary) -> Summary:
        """Return the summary with the words that its files are out of date."""
        if not self.troubles or summary.phase in ENDED or summary.unsaved_since is not None:
            return summary
        error = next(iter(self.troubles.values()))
        cause = error.message.rpartition(": ")[2].rstrip(".")
        since = time.strftime("%H:%M", time.localtime(self.since))
        return replace(
            summary,
            words=f"{summary.words}, not saved since {since}: {cause[:1].lower()}{cause[1:]}",
            reason=summary.reason or _words(error),
            unsaved_since=self.since,
        )


def _words(error: GpuClusterError) -> str:
    fix = error.hint.partition(",")[0]
    return f"{error.message} {fix}: the cluster runs, and its state is saved again when it can be."


RESTLESS = ("revision", "written", "memory_used", "gpu_hours", "listed")


def alike(one: Summary, other: Summary) -> bool:
    """Determine whether two summaries differ only in what changes with every look."""
    return _calm(one) == _calm(other)


def _calm(summary: Summary) -> dict[str, Any]:
    gpus = [(gpu.worker, gpu.uuid, gpu.slowed, gpu.xids, gpu.trouble) for gpu in summary.gpus]
    return {**vars(summary), **dict.fromkeys(RESTLESS), "gpus": gpus}


def is_missing(path: Path, device: int) -> bool:
    """Return whether a directory is missing from a folder that can be read.

    A file system that was unmounted, or does not answer, removes nothing: the first folder that
    still exists must be on the device that the directory was on.

    Parameters
    ----------
    path
        The directory.
    device
        The device that it was on (``st_dev``).

    Raises
    ------
    OSError
        One cannot tell: permissions, a stale file handle, a file server in trouble.
    """
    for lost, folder in zip((path, *path.parents), path.parents, strict=False):
        try:
            status = folder.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISDIR(status.st_mode):
            # Listed, not asked for by name: NFS remembers for a while that a name was missing.
            return status.st_dev == device and lost.name not in os.listdir(folder)  # noqa: PTH208  # a Path for each name is not needed
    return False
