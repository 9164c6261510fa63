"""File systems in memory, small enough to be full at once; only root can mount them."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts a file system")


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def fill(path: Path, leave: int = 0) -> None:
    """Use all bytes of a file system, but some."""
    with path.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while stream.write(b"x" * 4096):
            pass
    with path.open("r+b") as stream:
        stream.truncate(max(0, path.stat().st_size - leave))


def fill_inodes(place: Path, name: str = "filler") -> list[Path]:
    """Use all inodes of a file system, and return the files that do."""
    made = []
    with contextlib.suppress(OSError):
        for number in itertools.count():
            (place / f"{name}-{number}").touch()
            made.append(place / f"{name}-{number}")
    return made
