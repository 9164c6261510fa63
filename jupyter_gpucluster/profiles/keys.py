"""The tree of keys that the model allows: look-up by path, suggestions, known places."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, get_args, get_origin

from .model import Profile
from .sections import Section

Path = tuple[str, ...]

SETTABLE = (
    "job", "workers", "launcher", "head", "existing", "network", "environment", "policy",
)  # fmt: skip
"""Sections that options may write to."""


def split(dotted: str) -> Path:
    """Turn ``job.queue`` into its parts."""
    return tuple(dotted.split("."))


def join(path: Iterable[object]) -> str:
    """Turn parts into ``job.queue``, the way messages write it."""
    return ".".join(str(part) for part in path)


def covers(upper: Path, path: Path) -> bool:
    """Tell whether a path is `upper` or lies below it."""
    return path[: len(upper)] == upper


def section_at(path: Path) -> type[Section] | None:
    """Return the model of the mapping at a path, or None where there is none."""
    kind: Any = Profile
    for part in path:
        kind = _step(kind, part)
        if kind is None:
            return None
    return _section(kind)


def exists(path: Path) -> bool:
    """Tell whether a profile may hold something at a path."""
    kind: Any = Profile
    for part in path:
        kind = _step(kind, part)
        if kind is None:
            return False
    return bool(path)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean `x`?`` for a word close to a known one, else nothing."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean `{by_lower[close[0]]}`?" if close else ""


def places(key: str) -> list[str]:
    """Return the dotted paths at which the model has a key of this name."""
    return [join(path) for path in _all_paths() if path[-1] == key]


@cache
def _all_paths() -> tuple[Path, ...]:
    return tuple(_walk(Profile, ()))


def _walk(model: type[Section], above: Path) -> Iterator[Path]:
    for name, field in model.model_fields.items():
        path = (*above, name)
        yield path
        section = _section(field.annotation)
        if section is not None:
            yield from _walk(section, path)


def _step(kind: Any, part: str) -> Any:
    section = _section(kind)
    if section is not None:
        field = section.model_fields.get(part)
        return None if field is None else field.annotation
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    return None


def _section(kind: Any) -> type[Section] | None:
    if isinstance(kind, type) and issubclass(kind, Section):
        return kind
    if get_origin(kind) is dict:
        return None
    return next((found for arg in get_args(kind) if (found := _section(arg))), None)
