"""One status call for all clusters of a user: heads on one host share the system's last answer."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import GpuClusterError
from ..core.job import JobStatus
from ..core.serialize import from_json, to_json
from ..host.cluster_directory import DAMAGE, write_private
from ..host.processes import boot_id
from .base import Backend
from .pacing import CALLS_PER_MINUTE, MINUTE, Choice, Ledger, choose

logger = logging.getLogger("gpucluster.head")

REMEMBERED = 900.0
"""Seconds for which the jobs of a head are listed that has not asked again."""
LOCK_RETRY = 0.1
BUSY_SECONDS = 1.0
"""How long a head waits while another one asks, before it goes on with what it knows."""


@dataclass(frozen=True)
class Listing:
    """What a status command answered."""

    jobs: dict[str, JobStatus]
    words: tuple[str, ...] = ()
    """Lines on standard error that belong to no whole answer."""


@dataclass(frozen=True)
class Poll:
    """What came of the wish for a listing."""

    asked: bool
    """Whether there is word from the system that this head had not yet: a listing, or silence."""
    listing: dict[str, JobStatus] | None = None
    """All jobs by id; None where nobody asked, or the system did not answer."""
    words: tuple[str, ...] = ()
    """As in `Listing`."""
    again: float = 0.0
    """Seconds after which it is worth to ask again, where nobody asked now."""


class SharedQueue:
    """The files through which the heads of one user on one host speak to one queueing system.

    They lie beside the cluster directories.  Where they cannot be written or locked, each head asks
    for itself.

    Parameters
    ----------
    root
        The directory of cluster directories.
    owner
        The id of this head's cluster.
    variables
        By which commands find the cluster's jobs, where they are sent elsewhere.
    """

    def __init__(
        self,
        root: Path,
        backend: Backend,
        user: str,
        owner: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.backend = backend
        self.user = user
        self.owner = owner
        self.memory: Ledger | None = None
        """What could not be written."""
        self.seen = -1.0
        self.changed = -1.0
        everybody = backend.status(user, ())
        self.by_ids = backend.status(user, ("1",)) != everybody
        found = {**os.environ, **(variables or {})}
        place = [f"{name}={found[name]}" for name in backend.selecting if name in found]
        commands = [shutil.which(word) or "" for word in everybody[:4]]
        words = json.dumps([os.uname().nodename, user, backend.name, place, commands])
        stem = f".{backend.name}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
        self.ledger_file = root / f"{stem}.ledger"
        self.answer_file = root / f"{stem}.answer"
        self.lock_file = root / f"{stem}.lock"
        self.turn_file = root / f"{stem}.turn"

    # Commands that count.

    async def wait_for_room(self) -> None:
        """Wait until the budget has room for one command more, and take it."""
        while (seconds := await asyncio.to_thread(self.take_room)) > 0:  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(min(seconds, 1.0))

    def take_room(self, *, always: bool = False, most: int = CALLS_PER_MINUTE) -> float:
        """Count one command and return 0, or the seconds until there is room for it."""
        now = boot_time()
        with self.changing() as book:
            calls = book.ledger.calls
            if len(calls) >= most and not always:
                return calls[0] + MINUTE - now
            book.ledger = replace(book.ledger, calls=(*calls, now))
        return 0.0

    def note_change(self) -> None:
        """Remember that answers from before now say nothing about what was asked for."""
        self.changed = boot_time()

    # Listings.

    async def poll(
        self,
        ids: Sequence[str],
        period: float,
        call: Callable[[Sequence[str]], Awaitable[Listing | None]],
    ) -> Poll:
        """Return a listing: another head's where it is fresh, else what ``call`` returns.

        Parameters
        ----------
        ids
            This cluster's jobs; none = one of them is lost, and all of the user's are asked for.
        period
            Seconds between two listings.
        call
            Asks the system about ids and returns its listing, None without an answer.
        """
        about = tuple(ids) or None if self.by_ids else None
        await asyncio.to_thread(self.register, about)
        choice, seconds = await self.choose(period, about)
        if choice is Choice.CALL:
            async with self.turn() as ours:
                # Another head may have asked while we waited for our turn, or does so for long.
                choice, seconds = await self.choose(period, about)
                if choice is Choice.CALL:
                    return await self.ask(about, call) if ours else Poll(False, again=BUSY_SECONDS)
        if choice is Choice.WAIT:
            return Poll(False, again=seconds)
        return await asyncio.to_thread(self.take_answer)

    async def choose(self, period: float, ids: Sequence[str] | None) -> tuple[Choice, float]:
        """Look into the ledger and choose."""
        ledger = await asyncio.to_thread(self.read)
        now = boot_time()
        return choose(ledger, now=now, period=period, ids=ids, seen=self.seen, changed=self.changed)

    async def ask(
        self,
        ids: tuple[str, ...] | None,
        call: Callable[[Sequence[str]], Awaitable[Listing | None]],
    ) -> Poll:
        """Ask the system about the jobs of all heads, and leave the answer for them."""
        started = boot_time()
        listed = await asyncio.to_thread(self.begin, started, ids)
        listing = await call(listed or ())
        await asyncio.to_thread(self.finish, started, listed, listing)
        self.seen = started
        return Poll(True) if listing is None else Poll(True, listing.jobs, listing.words)

    def register(self, ids: tuple[str, ...] | None) -> None:
        """Tell the other heads which jobs to ask about."""
        known = self.read().wanted.get(self.owner)
        now = boot_time()
        if ids is None or (known and known[1] == list(ids) and now - known[0] < REMEMBERED / 3):
            return
        with self.changing() as book:
            wanted = {k: v for k, v in book.ledger.wanted.items() if now - v[0] < REMEMBERED}
            wanted[self.owner] = [now, list(ids)]
            book.ledger = replace(book.ledger, wanted=wanted)

    def begin(self, started: float, ids: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Count the call, and return the ids of all heads."""
        self.take_room(always=True)
        with self.changing() as book:
            book.ledger = replace(book.ledger, started=started)
            if ids is None:
                return None
            others = (id for _, theirs in book.ledger.wanted.values() for id in theirs)
            return tuple(dict.fromkeys((*ids, *others)))

    def finish(
        self,
        started: float,
        listed: tuple[str, ...] | None,
        listing: Listing | None,
    ) -> None:
        """Write down what the system answered, or that it did not."""
        seconds = boot_time() - started
        if listing is not None:
            jobs = [to_json(status) for status in listing.jobs.values()]
            answer = {"started": started, "jobs": jobs, "words": list(listing.words)}
            self.write(self.answer_file, answer)
        with self.changing() as book:
            failures = 0 if listing is not None else book.ledger.failures + 1
            book.ledger = replace(
                book.ledger, started=started, seconds=seconds, failures=failures, listed=listed
            )

    def take_answer(self) -> Poll:
        """Return the last answer, which another head got."""
        ledger = self.read()
        if ledger.failures:
            self.seen = ledger.started or self.seen
            return Poll(True)
        try:
            answer = json.loads(self.answer_file.read_bytes())
            jobs = [from_json(JobStatus, job) for job in answer["jobs"]]
            started = float(answer["started"])
            words = tuple(map(str, answer.get("words", ())))
        except (OSError, *DAMAGE):
            return Poll(False, again=BUSY_SECONDS)
        if started != ledger.started:
            return Poll(False, again=BUSY_SECONDS)  # the next answer is on its way
        self.seen = started
        return Poll(True, {job.id: job for job in jobs}, words)

    # The files.

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[bool]:
        """Be the only head that asks, unless another one takes long; tell whether that is so.

        The kernel gives the turn on where a head dies.
        """
        descriptor = await asyncio.to_thread(_open, self.turn_file)
        try:
            alone, tries = fcntl.LOCK_EX | fcntl.LOCK_NB, int(BUSY_SECONDS / LOCK_RETRY)
            while not (ours := await asyncio.to_thread(_lock, descriptor, alone)) and tries:
                await asyncio.sleep(LOCK_RETRY)
                tries -= 1
            yield ours
        finally:
            if descriptor is not None:
                os.close(descriptor)

    @contextlib.contextmanager
    def changing(self) -> Iterator[_Book]:
        """Hold the ledger for a moment, and write it where the block changed it."""
        descriptor = _open(self.lock_file)
        try:
            _lock(descriptor, fcntl.LOCK_EX)
            before = self.read()
            book = _Book(before)
            yield book
            if book.ledger is not before:
                written = self.write(self.ledger_file, to_json(book.ledger))
                self.memory = None if written else book.ledger
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def read(self) -> Ledger:
        """Return the ledger of this boot, without the calls that are over a minute old."""
        try:
            ledger = self.memory or from_json(Ledger, json.loads(self.ledger_file.read_bytes()))
        except (OSError, *DAMAGE):
            return Ledger(boot_id())
        if ledger.boot != boot_id():
            return Ledger(boot_id())
        now = boot_time()
        return replace(ledger, calls=tuple(call for call in ledger.calls if now - call < MINUTE))

    def write(self, path: Path, data: Any) -> bool:
        """Write a file, and tell whether that went well."""
        try:
            write_private(path, json.dumps(data).encode())
        except GpuClusterError as error:
            logger.warning("%s %s", error.message, error.hint)
            return False
        return True


@dataclass
class _Book:
    ledger: Ledger


def boot_time() -> float:
    """Return seconds since boot, which all processes of a host share and nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _open(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    return None


def _lock(descriptor: int | None, how: int) -> bool:
    """Lock a file; True where it is ours, or its file system knows no locks."""
    if descriptor is None:
        return True
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
