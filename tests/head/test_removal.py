"""A head ends with its directory only where that was removed: not unmounted, hidden or silent."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from jupyter_gpucluster.head import state_files
from jupyter_gpucluster.head.state_files import StateFiles, is_missing
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory


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


@pytest.mark.parametrize(
    "looks, needed",
    [
        ("x" * 13, 13),
        ("..." + "x" * 13, 16),
        ("x" * 12 + "." + "x" * 13, 26),
        ("x" * 12 + "e" + "x" * 13, 26),
        ("x" * 12 + "h" + "x" * 13, 26),
        ("x" * 12 + "." + "x" * 12, None),
    ],
)
async def test_every_look_of_a_minute_must_miss_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch, looks: str, needed: int | None
) -> None:
    left, ended = list(looks), threading.Event()

    def look(path: Path, device: int) -> bool:
        match left.pop(0) if left else ".":
            case "e":
                raise OSError(errno.ESTALE, "Stale file handle")
            case "h":
                ended.wait()
            case found:
                return found == "x"
        return True

    monkeypatch.setattr(state_files, "is_missing", look)
    monkeypatch.setattr(state_files, "SILENT_SECONDS", 0.1)
    files = StateFiles(ClusterDirectory(directory), None)  # type: ignore[arg-type]  # not used
    watch = asyncio.create_task(files.wait_for_removal(0.1875, 0.015625))
    while left and not watch.done():
        await asyncio.sleep(0.01)
        if files.hanging is not None:
            ended.set()
    done = (await asyncio.wait({watch}, timeout=0.5))[0]
    assert bool(done) is (needed is not None)
    assert len(looks) - len(left) == (needed or len(looks))
    watch.cancel()
