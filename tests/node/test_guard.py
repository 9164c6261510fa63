"""A job ends when neither its lease nor its scheduler's address shows life, and never before."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.certificates import make_certificates
from jupyter_gpucluster.node import guard
from jupyter_gpucluster.node.guard import Guard
from tests.mounting import ROOT_ONLY, failing, fill_inodes, mounted
from tests.waiting import until

LOOKS = 6
"""Looks without a sign of life that are 180 s."""
QUARTER = 30
"""Looks of 15 minutes."""
SCHEDULER = """
import asyncio, json, sys
from pathlib import Path
from distributed import Scheduler
from jupyter_gpucluster.head.worker import security_of
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory

async def main(directory, protocol):
    security = {"security": security_of(directory.tls, "scheduler")} if protocol == "tls" else {}
    options = {"host": "127.0.0.1", "port": 0, "protocol": protocol, "dashboard": False}
    async with Scheduler(**options, **security) as scheduler:
        directory.scheduler_file.write_text(json.dumps(scheduler.identity(), default=str))
        await scheduler.finished()

asyncio.run(main(ClusterDirectory(Path(sys.argv[1])), sys.argv[2]))
"""


@contextlib.contextmanager
def scheduler(directory: ClusterDirectory, protocol: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Dask's scheduler of a cluster."""
    process = subprocess.Popen([sys.executable, "-c", SCHEDULER, str(directory.path), protocol])
    try:
        until(directory.scheduler_file.exists)
        yield process
    finally:
        process.kill()
        process.wait()


def make_cluster(place: Path) -> ClusterDirectory:
    place.mkdir(exist_ok=True, parents=True)
    directory = ClusterDirectory(place / "abc123")
    directory.create()
    make_certificates(directory.tls, cluster=directory.id, seconds=3600)
    directory.renew_lease()
    return directory


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterDirectory:
    monkeypatch.setattr(guard, "WAIT_SECONDS", 2.0)
    return make_cluster(tmp_path / "state")


def guard_of(directory: ClusterDirectory) -> Guard:
    """Return a guard that has seen a lease, as at the start of a job."""
    made = Guard(str(directory.path), "gpc-abc123-1_0", late=45, limit=180)
    assert not made.look()
    return made


def lost_at(made: Guard, looks: int = QUARTER, before: Callable[[], object] = str) -> int | None:
    """Return the look at which the job is lost, None if it is not."""
    for number in range(1, looks + 1):
        before()
        if made.look():
            return number
    return None


def age(directory: ClusterDirectory, seconds: float = 400.0) -> None:
    then = time.time() - seconds
    os.utime(directory.lease, (then, then))


@contextlib.contextmanager
def old(directory: ClusterDirectory) -> Iterator[None]:
    age(directory)
    yield


@contextlib.contextmanager
def moved(directory: ClusterDirectory) -> Iterator[None]:
    place = directory.path.parent
    place.rename(place.with_name("away"))
    yield
    place.with_name("away").rename(place)


def stale(directory: ClusterDirectory) -> contextlib.AbstractContextManager[None]:
    return failing(directory.path, errno.ESTALE)


DISKS = [
    old,
    moved,
    pytest.param(stale, marks=ROOT_ONLY),
    pytest.param(lambda directory: failing(directory.path), id="hanging", marks=ROOT_ONLY),
]
Disk = Callable[[ClusterDirectory], contextlib.AbstractContextManager[None]]


@pytest.mark.slow
@pytest.mark.parametrize("disk", DISKS)
def test_a_quarter_of_an_hour_without_the_lease_ends_nothing_while_the_scheduler_answers(
    directory: ClusterDirectory, disk: Disk
) -> None:
    with scheduler(directory, "tls") as process:
        made = guard_of(directory)
        with disk(directory):
            assert lost_at(made) is None
            process.kill()
            process.wait()
            assert lost_at(made) == LOOKS


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["tls", "tcp"])
def test_a_stopped_scheduler_does_not_answer_and_one_that_goes_on_does(
    directory: ClusterDirectory, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scheduler(directory, protocol) as process:
        made = guard_of(directory)
        age(directory)
        made.look()  # it changed: the last time that this is a sign of life
        monkeypatch.setattr(guard, "WAIT_SECONDS", 0.3)
        process.send_signal(signal.SIGSTOP)
        assert lost_at(made, LOOKS - 1) is None
        process.send_signal(signal.SIGCONT)
        monkeypatch.setattr(guard, "WAIT_SECONDS", 10.0)
        assert lost_at(made, 3) is None
        assert not made.silent
        monkeypatch.setattr(guard, "WAIT_SECONDS", 0.3)
        process.send_signal(signal.SIGSTOP)
        assert lost_at(made) == LOOKS
    assert "was not renewed" in made.reason


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["tls", "tcp"])
def test_another_listener_at_the_address_is_no_answer(
    directory: ClusterDirectory, tmp_path: Path, protocol: str
) -> None:
    other = make_cluster(tmp_path / "other")
    with scheduler(directory, protocol), scheduler(other, protocol):
        addresses = [json.loads(each.scheduler_file.read_text()) for each in (directory, other)]
        wrong = {**addresses[0], "address": addresses[1]["address"]}
        directory.scheduler_file.write_text(json.dumps(wrong))
        made = guard_of(directory)
        directory.lease.unlink()
        assert lost_at(made) == LOOKS
    assert "could not be read" in made.reason


def test_a_silent_listener_at_the_address_is_no_answer(
    directory: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "WAIT_SECONDS", 0.2)
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        directory.scheduler_file.write_text(json.dumps({"address": address, "id": "S-1"}))
        made = guard_of(directory)
        directory.lease.unlink()
        assert lost_at(made) == LOOKS


@pytest.mark.parametrize("known", [None, "", {"address": "ucx://127.0.0.1:9", "id": "S-1"}])
def test_without_a_scheduler_that_can_be_asked_the_lease_alone_counts(
    directory: ClusterDirectory, known: object
) -> None:
    if known is not None:
        directory.scheduler_file.write_text(json.dumps(known))
    made = guard_of(directory)
    assert lost_at(made) is None
    age(directory)
    assert lost_at(made) == LOOKS + 1


def test_each_renewal_is_a_sign_of_life_whatever_the_clocks_say(
    directory: ClusterDirectory,
) -> None:
    made, seconds = guard_of(directory), iter(range(10_000, 0, -100))
    assert lost_at(made, before=lambda: age(directory, next(seconds))) is None
    age(directory, -9_000)  # the file server's clock was set back
    assert lost_at(made) == LOOKS + 1


def test_one_readable_lease_in_five_looks_is_enough(directory: ClusterDirectory) -> None:
    made, number = guard_of(directory), iter(range(QUARTER))

    def renew_or_lose() -> None:
        if next(number) % 5:
            directory.lease.unlink(missing_ok=True)
        else:
            directory.renew_lease()

    assert lost_at(made, before=renew_or_lose) is None


@ROOT_ONLY
@pytest.mark.parametrize("looked", [True, False])
def test_the_guard_works_where_no_file_can_be_made(tmp_path: Path, looked: bool) -> None:
    with mounted(tmp_path / "state", "nr_inodes=24,size=1m,mode=0700") as place:
        directory = make_cluster(place)
        made = Guard(str(directory.path), "gpc-abc123-1_0", late=45, limit=180)
        if looked:
            made.look()
        fill_inodes(place)
        assert lost_at(made, before=lambda: age(directory, made.silent + 1)) is None
        age(directory, 100)
        assert lost_at(made) == LOOKS + 1
