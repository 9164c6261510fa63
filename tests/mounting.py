"""File systems in memory, small enough to be full at once, and one that fails; for root only."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import struct
import subprocess
import threading
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


LIBC = ctypes.CDLL(None, use_errno=True)
INIT, NO_ANSWER = 26, (2, 42)
"""Numbers of FUSE's requests: https://github.com/torvalds/linux/blob/master/include/uapi/linux/fuse.h."""


@contextlib.contextmanager
def failing(place: Path, error: int = 0) -> Iterator[None]:
    """Mount a file system that answers every request with one error, or, without one, never."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if LIBC.mount(b"failing", os.fsencode(place), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    server = threading.Thread(target=_answer, args=(device, error))
    server.start()
    try:
        yield
    finally:
        # Forced: what hangs in it gets an error.
        subprocess.run(["umount", "--force", "--lazy", place], check=True)
        server.join()
        os.close(device)


def _answer(device: int, error: int) -> None:
    with contextlib.suppress(OSError):  # it was unmounted
        while True:
            request = os.read(device, 1 << 20)
            _, kind, number = struct.unpack_from("<IIQ", request)
            body = b""
            if kind == INIT:  # version 7.31, and the least that the kernel takes
                body = struct.pack("<IIIIHHII", 7, 31, 0, 0, 12, 10, 65536, 1).ljust(64, b"\0")
            elif kind in NO_ANSWER or not error:
                continue
            answer = 0 if body else -error
            os.write(device, struct.pack("<IiQ", 16 + len(body), answer, number) + body)
