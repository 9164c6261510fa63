"""Same-named profile files into one tree: later ones override, locks of central ones hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .model import Path, covers, join, split
from .options import placeholders_in
from .reader import Branch, Items, Leaf, Mark, Tree, plain

Reason = Literal["overridden", "locked", "final"]


@dataclass(frozen=True)
class SourceFile:
    """One file of a profile; the smaller the rank, the more central the file."""

    file: str
    rank: tuple[int, int]
    tree: Branch


@dataclass(frozen=True)
class FieldSource:
    """The file that gave the value of a key."""

    path: str
    file: str


@dataclass(frozen=True)
class Shadowed:
    """A value that does not count: its key, its file, the file that took its place, and why."""

    path: str
    file: str
    by: str
    reason: Reason = "overridden"


@dataclass
class Merged:
    """The outcome; `refused` are places of values that a lock or a final file kept out."""

    tree: Branch
    files: list[str] = field(default_factory=list)
    sources: dict[Path, str] = field(default_factory=dict)
    shadowed: list[Shadowed] = field(default_factory=list)
    refused: list[tuple[Mark, Shadowed]] = field(default_factory=list)


def merge(files: Sequence[SourceFile]) -> Merged:
    """Merge files; the first is overridden by all others.

    Order and rank differ where an environment is preferred to the user's own directory: its files
    then override the user's, and still a lock binds each file that is less central than its own.
    """
    result = Merged(Branch({}, {}, files[-1].tree.mark))
    for source in files:
        if blocker := _final_above(files, source):
            shadowed = Shadowed("", source.file, blocker.file, "final")
            result.refused.append((source.tree.mark, shadowed))
            continue
        result.files.append(source.file)
        above = [other for other in files if other.rank < source.rank]
        kept = _unlocked(result, source, above, source.tree, ())
        _overlay(result, result.tree, _own(kept), (), source.file)
    _gather_locks(result, files)
    result.shadowed += [shadowed for _, shadowed in result.refused]
    return result


def locks(source: SourceFile) -> list[Path]:
    """Return the paths that a file locks."""
    listed = source.tree.entries.get("locked")
    items = listed.items if isinstance(listed, Items) else []
    return [split(text) for item in items if (text := _text(item))]


def _text(tree: Tree | None) -> str:
    return tree.value if isinstance(tree, Leaf) and isinstance(tree.value, str) else ""


def _is_final(source: SourceFile) -> bool:
    final = source.tree.entries.get("final")
    return isinstance(final, Leaf) and final.value is True


def _final_above(files: Sequence[SourceFile], source: SourceFile) -> SourceFile | None:
    above = [other for other in files if other.rank < source.rank and _is_final(other)]
    return min(above, key=lambda other: other.rank, default=None)


def _own(tree: Branch) -> Branch:
    entries = {key: tree.entries[key] for key in tree.entries if key not in ("locked", "final")}
    return Branch(entries, tree.keys, tree.mark)


def _unlocked(
    result: Merged, source: SourceFile, above: Sequence[SourceFile], tree: Branch, at: Path
) -> Branch:
    """Return the part of a file that no more central file has locked."""
    entries: dict[str, Tree] = {}
    for key, value in tree.entries.items():
        path = (*at, key)
        if other := _locked_by(above, source, path, value):
            shadowed = Shadowed(join(path), source.file, other.file, "locked")
            result.refused.append((tree.keys[key], shadowed))
        elif isinstance(value, Branch):
            entries[key] = _unlocked(result, source, above, value, path)
        else:
            entries[key] = value
    return Branch(entries, tree.keys, tree.mark)


def _locked_by(
    above: Sequence[SourceFile], source: SourceFile, path: Path, value: Tree
) -> SourceFile | None:
    if path[0] in ("locked", "final"):
        return None
    option = path[1] if len(path) >= 2 and path[0] == "options" else ""
    written = [path, *(_written_by(option, [*above, source]) if option else ())]
    for other in above:
        for lock in locks(other):
            # `job: 3` would take the locked `job.queue` away with the mapping.
            taken = not isinstance(value, Branch) and covers(path, lock)
            if taken or any(covers(lock, place) for place in written):
                return other
    return None


def _written_by(name: str, files: Sequence[SourceFile]) -> Iterator[Path]:
    """Yield the keys that an option writes to, as one of these files has it."""
    yield ("job", name)
    for file in files:
        options = file.tree.entries.get("options")
        option = options.entries.get(name) if isinstance(options, Branch) else None
        if isinstance(option, Branch) and (target := _text(option.entries.get("field"))):
            yield split(target)
        yield from placeholders_in(plain(file.tree)).get(name, ())


def _overlay(result: Merged, lower: Branch, upper: Branch, above: Path, file: str) -> None:
    for key, value in upper.entries.items():
        path = (*above, key)
        below = lower.entries.get(key)
        lower.keys[key] = upper.keys[key]
        if isinstance(value, Branch):
            if not isinstance(below, Branch):
                _replaced(result, path, file)
                below = lower.entries[key] = Branch({}, {}, value.mark)
            _overlay(result, below, value, path, file)
        else:
            _replaced(result, path, file)
            lower.entries[key] = value
            result.sources[path] = file


def _replaced(result: Merged, path: Path, file: str) -> None:
    for known in [known for known in result.sources if covers(path, known)]:
        result.shadowed.append(Shadowed(join(known), result.sources.pop(known), file))


def _gather_locks(result: Merged, files: Sequence[SourceFile]) -> None:
    kept = [file for file in files if not _final_above(files, file)]
    for source in kept:
        for key in ("locked", "final"):
            value = source.tree.entries.get(key)
            known = result.tree.entries.get(key)
            if value is None or (key == "final" and known is not None and not _is_final(source)):
                continue
            if isinstance(value, Items) and isinstance(known, Items):
                value = Items([*known.items, *value.items], value.mark)
            result.tree.entries[key] = value
            result.tree.keys[key] = source.tree.keys[key]
