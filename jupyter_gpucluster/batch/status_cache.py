"""Few commands for all clusters of a user: heads on one host share answers and limits.

Listings come soon after a change, and seldom otherwise.  All that repeats itself keeps to one limit
of commands a minute, and so does what users start.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal

from ..core.cluster import Process
from ..core.errors import GpuClusterError
from ..core.job import CommandResult, JobStatus
from ..core.serialize import from_json, to_json
from ..host.private_files import DAMAGE, locked, write_private
from ..host.processes import boot_id, is_alive, this_process
from .base import Backend

logger = logging.getLogger("gpucluster.head")

CALLS_PER_MINUTE = 60
"""Limit of commands of all kinds that a user's processes on one host send to one batch system.
Submit and cancel commands wait for room."""
READS_PER_MINUTE = 6
"""Limit of listings and look-ups that repeat themselves, at the usual `PERIOD`."""
ASKED_PER_MINUTE = 20
"""Limit of commands that users start, such as a form that shows free GPUs; they wait for room."""
REUSED_SECONDS = 60.0
"""An answer to a user is given again for so long."""
PERIOD = 30.0
"""Seconds between two listings while a job waits or ends."""
CALM = 4
"""While all jobs run and their workers are connected, the period is so many times as long."""
AFTER_CHANGE = (2.0, 5.0, 10.0)
"""Seconds from a submission, a cancellation or a doubt to the listings that follow it."""
MINUTE = 60.0
SLOWNESS = 10.0
"""Listings take a tenth of the time at most: a listing of 6 s is made once a minute."""
LONGEST_PERIOD = 300.0
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
    reads: tuple[float, ...] = ()
    """Times of those that read and repeat themselves."""
    asked: tuple[float, ...] = ()
    """Times of those that a user started."""
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


Step = Literal["call", "use", "wait"]
"""Next step of a head that needs a listing."""


def reads_per_minute(period: float) -> int:
    """Return the limit of reading commands, which a site's shorter period raises."""
    return max(READS_PER_MINUTE, round(READS_PER_MINUTE * PERIOD / max(period, 1.0)))


