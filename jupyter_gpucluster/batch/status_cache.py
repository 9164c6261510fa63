"""One status command for all clusters of a user: heads on one host share the last answer.

The period between two commands follows the speed of the batch system, and all heads together keep
to a limit of commands a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.cluster import Process
from ..core.errors import GpuClusterError
from ..core.job import JobStatus
from ..core.serialize import from_json, to_json
from ..host.private_files import DAMAGE, locked, write_private
from ..host.processes import boot_id, is_alive, this_process
from .base import Backend

logger = logging.getLogger("gpucluster.head")

CALLS_PER_MINUTE = 60
"""Limit of commands that all heads of a user on one host send to one batch system within a minute.
Submit and cancel commands wait for room."""
STATUS_PER_MINUTE = 40
"""Limit up to which listings are made, so that submit and cancel commands find room."""
LOOK_UPS_PER_MINUTE = 50
"""Limit up to which heads ask about single jobs that listings lack."""
MINUTE = 60.0
SLOWNESS = 10.0
"""Listings take a tenth of the time at most: a listing of 6 s is made once a minute."""
LONGEST_PERIOD = 300.0
GAP_AFTER_CHANGE = 0.5
"""Seconds between two listings if the last one is older than the head's own last change."""
SHORTEST_WAIT = 0.1
BUSY_SECONDS = 1.0
"""Pause of a head while another head waits for an answer."""
HOLDER_SECONDS = 90.0
"""A head that asks keeps the others from asking for so long; its command ends after 60 s."""
LOCK_SECONDS = 5.0
"""Limit of the wait for the lock; its holder may be stopped (SIGSTOP)."""
REMEMBERED = 900.0
"""Seconds for which listings include the jobs of a head that asks no more."""


@dataclass(frozen=True)
class Listing:
    """Answer of a status command."""

    jobs: dict[str, JobStatus]
    words: tuple[str, ...] = ()
    """Lines on standard error that belong to no complete answer."""


@dataclass(frozen=True)
class Poll:
    """Result of one look at the batch system."""

    asked: bool
    """True if there is news for this head: a listing, or a missing answer."""
    listing: dict[str, JobStatus] | None = None
    """All jobs by id; None if no head asked, or the system did not answer."""
    words: tuple[str, ...] = ()
    """As in `Listing`."""
    again: float = 0.0
    """Seconds until the next look is useful, if there is no news."""


@dataclass
class Ledger:
    """Data that the heads share in a file.  Times are seconds since the machine was booted."""

    boot: str = ""
    calls: tuple[float, ...] = ()
    """Times of the commands of the last minute."""
    started: float | None = None
    """Time at which the command of the last listing was started."""
    seconds: float = 0.0
    """Duration of the last answer; a missing one counts a tenth of the wait for it."""
    failures: int = 0
    """Number of missing answers in a row."""
    listed: tuple[str, ...] | None = None
    """Ids of the jobs in the last listing; None = all jobs of the user."""
    holder: str = ""
    """Cluster whose head waits for an answer now."""
    process: Process | None = None
    """Process of that head."""
    wanted: Mapping[str, Any] = field(default_factory=dict)
    """For each head, when it last asked and for which ids."""


class Choice(enum.Enum):
    """Next step of a head that needs a listing."""

    CALL = "call"
    USE = "use"
    WAIT = "wait"


