"""Entries of the state root: one for each cluster id.

An entry is the cluster directory itself, or a file (0600) with the absolute path of a directory of
that name elsewhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..core.errors import StateError
from .cluster_directory import ClusterDirectory
from .private_files import check_private, foreign, trouble

ENTRY_BYTES = 4096
"""Most bytes of a path on Linux."""


def cluster_at(root: Path, id: str) -> ClusterDirectory:
    """Return the cluster directory of an entry of the state root.

    A file that cannot be used is no error here: `ClusterDirectory.check` reports it, so that one
    bad entry does not hide the others.
    """
    entry = root / id
    try:
        return ClusterDirectory(read_entry(entry), entry)
    except StateError as error:
        return ClusterDirectory(entry, entry, error)


def read_entry(entry: Path) -> Path:
    """Return the cluster directory of an entry: itself, unless it is a file with another path.

    Raises
    ------
    StateError
        The file belongs to another user, others can write it, or it holds no such path.
    """
    try:
        if not stat.S_ISREG(entry.lstat().st_mode):
            return entry
        descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            fault = foreign(os.fstat(descriptor))
            text = os.fsdecode(stream.read(ENTRY_BYTES)).removesuffix("\n")
    except FileNotFoundError:
        return entry
    except OSError as error:
        raise trouble(error, entry) from error
    found = Path(text)
    if not (text == str(found) and found.is_absolute() and ".." not in found.parts):
        fault = fault or "does not hold an absolute path"
    if found.name != entry.name:
        fault = fault or f"holds a path that does not end in {entry.name}"
    if fault:
        raise StateError(
            f"The file {entry} {fault}; refusing to use it.",
            hint="It should be a file of your own with mode 0600 that names the cluster's"
            " directory. Delete it if you do not need that cluster.",
        )
    return found


def make_entry(root: Path, directory: Path) -> ClusterDirectory:
    """Make the entry of a cluster whose directory lies elsewhere; the directory is not made.

    Raises
    ------
    StateError
        There is an entry of that id, or it cannot be written.
    """
    entry = root / directory.name
    check_private(root)
    try:
        descriptor = os.open(entry, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(os.fsencode(directory) + b"\n")
    except OSError as error:
        raise trouble(error, entry) from error
    return ClusterDirectory(directory, entry)
