"""Frozen dataclasses that cost a tenth to define; all commands pay for each class of a record."""

# `dataclasses.dataclass(frozen=True)` compiles six methods a class, some 0.7 ms: half of the time
# of `list` went there.  These methods are the same for all classes, and a little slower to call.

import dataclasses
from dataclasses import MISSING, field
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


def named(json: str, *, default: Any) -> Any:
    """Return a field with another name in JSON, which older versions wrote."""
    return field(default=default, metadata={"json": json})


@dataclass_transform(frozen_default=True, field_specifiers=(field, named))
def frozen(kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass, with all that the module `dataclasses` does to those."""
    made = dataclasses.dataclass(init=False, repr=False, eq=False)(kind)
    for name, method in METHODS.items():
        if name not in kind.__dict__:
            setattr(made, name, method)
    return made


def _init(self: Any, *values: Any, **named: Any) -> None:
    fields = self.__dataclass_fields__
    if len(values) > len(fields):
        raise TypeError(f"{type(self).__name__} takes {len(fields)} values, not {len(values)}")
    for name, value in zip(fields, values, strict=False):
        if name in named:
            raise TypeError(f"{type(self).__name__} got {name!r} twice")
        named[name] = value
    held = self.__dict__
    for name, description in fields.items():
        if name in named:
            held[name] = named.pop(name)
        elif description.default is not MISSING:
            held[name] = description.default
        elif description.default_factory is not MISSING:
            held[name] = description.default_factory()
        else:
            raise TypeError(f"{type(self).__name__} lacks {name!r}")
    if named:
        raise TypeError(f"{type(self).__name__} has no {', '.join(map(repr, named))}")


def _repr(self: Any) -> str:
    told = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
    return f"{type(self).__name__}({told})"


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__dict__ == other.__dict__


def _hash(self: Any) -> int:
    return hash(tuple(self.__dict__.values()))


def _refuse(self: Any, name: str, *_value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot change {name!r} of {type(self).__name__}")


METHODS = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
}