def choose(
    ledger: Ledger,
    *,
    now: float,
    period: float,
    ids: Sequence[str] | None,
    seen: float,
    changed: float,
) -> tuple[Choice, float]:
    """Choose between asking, using the last answer and waiting; return the seconds to wait, too.

    Parameters
    ----------
    period
        Seconds between two listings, if the system answers quickly.
    ids
        The jobs that the listing must include; None = all of the user's.
    seen
        Start of the last listing that this head has used.
    changed
        Time of this head's last change: older answers do not show it.
    """
    if ledger.holder:
        return Choice.WAIT, BUSY_SECONDS
    if (started := ledger.started) is None:
        return Choice.CALL, 0.0
    slow = SLOWNESS * ledger.seconds
    period = min(LONGEST_PERIOD, max(period, slow) * 2 ** min(ledger.failures, 8))
    covers = ledger.listed is None or (ids is not None and set(ids) <= set(ledger.listed))
    fits = bool(ledger.failures) or (covers and started > changed)
    if not fits:
        period = min(period, max(GAP_AFTER_CHANGE, slow))
    due = started + period - now
    full = len(ledger.calls) >= STATUS_PER_MINUTE
    if due <= 0 and not full:
        return Choice.CALL, 0.0
    if fits and started > seen:
        return Choice.USE, 0.0
    room = ledger.calls[0] + MINUTE - now if full else 0.0
    return Choice.WAIT, max(due, room, SHORTEST_WAIT)


