"""Profile files as trees of values that know their file, line and column."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

EMPTY = "is empty; a profile is a mapping of keys"
MAXIMUM_BYTES = 256 * 1024
MAXIMUM_DEPTH = 20
MAXIMUM_VALUES = 10_000
"""Scalars, lists and mappings of a file, those that aliases repeat counted each time."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True, order=True)
class Mark:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Leaf:
    """A value without parts."""

    value: Scalar
    mark: Mark


@dataclass(frozen=True)
class Items:
    """A list."""

    items: list[Tree]
    mark: Mark


@dataclass(frozen=True)
class Branch:
    """A mapping; `keys` holds the place of each key."""

    entries: dict[str, Tree]
    keys: dict[str, Mark]
    mark: Mark


Tree = Leaf | Items | Branch


@dataclass(frozen=True)
class Finding:
    """A mistake in a profile, and its place."""

    mark: Mark
    message: str


class Unreadable(Exception):
    """A file that cannot be read as a profile, and the place of the mistake."""

    def __init__(self, mark: Mark, message: str) -> None:
        super().__init__(message)
        self.mark = mark
        self.message = message


def plain(tree: Tree) -> Any:
    """Return the values of a tree without their places."""
    if isinstance(tree, Branch):
        return {key: plain(value) for key, value in tree.entries.items()}
    if isinstance(tree, Items):
        return [plain(item) for item in tree.items]
    return tree.value


