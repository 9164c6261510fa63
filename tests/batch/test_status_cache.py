"""Heads that share a batch system: one call for all, fewer when it is slow, within a budget."""

from __future__ import annotations

import asyncio
import fcntl
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import find_backend, status_cache
from jupyter_gpucluster.batch.queue import ProcessRunner, Queue, for_user
from jupyter_gpucluster.batch.status_cache import (
    AFTER_CHANGE,
    ASKED_PER_MINUTE,
    BUSY_SECONDS,
    CALLS_PER_MINUTE,
    HOLDER_SECONDS,
    LONGEST_PERIOD,
    READS_PER_MINUTE,
    Ledger,
    Poll,
    StatusCache,
)
from jupyter_gpucluster.core.errors import BackendUnavailable
from jupyter_gpucluster.core.job import CommandResult, JobState, Submission
from tests.commands import put_command

PERIOD = 30.0
ROW = "7000_0|RUNNING|None|c1|2026-11-28T00:00:00|2026-11-28T01:00:00|0|gpc-abc123-1|"


class Clock:
    """The time since boot, as a test tells it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stop the clock that heads share."""
    clock = Clock()
    monkeypatch.setattr(status_cache, "boot_time", clock)
    return clock


class Site:
    """A Slurm whose squeue counts how often it is called, and heads that ask it."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = home / "clusters"
        self.root.mkdir()
        self.answer = home / "answer"
        self.answer.write_text(ROW + "\n")
        scripts = {"squeue": f'cat "{self.answer}"'}
        scripts |= dict.fromkeys(("scancel", "sbatch", "sacct", "scontrol"), ":")
        self.logs = {
            name: put_command(home, monkeypatch, name, script) for name, script in scripts.items()
        }

    def head(self, owner: str = "abc123", backend: str = "slurm") -> Queue:
        """Return a head's way to the system."""
        dialect = find_backend(backend)
        return Queue(dialect, ProcessRunner(), StatusCache(self.root, dialect, "ann", owner))

    def calls(self, name: str = "squeue") -> int:
        """Count the calls of a command so far."""
        log = self.logs[name]
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def site(home: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Return a site whose commands count their calls."""
    return Site(home, monkeypatch)


async def test_many_heads_make_one_call_a_period_and_all_get_its_answer(
    site: Site, clock: Clock
) -> None:
    async def news(head: Queue) -> Poll:
        while not (poll := await head.look(["7000_0"], PERIOD)).asked:
            assert poll.again == BUSY_SECONDS
            await asyncio.sleep(0.01)
        return poll

    heads = [site.head(f"head{number}") for number in range(6)]
    for period in range(1, 5):
        polls = await asyncio.gather(*map(news, heads))
        assert site.calls() == period
        for poll in polls:
            assert poll.listing is not None
            assert poll.listing["7000_0"].state is JobState.RUNNING
        clock.now += PERIOD


async def test_a_head_gets_each_answer_once(site: Site, clock: Clock) -> None:
    head = site.head()
    assert (await head.look(["7000_0"], PERIOD)).asked
    clock.now += PERIOD - 1
    assert await head.look(["7000_0"], PERIOD) == Poll(False, again=1.0)
    assert site.calls() == 1


async def test_listings_follow_a_change_after_2_5_and_10_seconds(site: Site, clock: Clock) -> None:
    head, other = site.head(), site.head("other")
    await head.look([], PERIOD)
    await head.cancel(["7000_0"])
    began, when = clock.now, []
    for _ in range(60):
        before = site.calls()
        await head.look([], PERIOD)
        if site.calls() > before:
            when.append(clock.now - began)
        clock.now += 1.0
    assert when == [2, 5, 10, 40]
    # An answer from before the change says nothing about it to its own head, but all to others.
    assert (await other.look([], PERIOD)).asked
    assert site.calls() == 5


async def test_changes_one_after_the_other_do_not_delay_listings_and_a_repeated_one_adds_none(
    site: Site, clock: Clock
) -> None:
    head = site.head()
    await head.look([], PERIOD)
    for _ in range(3):
        await head.cancel(["7000_0"])
        clock.now += 1.0
        await head.look([], PERIOD)
    assert site.calls() == 2
    clock.now += 30.0
    await head.look([], PERIOD)
    await head.cancel(["7000_0"], again=True)
    clock.now += AFTER_CHANGE[-1]
    assert not (await head.look([], PERIOD)).asked
    clock.now += PERIOD
    assert (await head.look([], PERIOD)).asked


async def test_no_answer_changes_nothing_and_is_heard_by_all_and_makes_calls_rarer(
    site: Site, clock: Clock
) -> None:
    heads = [site.head(), site.head("other")]
    site.answer.unlink()
    for number, wait in enumerate((2 * PERIOD, 4 * PERIOD, 8 * PERIOD), 1):
        polls = [await head.look(["7000_0"], PERIOD) for head in heads]
        assert polls == [Poll(True), Poll(True)]
        assert site.calls() == number
        clock.now += wait - 1
        assert [(await head.look([], PERIOD)).asked for head in heads] == [False, False]
        clock.now += 1
    site.answer.write_text(ROW + "\n")
    assert (await heads[0].look([], PERIOD)).listing
    clock.now += PERIOD
    assert (await heads[0].look([], PERIOD)).listing


class Hang:
    """A head that waits for an answer until a test gives it."""

    def __init__(self, head: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
        self.head = head
        self.answer = asyncio.Event()
        monkeypatch.setattr(head.runner, "run", self.run)

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        await self.answer.wait()
        return CommandResult(tuple(argv), 0, ROW)

    async def start(self) -> asyncio.Task[Poll]:
        """Let the head ask; return once it does."""
        asking = asyncio.create_task(self.head.look([], PERIOD))
        while not self.head.shared.ledger_file.exists():  # type: ignore[union-attr]  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return asking


async def test_a_head_does_not_stand_still_while_another_one_waits_for_a_slow_answer(
    site: Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, head = Hang(site.head("slow"), monkeypatch), site.head()
    asking = await slow.start()
    for _ in range(2):
        assert await head.look([], PERIOD) == Poll(False, again=BUSY_SECONDS)
        clock.now += PERIOD
    slow.answer.set()
    assert (await asking).listing
    assert (await head.look([], PERIOD)).asked
    assert site.calls() == 0


async def test_the_turn_of_a_head_that_died_is_free_at_once(
    site: Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = await Hang(site.head("dead"), monkeypatch).start()
    asking.cancel()
    monkeypatch.setattr(status_cache, "is_alive", lambda process: False)
    assert (await site.head().look([], PERIOD)).listing
    assert site.calls() == 1


async def test_the_turn_of_a_head_that_does_not_end_passes_and_its_late_answer_is_its_own(
    site: Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, head = Hang(site.head("slow"), monkeypatch), site.head()
    asking = await slow.start()
    clock.now += HOLDER_SECONDS
    site.answer.write_text(ROW.replace("RUNNING", "PENDING") + "\n")
    assert (await head.look([], PERIOD)).listing
    slow.answer.set()
    assert ((await asking).listing or {})["7000_0"].state is JobState.RUNNING
    shown = (await site.head("third").look([], PERIOD)).listing or {}
    assert shown["7000_0"].state is JobState.PENDING
    assert site.calls() == 1


async def test_a_lock_that_is_not_released_delays_a_head_but_stops_none(
    site: Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_cache, "LOCK_SECONDS", 0.05)
    head = site.head()
    with head.shared.lock_file.open("w") as lock:  # type: ignore[union-attr]  # it has one
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert (await head.look([], PERIOD)).listing


async def test_systems_that_list_by_id_are_asked_for_the_jobs_of_all_heads(
    site: Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = site.head("first", "pbs"), site.head("second", "pbs")
    asked: list[Sequence[str]] = []

    async def run(argv: Sequence[str], stdin: str = "") -> CommandResult:
        asked.append(argv[-2:])
        return CommandResult(tuple(argv), 0, '{"Jobs": {}}')

    monkeypatch.setattr(first.runner, "run", run)
    monkeypatch.setattr(second.runner, "run", run)
    await first.look(["1.server"], PERIOD)
    # Its job is not in the last answer, so that it must ask, soon.
    assert not (await second.look(["2.server"], PERIOD)).asked
    clock.now += AFTER_CHANGE[0]
    assert (await second.look(["2.server"], PERIOD)).asked
    assert (await first.look(["1.server"], PERIOD)).asked
    assert [sorted(ids) for ids in asked[1:]] == [["1.server", "2.server"]]


async def test_submitting_and_cancelling_count_and_wait_for_room(site: Site, clock: Clock) -> None:
    head = site.head()
    for _ in range(CALLS_PER_MINUTE - 1):
        await asyncio.to_thread(head.shared.take, "calls")  # type: ignore[union-attr]  # it has one
    await head.cancel(["7000_0"])
    late = asyncio.create_task(head.submit(Submission("gpc-abc123-2", "/x.sh")))
    clock.now += 1.0
    done, _ = await asyncio.wait([late], timeout=0.2)
    assert not done
    assert site.calls("sbatch") == 0
    clock.now += 60.0
    with pytest.raises(BackendUnavailable):
        await late
    assert (site.calls("scancel"), site.calls("sbatch")) == (1, 1)


class Counts:
    """Answers each command at once, and counts those that read."""

    reads = 0

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        self.reads += argv[0] != "scancel"
        return CommandResult(tuple(argv), 0, ROW if argv[0] == "squeue" else "")


async def test_all_that_repeats_itself_makes_six_reads_a_minute(home: Path, clock: Clock) -> None:
    slurm, site = find_backend("slurm"), Counts()
    heads = [Queue(slurm, site, StatusCache(home, slurm, "ann", f"h{n}")) for n in range(4)]
    for second in range(0, 300, 2):
        head = heads[second % 4]
        await head.cancel(["7000_0"])
        await head.look(["7000_0"], PERIOD)
        await head.trace({"7000_1": "gpc-abc123-1"})
        clock.now += 2.0
    assert 5 * (READS_PER_MINUTE - 1) <= site.reads <= 5 * READS_PER_MINUTE


async def test_a_site_with_a_shorter_period_has_more_room(home: Path, clock: Clock) -> None:
    slurm = find_backend("slurm")
    head = Queue(slurm, Counts(), StatusCache(home, slurm, "ann", "a", period=1.0))
    for _ in range(30):
        assert (await head.look([], 1.0)).asked
        clock.now += 1.0


async def test_what_users_start_reuses_answers_and_waits_at_its_own_limit(
    site: Site, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    slurm, counts = find_backend("slurm"), Counts()
    user = for_user(slurm, counts, site.root)
    for number in range(2 * ASKED_PER_MINUTE):
        assert (await user.run(["squeue", str(number // 2)])).stdout == ROW
    assert counts.reads == ASKED_PER_MINUTE
    late = asyncio.create_task(user.run(["squeue", "more"]))
    done, _ = await asyncio.wait([late], timeout=0.2)
    assert not done
    assert "Slurm gets 20 commands a minute at most. Waiting 60 s." in caplog.text
    assert (await site.head().look([], PERIOD)).asked  # heads have room of their own
    clock.now += 60.0
    assert (await late).exit_code == 0
    await user.run(["squeue", "0"])
    assert counts.reads == ASKED_PER_MINUTE + 2


async def test_the_files_are_the_users_alone_and_outlive_damage(site: Site, clock: Clock) -> None:
    head = site.head()
    await head.look([], PERIOD)
    files = [path for path in site.root.iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    for path in files:
        path.write_text("{")
    clock.now += PERIOD
    assert (await head.look([], PERIOD)).listing
    assert site.calls() == 2


async def test_where_nothing_can_be_written_each_head_keeps_to_the_period_by_itself(
    site: Site, clock: Clock, home: Path
) -> None:
    head = site.head()
    head.shared.ledger_file = head.shared.answer_file = home / "no" / "such"  # type: ignore[union-attr]
    assert (await head.look([], PERIOD)).listing
    assert not (await head.look([], PERIOD)).asked
    clock.now += PERIOD
    assert (await head.look([], PERIOD)).listing
    assert site.calls() == 2


def test_other_sites_users_and_systems_have_files_of_their_own(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stem(user: str = "ann", backend: str = "slurm") -> Path:
        return StatusCache(site.root, find_backend(backend), user, "abc123").ledger_file

    stems = {stem(), stem("bob"), stem(backend="sge")}
    monkeypatch.setenv("SLURM_CONF", "/elsewhere/slurm.conf")
    assert len(stems | {stem()}) == 4


@pytest.mark.parametrize(
    "took,failures,period",
    [(0.05, 0, PERIOD), (4.0, 0, 40.0), (20.0, 0, 200.0), (60.0, 0, LONGEST_PERIOD),
     (60.0, 50, LONGEST_PERIOD)],
)  # fmt: skip
def test_the_slower_the_answer_the_longer_the_period_up_to_five_minutes(
    home: Path, took: float, failures: int, period: float
) -> None:
    ledger = Ledger(started=100.0, seconds=took, failures=failures)
    cache = StatusCache(home, find_backend("slurm"), "ann", "abc123")
    cache.seen = 100.0
    assert cache.choose(ledger, 100.0 + period - 1, PERIOD, None) == ("wait", 1.0)
    assert cache.choose(ledger, 100.0 + period, PERIOD, None) == ("call", 0.0)


async def test_a_command_that_hung_is_followed_by_a_pause_as_long_as_itself(
    home: Path, clock: Clock
) -> None:
    async def hang(ids: Sequence[str]) -> None:
        clock.now += 60.0

    cache = StatusCache(home, find_backend("slurm"), "ann", "abc123")
    assert await cache.poll([], PERIOD, hang) == Poll(True)
    clock.now += 59.0
    assert await cache.poll([], PERIOD, hang) == Poll(False, again=1.0)
    clock.now += 1.0
    assert await cache.poll([], PERIOD, hang) == Poll(True)
