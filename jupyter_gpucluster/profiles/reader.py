"""Profile files into trees of values that know their file, line and column."""

from __future__ import annotations

import os
import re
import stat
from functools import lru_cache
from pathlib import Path

import yaml

from .builder import Builder
from .tree import Branch, Mark, Unreadable

MAXIMUM_BYTES = 256 * 1024


def read_file(path: Path) -> Branch:
    """Read one profile file, unless it is the same as the last time.

    Raises
    ------
    Unreadable
        Whatever is wrong with the file.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise Unreadable(Mark(str(path), 1, 1), f"cannot be read: {error.strerror}") from None
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return _read(path, (found.st_dev, found.st_ino, found.st_size, *times))


# PyYAML takes 5 ms for a page, and a server reads all pages whenever its list is looked at.
@lru_cache(maxsize=256)
def _read(path: Path, version: tuple[int, ...]) -> Branch:
    return read_text(_content(path), str(path))


def read_text(content: bytes | str, file: str) -> Branch:
    """Read the text of a profile; `file` is its name in messages."""
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        good = error.object[: error.start].decode("utf-8", "replace")
        raise Unreadable(
            _place(good, len(good), file), "is not UTF-8 text; save the file as UTF-8"
        ) from None
    try:
        return Builder(file).build(text)
    except yaml.reader.ReaderError as error:
        where = text.find(chr(error.character)) if isinstance(error.character, int) else 0
        message = f"character #x{error.character:04x} is not allowed; remove it"
        raise Unreadable(_place(text, where, file), message) from None
    except yaml.MarkedYAMLError as error:
        raise Unreadable(*_explained(error, file)) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # chr() and int() inside PyYAML refuse "\UFFFFFFFF" and "%YAML 1.<5000 digits>".
        raise Unreadable(Mark(file, 1, 1), f"is not YAML: {error}") from None


def _content(path: Path) -> bytes:
    top = Mark(str(path), 1, 1)
    try:
        # Without O_NONBLOCK a FIFO of that name would stop the reader for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(top, f"cannot be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(top, "is not a regular file; remove it or put a file in its place")
        with open(descriptor, "rb", closefd=False) as stream:  # it has no path
            content = stream.read(MAXIMUM_BYTES + 1)
    except OSError as error:
        raise Unreadable(top, f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if len(content) > MAXIMUM_BYTES:
        raise Unreadable(top, f"is larger than {MAXIMUM_BYTES // 1024} KiB; a profile is a page")
    return content


def _place(text: str, offset: int, file: str) -> Mark:
    before = text[: max(offset, 0)]
    return Mark(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


# What PyYAML says, what we say, and whether the place where the trouble began tells more.
_YAML_WORDS = (
    (r"found character '\\t'", "a tab; indent with spaces", False),
    (r"found character '(.+)' that cannot start", r"a value cannot start with \1; quote it", False),
    (
        r"mapping values are not allowed",
        "a `:` where no key can stand; quote the value or end the line before",
        False,
    ),
    (r"could not find expected ':'", "a `:` is missing after this key", True),
    (r"found unexpected end of stream", "these quotes are not closed", True),
    (r"expected ',' or '([\]}])'", r"this bracket is not closed; a comma or \1 is missing", True),
    (
        r"expected <block end>",
        "wrong indentation; the keys of one mapping start in one column",
        False,
    ),
    (r"found unknown escape", "unknown escape in double quotes; use single quotes", False),
)


def _explained(error: yaml.MarkedYAMLError, file: str) -> tuple[Mark, str]:
    problem = error.problem or error.context or "unreadable"
    words, began = f"is not YAML: {problem}", False
    for pattern, ours, at_begin in _YAML_WORDS:
        if match := re.search(pattern, problem):
            words, began = match.expand(ours), at_begin
            break
    marks = [error.problem_mark, error.context_mark]
    place = next((mark for mark in (reversed(marks) if began else marks) if mark), None)
    return (Mark(file, place.line + 1, place.column + 1) if place else Mark(file, 1, 1)), words
