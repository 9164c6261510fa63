"""A head ends with its directory only where that was removed: not unmounted, hidden or silent."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.head import state_files
from jupyter_gpucluster.head.state_files import Look, RemovalWatch, is_missing, is_removed
from tests.waiting import until


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "gpucluster" / "clusters" / "abc123"
    made.mkdir(parents=True)
    return made


def device(path: Path) -> int:
    return path.stat().st_dev


# One look.


def test_a_directory_that_is_there_is_not_missing(directory: Path) -> None:
    assert not is_missing(directory, device(directory))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_removed_directory_is_missing_also_with_its_parents(directory: Path, depth: int) -> None:
    was_on = device(directory)
    top = (directory, *directory.parents)[depth]
    top.rename(top.parent / "elsewhere")
    assert is_missing(directory, was_on)


def test_another_directory_of_the_name_is_not_a_removal(directory: Path) -> None:
    was_on = device(directory)
    directory.rename(directory.parent / "old")
    directory.mkdir()  # restored from a backup, say
    assert not is_missing(directory, was_on)


def test_a_file_of_the_name_is_not_a_removal(directory: Path) -> None:
    was_on = device(directory)
    directory.rmdir()
    directory.write_text("")
    assert not is_missing(directory, was_on)
    directory.unlink()
    directory.parent.rmdir()
    directory.parent.write_text("")
    assert not is_missing(directory, was_on)


def test_what_is_on_another_device_was_unmounted(directory: Path) -> None:
    was_on = device(directory) + 1
    directory.rmdir()
    assert not is_missing(directory, was_on)


def test_a_link_that_leads_nowhere_is_not_a_removal(tmp_path: Path) -> None:
    (tmp_path / "scratch" / "clusters" / "abc123").mkdir(parents=True)
    link = tmp_path / "gpucluster"
    link.symlink_to(tmp_path / "scratch")
    was_on = device(link)
    (tmp_path / "scratch").rename(tmp_path / "away")
    assert not is_missing(link / "clusters" / "abc123", was_on)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ESTALE, errno.EIO])
def test_an_error_tells_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    was_on = device(directory)
    directory.rmdir()

    def fail(path: object) -> list[str]:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(state_files.os, "listdir", fail)  # type: ignore[attr-defined]  # not exported
    with pytest.raises(OSError, match=os.strerror(number)):
        is_missing(directory, was_on)


# Many looks.


def looks(text: str, every: float = 5.0) -> list[Look]:
    """Return a look for each character; ``x`` has missed the directory."""
    return [(number * every, character == "x") for number, character in enumerate(text)]


@pytest.mark.parametrize(
    "text, removed",
    [
        ("", False),
        ("....", False),
        ("x" * 12, False),
        ("x" * 13, True),
        ("..." + "x" * 13, True),
        ("x" * 12 + ".", False),
        ("x" * 12 + "." + "x" * 12, False),
        ("x" * 6 + "." + "x" * 13, True),
    ],
)
def test_every_look_of_a_minute_must_miss_it(text: str, removed: bool) -> None:
    assert is_removed(looks(text)) is removed


def test_few_looks_prove_nothing_however_long_they_took() -> None:
    assert not is_removed([(0.0, True), (600.0, True)])


def test_many_looks_at_once_prove_nothing() -> None:
    assert not is_removed(looks("x" * 100, every=0.5))


# The watch.


class Told:
    count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def watch(directory: Path, told: Told) -> Iterator[RemovalWatch]:
    made = RemovalWatch(directory, told, seconds=0.5, every=0.05)
    yield made
    made.close()


def test_a_removal_is_reported_once(directory: Path, told: Told, watch: RemovalWatch) -> None:
    time.sleep(0.2)
    directory.rmdir()
    begun = time.monotonic()
    until(lambda: watch.removed)
    assert time.monotonic() - begun >= 0.5
    time.sleep(0.2)
    assert told.count == 1


def test_what_comes_back_in_time_was_not_removed(
    directory: Path, told: Told, watch: RemovalWatch
) -> None:
    for _ in range(3):
        directory.rename(directory.parent / "away")
        time.sleep(0.3)
        (directory.parent / "away").rename(directory)
        time.sleep(0.3)
    assert not watch.removed
    assert not told.count


def test_a_look_that_hangs_has_missed_nothing(
    directory: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def hang(path: Path, device: int) -> bool:
        released.wait(0.3)
        return True

    monkeypatch.setattr(state_files, "is_missing", hang)
    watch = RemovalWatch(directory, told, seconds=0.5, every=0.05)
    time.sleep(2.0)
    released.set()
    watch.close()
    assert not watch.removed
