"""Files and directories that only their owner can read or change, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import StateError

DAMAGE = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError)
"""Errors of reading a file that another program has written, or that is cut short."""


def check_private(path: Path) -> None:
    """Refuse a directory that another user could have made or could change.

    Raises
    ------
    StateError
        The directory is a link, belongs to another user or is writable by others.
    """
    try:
        status = path.lstat()
    except OSError as error:
        raise trouble(error, path) from error
    fault = foreign(status) if stat.S_ISDIR(status.st_mode) else "is not a directory"
    if stat.S_ISLNK(status.st_mode):
        fault = "is a symbolic link"
    if fault:
        raise StateError(
            f"The state directory {path} {fault}; refusing to use it.",
            hint=f"Make it a directory of your own with mode 0700 (chmod 700 {path}).",
        )


def foreign(status: os.stat_result) -> str:
    """Return why another user could have written a file or directory, empty if none could."""
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}"
    if status.st_mode & 0o022:
        return f"is writable by others (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def make_private(path: Path) -> None:
    """Make a directory that only its owner can enter, or check an existing one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    except OSError as error:
        raise trouble(error, path) from error
    check_private(path)


def check_writable(path: Path) -> None:
    """Raise `StateError` where files cannot be made below a private directory.

    If it does not exist, nothing is made, and its parent must be writable.
    """
    present = next(p for p in (path, *path.parents) if p.exists())
    if present == path:
        check_private(path)
        probe = path / f".probe.{os.getpid()}.{threading.get_ident()}"
        write_private(probe, b"-")
        probe.unlink(missing_ok=True)
    elif not os.access(present, os.W_OK | os.X_OK):
        raise trouble(PermissionError(errno.EACCES, os.strerror(errno.EACCES)), present)


def write_private(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all, readable by its owner only.

    Raises
    ------
    StateError
        The disk is full, a quota is used up or the directory is not writable.
    """
    # A thread's own: a server looks at one cluster from several of them.
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise trouble(error, path) from error


@contextlib.contextmanager
def locked(path: Path, seconds: float = 0.0) -> Iterator[bool | None]:
    """Hold the lock of a file.

    Yields False if another process holds it for so long, and None on a file system without locks.
    Raises `OSError` if the file cannot be opened, or is a pipe.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        yield _lock(descriptor, time.monotonic() + seconds)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, deadline: float) -> bool | None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        except OSError:
            return None


def trouble(error: OSError, path: Path) -> StateError:
    """Return the error of the file system as a sentence with a fix."""
    other = "or point JUPYTER_DATA_DIR at another file system"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        # Each errno also means that no file more can be made, with space left.
        hint = (
            "Free some space or delete some files (df -h and df -i show which is used up),"
            f" {other}."
        )
    elif error.errno in (errno.ESTALE, errno.EIO, errno.ETIMEDOUT, errno.EROFS):
        hint = f"Report it to the administrators of the file server, {other}."
    else:
        hint = "Check the permissions, or point JUPYTER_DATA_DIR at a directory you can write."
    return StateError(f"Cannot use {path}: {error.strerror or error}.", hint=hint)