def read_file(path: Path) -> Branch:
    """Read one profile file, unless it is the same as the last time.

    Raises
    ------
    Unreadable
        The file cannot be read, is not YAML, or is not a mapping.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise Unreadable(Mark(str(path), 1, 1), f"cannot be read: {error.strerror}") from None
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return _read(path, (found.st_dev, found.st_ino, found.st_size, *times))


# The parser takes 2 ms for a page, and a server reads all pages whenever its list is looked at.
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
        return _Builder(file, text).document()
    except ReaderError as error:
        where = text.find(chr(error.character)) if isinstance(error.character, int) else 0
        message = f"character #x{error.character:04x} is not allowed; remove it"
        raise Unreadable(_place(text, where, file), message) from None
    except MarkedYAMLError as error:
        raise Unreadable(*_explained(error, file)) from None
    except (YAMLError, ValueError, OverflowError) as error:
        # chr() and int() inside ruamel.yaml refuse "\UFFFFFFFF" and "%YAML 1.<5000 digits>".
        raise Unreadable(Mark(file, 1, 1), f"is not YAML: {error}") from None


def _content(path: Path) -> bytes:
    top = Mark(str(path), 1, 1)
    try:
        # Without O_NONBLOCK a FIFO of that name would stop the reader for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable(top, "is not a regular file; remove it or put a file in its place")
            with open(descriptor, "rb", closefd=False) as stream:  # it has no path
                content = stream.read(MAXIMUM_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Unreadable(top, f"cannot be read: {error.strerror}") from None
    if len(content) > MAXIMUM_BYTES:
        raise Unreadable(top, f"is larger than {MAXIMUM_BYTES // 1024} KiB; shorten it")
    return content


def _place(text: str, offset: int, file: str) -> Mark:
    before = text[: max(offset, 0)]
    return Mark(file, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


class _Builder:
    """Builder of a tree from a parser's events: no tags, bounded depth and aliases."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        # The round-trip parser, so that the reader accepts what an editor of profiles accepts.
        self.events: Iterator[Any] = YAML().parse(text)
        self.anchors: dict[str, tuple[Tree, int] | None] = {}
        self.values = 0

    def document(self) -> Branch:
        """Return the mapping that the text holds; raises Unreadable or what the parser raises."""
        root: Tree | None = None
        documents = 0
        for event in self.events:
            if isinstance(event, events.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    words = "a second document starts here; a file holds one profile"
                    raise Unreadable(self.mark(event), words)
            elif isinstance(event, events.NodeEvent):
                root = self.node(event, 0)
        if root is None or (isinstance(root, Leaf) and root.value is None):
            raise Unreadable(Mark(self.file, 1, 1), EMPTY)
        if not isinstance(root, Branch):
            raise Unreadable(root.mark, "must be a mapping of keys, such as `title: My place`")
        return root

    def node(self, event: Any, depth: int, key: Any = None) -> Tree:
        """Return the value that begins with an event, and belongs to a key in a mapping."""
        mark = self.mark(event, key)
        if isinstance(event, events.AliasEvent):
            return self.repeated(event.anchor, mark, depth)
        before = self.values
        self.check(event, mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        tree: Tree
        if isinstance(event, events.ScalarEvent):
            tree = Leaf(_value(event), mark)
        elif depth >= MAXIMUM_DEPTH:
            raise Unreadable(mark, f"is nested deeper than {MAXIMUM_DEPTH} levels")
        elif isinstance(event, events.SequenceStartEvent):
            tree = Items([], mark)
            while not isinstance(item := next(self.events), events.SequenceEndEvent):
                tree.items.append(self.node(item, depth + 1))
        else:
            tree = Branch({}, {}, mark)
            while not isinstance(item := next(self.events), events.MappingEndEvent):
                name = self.key(item, tree)
                tree.entries[name] = self.node(next(self.events), depth + 1, item)
        if event.anchor is not None:
            self.anchors[event.anchor] = tree, self.values - before
        return tree

    def key(self, event: Any, branch: Branch) -> str:
        """Return a key of a mapping, and note its place."""
        mark = self.mark(event)
        if not isinstance(event, events.AliasEvent):
            self.check(event, mark)
        if not isinstance(event, events.ScalarEvent):
            raise Unreadable(mark, "a key must be plain text")
        key = str(event.value)
        if key == "<<" and event.implicit[0]:
            raise Unreadable(mark, "merge keys (`<<`) are not allowed; write the keys out")
        if event.anchor is not None:
            raise Unreadable(mark, "an anchor on a key is not allowed; remove it")
        if first := branch.keys.get(key):
            raise Unreadable(mark, f"key `{key}` is given twice; the first is in line {first.line}")
        branch.keys[key] = mark
        return key

    def check(self, event: Any, mark: Mark) -> None:
        """Refuse a tag, and one value too many."""
        if event.tag is not None:
            raise Unreadable(mark, f"tags such as {event.tag} are not allowed; remove it")
        self.count(1, mark)

    def repeated(self, anchor: str, mark: Mark, depth: int) -> Tree:
        """Return the value that an alias stands for."""
        if anchor not in self.anchors:
            raise Unreadable(mark, f"alias *{anchor} has no anchor &{anchor} before it")
        known = self.anchors[anchor]
        if known is None:
            raise Unreadable(mark, f"alias *{anchor} refers to a value that contains it")
        tree, size = known
        self.count(size, mark)
        if depth + _depth(tree) > MAXIMUM_DEPTH:
            raise Unreadable(mark, f"is nested deeper than {MAXIMUM_DEPTH} levels")
        return tree

    def count(self, size: int, mark: Mark) -> None:
        """Count values against the limit."""
        self.values += size
        if self.values > MAXIMUM_VALUES:
            raise Unreadable(mark, f"has more than {MAXIMUM_VALUES} values, repeated ones counted")

    def mark(self, event: Any, key: Any = None) -> Mark:
        """Return the place of an event; that of an empty value is behind its key."""
        place = event.start_mark
        scalar = isinstance(event, events.ScalarEvent)
        if key is not None and scalar and place.index == event.end_mark.index:
            # The parser places it at the token that follows, which may be lines below.
            return Mark(self.file, key.end_mark.line + 1, key.end_mark.column + len(":") + 1)
        return Mark(self.file, place.line + 1, place.column + 1)


def _depth(tree: Tree) -> int:
    if isinstance(tree, Leaf):
        return 0
    parts = tree.items if isinstance(tree, Items) else tree.entries.values()
    return 1 + max((_depth(part) for part in parts), default=0)


_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,300}\.[0-9]{0,300}|\.[0-9]{1,300})(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def _value(event: Any) -> Scalar:
    # YAML 1.2's core words only: no yes/no, no 010 as eight, no 1:30:00 as a number.
    text = str(event.value)
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


# Words of the parser, ours, and True where the beginning of the construct is the better place.
_YAML_WORDS = (
    (r"found character '\\t'", "a tab; indent with spaces", False),
    (r"found character '(.+)' that cannot start", r"a value cannot start with \1; quote it", False),
    (r"mapping values are not allowed",
     "a `:` where no key can stand; quote the value or end the line before", False),
    (r"could not find expected ':'", "a `:` is missing after this key", True),
    (r"found unexpected end of stream", "these quotes are not closed", True),
    (r"expected ',' or '([\]}])'", r"this bracket is not closed; a comma or \1 is missing", True),
    (r"expected <block end>",
     "wrong indentation; the keys of one mapping start in one column", False),
    (r"expected '<document start>'", "the mapping above has ended; check indentation", False),
    (r"found unknown escape", "unknown escape in double quotes; use single quotes", False),
)  # fmt: skip


def _explained(error: MarkedYAMLError, file: str) -> tuple[Mark, str]:
    problem = error.problem or error.context or "unreadable"
    words, began = f"is not YAML: {problem}", False
    for pattern, ours, at_begin in _YAML_WORDS:
        if match := re.search(pattern, problem):
            words, began = match.expand(ours), at_begin
            break
    marks = [error.problem_mark, error.context_mark]
    place = next((mark for mark in (reversed(marks) if began else marks) if mark), None)
    return (Mark(file, place.line + 1, place.column + 1) if place else Mark(file, 1, 1)), words
