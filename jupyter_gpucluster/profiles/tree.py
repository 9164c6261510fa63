"""Trees of values that know their file, line and column."""

from __future__ import annotations

from dataclasses import dataclass

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
    """A mapping; `keys` tells where each key stands."""

    entries: dict[str, Tree]
    keys: dict[str, Mark]
    mark: Mark


Tree = Leaf | Items | Branch


class Unreadable(Exception):
    """A file that cannot be read as a profile, and where the trouble is."""

    def __init__(self, mark: Mark, message: str) -> None:
        super().__init__(message)
        self.mark = mark
        self.message = message


def plain(tree: Tree) -> object:
    """Return the values of a tree without their places."""
    if isinstance(tree, Branch):
        return {key: plain(value) for key, value in tree.entries.items()}
    if isinstance(tree, Items):
        return [plain(item) for item in tree.items]
    return tree.value
