"""Trees from the events of a YAML parser: no recursion, no tags, bounded aliases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from .tree import Branch, Items, Leaf, Mark, Scalar, Tree, Unreadable

EMPTY = "is empty; a profile is a mapping of keys"
MAXIMUM_DEPTH = 20
MAXIMUM_VALUES = 10_000
"""Scalars, lists and mappings of a file, those that aliases repeat counted each time."""

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,300}\.[0-9]{0,300}|\.[0-9]{1,300})(?:[eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass
class _Frame:
    """A list or mapping under construction."""

    tree: Items | Branch
    key: str | None = None
    anchor: str | None = None
    size: int = 1


@dataclass
class Builder:
    """Builds a tree from the parser's events: no recursion, no tags, bounded aliases."""

    file: str
    stack: list[_Frame] = field(default_factory=list)
    anchors: dict[str, tuple[Tree, int, int] | None] = field(default_factory=dict)
    root: Tree | None = None
    documents: int = 0
    values: int = 0

    @property
    def top(self) -> Mark:
        """The beginning of the file."""
        return Mark(self.file, 1, 1)

    def build(self, text: str) -> Branch:
        """Return the tree of a text; raises Unreadable or what PyYAML raises."""
        for event in self._events(text):
            self._take(event)
        if self.root is None or (isinstance(self.root, Leaf) and self.root.value is None):
            raise Unreadable(self.top, EMPTY)
        if not isinstance(self.root, Branch):
            raise Unreadable(self.root.mark, "must be a mapping of keys, such as `title: My place`")
        return self.root

    def _events(self, text: str) -> Iterator[yaml.Event]:
        loader = yaml.SafeLoader(text)
        try:
            while loader.check_event():
                yield loader.get_event()  # type: ignore[no-untyped-call]
        finally:
            loader.dispose()

    def _mark(self, event: yaml.Event) -> Mark:
        place = event.start_mark
        return Mark(self.file, place.line + 1, place.column + 1) if place else self.top

    def _take(self, event: yaml.Event) -> None:
        mark = self._mark(event)
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise Unreadable(mark, "a second document starts here; a file holds one profile")
        elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
            self._take_node(event, mark)
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(str(event.anchor), mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            frame = self.stack.pop()
            self._finish(frame.tree, frame.anchor, frame.size)

    def _take_node(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, mark: Mark) -> None:
        if event.tag is not None:
            raise Unreadable(mark, f"tags such as {event.tag} are not allowed; remove it")
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self._count(1, mark)
        if isinstance(event, yaml.ScalarEvent):
            if self._is_key():
                self._take_key(event, mark)
            else:
                self._finish(Leaf(_value(event), mark), event.anchor, 1)
            return
        if self._is_key():
            raise Unreadable(mark, "a key must be plain text")
        if len(self.stack) >= MAXIMUM_DEPTH:
            raise Unreadable(mark, f"is nested deeper than {MAXIMUM_DEPTH} levels")
        sequence = isinstance(event, yaml.SequenceStartEvent)
        tree = Items([], mark) if sequence else Branch({}, {}, mark)
        self.stack.append(_Frame(tree, anchor=event.anchor))

    def _is_key(self) -> bool:
        if not self.stack:
            return False
        return isinstance(self.stack[-1].tree, Branch) and self.stack[-1].key is None

    def _take_key(self, event: yaml.ScalarEvent, mark: Mark) -> None:
        frame = self.stack[-1]
        assert isinstance(frame.tree, Branch)  # noqa: S101  # _is_key() told so
        key = str(event.value)
        if key == "<<" and event.implicit[0]:
            raise Unreadable(mark, "merge keys (`<<`) are not allowed; write the keys out")
        if event.anchor is not None:
            raise Unreadable(mark, "an anchor on a key is not allowed; remove it")
        if first := frame.tree.keys.get(key):
            raise Unreadable(mark, f"key `{key}` is given twice; the first is in line {first.line}")
        frame.tree.keys[key] = mark
        frame.key = key
        frame.size += 1

    def _take_alias(self, anchor: str, mark: Mark) -> None:
        if self._is_key():
            raise Unreadable(mark, "a key must be plain text")
        if anchor not in self.anchors:
            raise Unreadable(mark, f"alias *{anchor} has no anchor &{anchor} before it")
        known = self.anchors[anchor]
        if known is None:
            raise Unreadable(mark, f"alias *{anchor} stands within what it repeats")
        tree, size, depth = known
        self._count(size, mark)
        if len(self.stack) + depth > MAXIMUM_DEPTH:
            raise Unreadable(mark, f"is nested deeper than {MAXIMUM_DEPTH} levels")
        self._finish(tree, None, size)

    def _count(self, size: int, mark: Mark) -> None:
        self.values += size
        if self.values > MAXIMUM_VALUES:
            raise Unreadable(mark, f"has more than {MAXIMUM_VALUES} values, repeated ones counted")

    def _finish(self, tree: Tree, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (tree, size, _depth(tree))
        if not self.stack:
            self.root = tree
            return
        frame = self.stack[-1]
        frame.size += size
        if isinstance(frame.tree, Items):
            frame.tree.items.append(tree)
        elif frame.key is not None:
            frame.tree.entries[frame.key] = tree
            frame.key = None


def _depth(tree: Tree) -> int:
    if isinstance(tree, Leaf):
        return 0
    parts = tree.items if isinstance(tree, Items) else tree.entries.values()
    return 1 + max((_depth(part) for part in parts), default=0)


def _value(event: yaml.ScalarEvent) -> Scalar:
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
