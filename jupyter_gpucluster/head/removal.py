"""Notice that a cluster's directory was removed: nobody can find or stop the cluster any more."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path

LOOK_SECONDS = 5.0
"""Interval of the head's looks for its directory."""
GONE_SECONDS = 60.0
"""For so long every look must miss it: a user may rename it and back, or restore it."""

Look = tuple[float, bool]
"""End of a look, and whether it missed the directory."""


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


def is_removed(
    looks: Sequence[Look], *, seconds: float = GONE_SECONDS, every: float = LOOK_SECONDS
) -> bool:
    """Return whether a directory is removed: all looks of a while have missed it.

    Parameters
    ----------
    looks
        The looks so far, the newest last.
    seconds, every
        The length of that while, and the time from look to look: fewer looks prove nothing.
    """
    missed = [when for when, _ in takewhile(lambda look: look[1], reversed(looks))]
    return len(missed) > seconds / every and missed[0] - missed[-1] >= seconds


class RemovalWatch:
    """Looks for a directory in a thread of its own, since a file server may not answer for ever.

    Parameters
    ----------
    path
        The directory.
    tell
        Called once, in that thread, when the directory is removed.
    seconds, every
        As in `is_removed`.
    """

    def __init__(
        self,
        path: Path,
        tell: Callable[[], object],
        *,
        seconds: float = GONE_SECONDS,
        every: float = LOOK_SECONDS,
    ) -> None:
        self.path = path.absolute()
        self.device = self.path.stat().st_dev
        self.tell = tell
        self.seconds, self.every = seconds, every
        self.removed = False
        self.looks: deque[Look] = deque(maxlen=int(seconds / every) + 2)
        self.over = threading.Event()
        # A look that hangs must not keep the process from its end.
        threading.Thread(target=self.watch, name="gpucluster-removal", daemon=True).start()

    def watch(self) -> None:
        """Look until the directory is removed, or nobody wants to know."""
        while not self.over.wait(self.every):
            self.look()
            if is_removed(self.looks, seconds=self.seconds, every=self.every):
                self.removed = True
                self.tell()
                return

    def look(self) -> None:
        """Look once; a look that fails, or takes too long, has not missed anything."""
        begun = time.monotonic()
        try:
            missing = is_missing(self.path, self.device)
        except OSError:
            missing = False
        now = time.monotonic()
        self.looks.append((now, missing and now - begun < self.every))

    def close(self) -> None:
        """Look no more."""
        self.over.set()
