"""Records to JSON and back."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

R = TypeVar("R")


def to_json(value: Any) -> Any:
    """Turn a record into what ``json.dumps`` takes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {_json_name(field): to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    return value


def copied(kind: type[R], *sources: Any, **others: Any) -> R:
    """Return a record whose fields are those of the same name in the sources, and others.

    Of two sources that have a field the later one counts.
    """
    names = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]  # a dataclass
    found = {name: getattr(each, name) for each in sources for name in names if hasattr(each, name)}
    return kind(**found | others)


def from_json(kind: type[R], data: Mapping[str, Any]) -> R:
    """Build a record of a kind; keys that the kind lacks are dropped, so older and newer ones read.

    Raises
    ------
    ValueError, TypeError, KeyError
        Where the data does not fit the kind.
    """
    hints = _hints(kind)  # type: ignore[arg-type]  # classes hash; the stubs ask a type variable
    values = {
        f.name: _convert(hints[f.name], data[_json_name(f)])
        for f in dataclasses.fields(kind)  # type: ignore[arg-type]  # kind is one of the dataclasses above
        if _json_name(f) in data
    }
    return kind(**values)


def _json_name(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("json", field.name))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    hints = {f.name: f.type for f in dataclasses.fields(kind)}
    if any(isinstance(hint, str) for hint in hints.values()):  # a module with postponed annotations
        return typing.get_type_hints(kind)
    return hints


def _convert(hint: Any, value: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _convert(next(a for a in args if a is not type(None)), value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"expected a list, got {type(value).__name__}")
        return tuple(_convert(args[0], v) for v in value)
    if origin is not None:  # Mapping[str, ...]
        if not isinstance(value, Mapping):
            raise TypeError(f"expected an object, got {type(value).__name__}")
        return dict(value)
    if isinstance(hint, type):
        if dataclasses.is_dataclass(hint):
            return from_json(hint, value)
        if issubclass(hint, Enum):
            return hint(value)
        if hint is float and isinstance(value, int):
            return float(value)
        if not isinstance(value, hint):
            raise TypeError(f"expected {hint.__name__}, got {type(value).__name__}")
    return value