class StatusCache:
    """Files through which the heads of one user on one host share one batch system.

    They lie beside the cluster directories.  If they cannot be written or locked, each head asks
    for itself.

    Parameters
    ----------
    root
        The directory of cluster directories.
    owner
        The id of this head's cluster.
    variables
        Environment variables by which commands find the jobs of a cluster on another system.
    """

    def __init__(
        self,
        root: Path,
        backend: Backend,
        user: str,
        owner: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.owner = owner
        self.unwritten: Ledger | None = None
        self.seen = self.changed = -1.0
        all_jobs = backend.status(user, ())
        self.by_ids = backend.status(user, ("1",)) != all_jobs
        found = {**os.environ, **(variables or {})}
        selecting = [f"{name}={found[name]}" for name in backend.selecting if name in found]
        programs = [shutil.which(word) or "" for word in all_jobs[:4]]
        key = json.dumps([os.uname().nodename, user, backend.name, selecting, programs])
        stem = f".{backend.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        self.ledger_file = root / f"{stem}.ledger"
        self.answer_file = root / f"{stem}.answer"
        self.lock_file = root / f"{stem}.lock"

    async def wait_for_room(self) -> None:
        """Wait until the limit has room for one more command, and take it."""
        while (seconds := await asyncio.to_thread(self.take_room)) > 0:  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(min(seconds, 1.0))

    def take_room(self, *, always: bool = False, most: int = CALLS_PER_MINUTE) -> float:
        """Count one command and return 0, or return the seconds until there is room for it."""
        now = boot_time()
        with self.changing() as ledger:
            if len(ledger.calls) >= most and not always:
                return max(ledger.calls[0] + MINUTE - now, SHORTEST_WAIT)
            ledger.calls += (now,)
        return 0.0

    def note_change(self) -> None:
        """Remember that older answers do not show the change that this head has made now."""
        self.changed = boot_time()

    async def poll(
        self,
        ids: Sequence[str],
        period: float,
        call: Callable[[Sequence[str]], Awaitable[Listing | None]],
    ) -> Poll:
        """Return a listing: another head's if it is fresh, else the result of ``call``.

        Parameters
        ----------
        ids
            This cluster's jobs; if empty, one of them is lost and the listing must have all jobs.
        period
            Seconds between two listings.
        call
            Asks the system about ids and returns its listing, or None without an answer.
        """
        about = tuple(ids) or None if self.by_ids else None
        choice, seconds, ledger = await asyncio.to_thread(self.claim, about, period)
        if choice is Choice.WAIT:
            return Poll(False, again=seconds)
        if choice is Choice.USE:
            return await asyncio.to_thread(self.use, ledger)
        listing = await call(ledger.listed or ())
        started = ledger.started or 0.0
        await asyncio.to_thread(self.finish, started, listing)
        self.seen = started
        return Poll(True) if listing is None else Poll(True, listing.jobs, listing.words)

    def claim(self, ids: tuple[str, ...] | None, period: float) -> tuple[Choice, float, Ledger]:
        """Choose the next step; if it is to ask, become the only head that asks."""
        now = boot_time()
        with self.changing() as ledger:
            wanted = {k: v for k, v in ledger.wanted.items() if now - v[0] < REMEMBERED}
            then, known = wanted.get(self.owner, (0.0, None))
            if ids is not None and (known != list(ids) or now - then > REMEMBERED / 3):
                ledger.wanted = {**wanted, self.owner: [now, list(ids)]}
            if ledger.holder and not self.is_busy(ledger, now):
                ledger.holder, ledger.started = "", None
            seen, changed = self.seen, self.changed
            choice, seconds = choose(
                ledger, now=now, period=period, ids=ids, seen=seen, changed=changed
            )
            if choice is Choice.CALL:
                ledger.calls += (now,)
                ledger.started, ledger.holder, ledger.process = now, self.owner, this_process()
                others = (id for _, theirs in ledger.wanted.values() for id in theirs)
                ledger.listed = None if ids is None else tuple(dict.fromkeys((*ids, *others)))
        return choice, seconds, ledger

    def is_busy(self, ledger: Ledger, now: float) -> bool:
        """Return whether another head waits for an answer: not this one, and none that died."""
        in_time = ledger.started is not None and now - ledger.started < HOLDER_SECONDS
        lives = ledger.process is not None and is_alive(ledger.process) is not False
        return ledger.holder != self.owner and in_time and lives

    def finish(self, started: float, listing: Listing | None) -> None:
        """Write the system's answer, or that there was none."""
        took = boot_time() - started
        with self.changing() as ledger:
            if ledger.started != started:
                return  # so late that another head has asked meanwhile
            ledger.holder, ledger.process = "", None
            if listing is None:
                ledger.failures += 1
                # A command that hangs is followed by a pause as long as itself.
                ledger.seconds = max(ledger.seconds, took / SLOWNESS)
                return
            ledger.failures, ledger.seconds = 0, took
            jobs = [to_json(status) for status in listing.jobs.values()]
            self.write(
                self.answer_file, {"started": started, "jobs": jobs, "words": list(listing.words)}
            )

    def use(self, ledger: Ledger) -> Poll:
        """Return the last answer, which another head has got."""
        if ledger.failures:
            self.seen = ledger.started or self.seen
            return Poll(True)
        try:
            answer = json.loads(self.answer_file.read_bytes())
            jobs = [from_json(JobStatus, job) for job in answer["jobs"]]
            words = tuple(map(str, answer.get("words", ())))
            started = float(answer["started"])
        except (OSError, *DAMAGE):
            return Poll(False, again=BUSY_SECONDS)
        if started != ledger.started:
            return Poll(False, again=BUSY_SECONDS)
        self.seen = started
        return Poll(True, {job.id: job for job in jobs}, words)

    @contextlib.contextmanager
    def changing(self) -> Iterator[Ledger]:
        """Lock the ledger for a moment, and write it if the block changes it."""
        with _locked(self.lock_file):
            ledger = self.read()
            before = to_json(ledger)
            yield ledger
            if (data := to_json(ledger)) != before:
                self.unwritten = None if self.write(self.ledger_file, data) else ledger

    def read(self) -> Ledger:
        """Return the ledger of this boot, without the commands that are over a minute old."""
        try:
            ledger = self.unwritten or from_json(Ledger, json.loads(self.ledger_file.read_bytes()))
        except (OSError, *DAMAGE):
            return Ledger(boot_id())
        if ledger.boot != boot_id():
            return Ledger(boot_id())
        now = boot_time()
        return replace(ledger, calls=tuple(call for call in ledger.calls if now - call < MINUTE))

    def write(self, path: Path, data: Any) -> bool:
        """Write a file, and return whether that succeeded."""
        try:
            write_private(path, json.dumps(data).encode())
        except GpuClusterError as error:
            logger.warning("%s %s", error.message, error.hint)
            return False
        return True


def boot_time() -> float:
    """Return seconds since boot: a clock that all processes of a host share and no user sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; go on without it if its file system has none or it takes too long."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            stack.enter_context(locked(path, LOCK_SECONDS))
        yield