class StatusCache:
    """Files through which a user's processes on one host share one batch system.

    They lie beside the cluster directories.  If they cannot be written or locked, each head asks
    for itself.

    Parameters
    ----------
    root
        The directory of cluster directories.
    owner
        The id of this head's cluster.
    environment
        Variables of the commands, by which they find one of several systems.
    period
        Seconds between two listings at this site.
    """

    def __init__(
        self,
        root: Path,
        backend: Backend,
        user: str,
        owner: str,
        environment: Mapping[str, str] = os.environ,
        period: float = PERIOD,
    ) -> None:
        self.owner = owner
        self.title = backend.title
        self.unwritten: Ledger | None = None
        self.seen = -1.0
        """Start of the last listing that this head has used."""
        self.changed = -1.0
        """Time of this head's last change: older answers do not show it."""
        self.marked: tuple[float, ...] = ()
        """Times of the listings that follow changes, in order."""
        self.limits = {
            "calls": CALLS_PER_MINUTE,
            "reads": reads_per_minute(period),
            "asked": ASKED_PER_MINUTE,
        }
        all_jobs = backend.status(user, ())
        self.by_ids = backend.status(user, ("1",)) != all_jobs
        chosen = {name: environment.get(name) for name in backend.selecting}
        selecting = [f"{name}={value}" for name, value in chosen.items() if value is not None]
        programs = [shutil.which(word) or "" for word in all_jobs[:4]]
        key = json.dumps([os.uname().nodename, user, backend.name, selecting, programs])
        stem = f".{backend.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        self.ledger_file = root / f"{stem}.ledger"
        self.answer_file = root / f"{stem}.answer"
        self.asked_file = root / f"{stem}.asked"
        self.lock_file = root / f"{stem}.lock"

    async def wait_for_room(self, kind: str = "calls") -> None:
        """Wait until the limit has room for one more command of a kind, and take it.

        Parameters
        ----------
        kind
            A key of `limits`: ``calls`` for commands that submit or cancel, ``asked`` for those
            that a user started.
        """
        reported = kind == "calls"
        while (seconds := await asyncio.to_thread(self.take, kind)) > 0:
            if not reported:
                # Without a handler, as in a terminal, Python prints it on standard error.
                words = "%s gets %d commands a minute at most. Waiting %.0f s."
                logger.warning(words, self.title, self.limits[kind], seconds)
            reported = True
            await asyncio.sleep(min(seconds, 1.0))

    def take(self, kind: str) -> float:
        """Count a command of a kind; return 0, or the seconds until there is room for it.

        Look-ups (``reads``) leave room for one listing.
        """
        now = boot_time()
        with self.changing() as ledger:
            times: tuple[float, ...] = getattr(ledger, kind)
            if len(times) >= self.limits[kind] - (kind == "reads"):
                return max(times[0] + MINUTE - now, SHORTEST_WAIT)
            ledger.calls += (now,)
            if kind != "calls":
                setattr(ledger, kind, (*times, now))
        return 0.0

    async def answer_user(
        self, argv: Sequence[str], call: Callable[[], Awaitable[CommandResult]]
    ) -> CommandResult:
        """Return the answer of a command that a user started, perhaps one of the last minute.

        Parameters
        ----------
        call
            Runs the command.
        """
        if (known := await asyncio.to_thread(self.recent, argv)) is not None:
            return known
        await self.wait_for_room("asked")
        result = await call()
        if result.exit_code == 0:
            await asyncio.to_thread(self.keep, result)
        return result

    def recent(self, argv: Sequence[str]) -> CommandResult | None:
        """Return the answer to a user's command of the last minute, None if there is none."""
        for when, result in self._answers():
            if result.argv == tuple(argv) and when > self.changed:
                return result
        return None

    def keep(self, result: CommandResult) -> None:
        """Keep an answer for the next user's command that is the same."""
        with self.changing():
            others = [pair for pair in self._answers() if pair[1].argv != result.argv]
            pairs = [*others[-ASKED_PER_MINUTE:], (boot_time(), result)]
            self.write(self.asked_file, [[boot_id(), when, to_json(one)] for when, one in pairs])

    def _answers(self) -> list[tuple[float, CommandResult]]:
        now = boot_time()
        try:
            return [
                (when, from_json(CommandResult, data))
                for boot, when, data in json.loads(self.asked_file.read_bytes())
                if boot == boot_id() and now - when < REUSED_SECONDS
            ]
        except (OSError, *DAMAGE):
            return []

    def note_change(self, when: float | None = None, *, soon: bool = True) -> None:
        """Remember that older answers do not show this head's change or doubt.

        Parameters
        ----------
        when
            Its time since boot; by default now.
        soon
            Whether listings follow within seconds.
        """
        self.changed = boot_time() if when is None else when
        if soon:
            first, *more = (self.changed + seconds for seconds in AFTER_CHANGE)
            # The one of an earlier change stays: else changes one after the other delay them all.
            earlier = [mark for mark in self.marked if self.changed < mark < first]
            self.marked = (min([*earlier, first]), *more)

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
        step, seconds, ledger = await asyncio.to_thread(self.claim, about, period)
        if step == "wait":
            return Poll(False, again=seconds)
        if step == "use":
            return await asyncio.to_thread(self.use, ledger)
        listing = await call(ledger.listed or ())
        started = ledger.started or 0.0
        await asyncio.to_thread(self.finish, started, listing)
        self.seen = started
        return Poll(True) if listing is None else Poll(True, listing.jobs, listing.words)

    def claim(self, ids: tuple[str, ...] | None, period: float) -> tuple[Step, float, Ledger]:
        """Choose the next step; if it is to ask, become the only head that asks."""
        now = boot_time()
        with self.changing() as ledger:
            wanted = {k: v for k, v in ledger.wanted.items() if now - v[0] < REMEMBERED}
            then, known = wanted.get(self.owner, (0.0, None))
            if ids is not None and (known != list(ids) or now - then > REMEMBERED / 3):
                ledger.wanted = {**wanted, self.owner: [now, list(ids)]}
            if ledger.holder and not self.is_busy(ledger, now):
                ledger.holder, ledger.started = "", None
            step, seconds = self.choose(ledger, now, period, ids)
            if step == "call":
                ledger.calls += (now,)
                ledger.reads += (now,)
                ledger.started, ledger.holder, ledger.process = now, self.owner, this_process()
                others = (id for _, theirs in ledger.wanted.values() for id in theirs)
                ledger.listed = None if ids is None else tuple(dict.fromkeys((*ids, *others)))
        return step, seconds, ledger

    def choose(
        self, ledger: Ledger, now: float, period: float, ids: Sequence[str] | None
    ) -> tuple[Step, float]:
        """Choose between asking, using the last answer and waiting; return the seconds to wait.

        Parameters
        ----------
        period
            Seconds between two listings, if the system answers quickly and nothing changes.
        ids
            The jobs that the listing must include; None = all of the user's.
        """
        if ledger.holder:
            return "wait", BUSY_SECONDS
        if (started := ledger.started) is None:
            return "call", 0.0
        slow = SLOWNESS * ledger.seconds
        due = started + min(LONGEST_PERIOD, max(period, slow) * 2 ** min(ledger.failures, 8))
        covers = ledger.listed is None or (ids is not None and set(ids) <= set(ledger.listed))
        if not ledger.failures:
            marked = next((mark for mark in self.marked if mark > started), inf)
            soon = marked if covers else started + AFTER_CHANGE[0]
            due = min(due, max(soon, started + slow))
        full = len(ledger.reads) >= self.limits["reads"]
        if due <= now and not full:
            return "call", 0.0
        if (ledger.failures or (covers and started > self.changed)) and started > self.seen:
            return "use", 0.0
        room = ledger.reads[0] + MINUTE - now if full else 0.0
        return "wait", max(due - now, room, SHORTEST_WAIT)

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
        for kind in ("calls", "reads", "asked"):
            recent = tuple(time for time in getattr(ledger, kind) if now - time < MINUTE)
            setattr(ledger, kind, recent)
        return ledger

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
