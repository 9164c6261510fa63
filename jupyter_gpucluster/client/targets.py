"""Numbers of workers as callers of Dask give them, and the answer to ``adapt``."""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Generator
from typing import Any, Self

from ..core.cluster import Target
from ..core.errors import InvalidInput


class Adaptation:
    """The bounds that a cluster follows the load in; asynchronously it may be awaited."""

    def __init__(self, minimum: int, maximum: int, request: Awaitable[None] | None) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self._request = request

    def __await__(self) -> Generator[Any, None, Self]:
        if self._request is not None:
            yield from self._request.__await__()
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(minimum={self.minimum}, maximum={self.maximum})"


def first_target(workers: int | None, adapt: tuple[int, int] | None) -> Target | None:
    """Return what a new cluster is asked for; None leaves it to the profile."""
    if adapt is not None:
        if workers is not None:
            raise InvalidInput("Give workers or adapt, not both.", detail="target")
        minimum, maximum = adapt
        return Target(number(minimum, "adapt"), number(maximum, "adapt"))
    return None if workers is None else fixed(workers, "workers")


def fixed(count: int, name: str) -> Target:
    """Return the target of a fixed number."""
    return Target(number(count, name), number(count, name))


def number(value: object, name: str) -> int:
    """Return a number of workers, NumPy's integers included; raises `InvalidInput`."""
    try:
        count = operator.index(value)  # type: ignore[arg-type]  # whether it fits is the question
    except TypeError:
        count = -1
    if count < 0 or isinstance(value, bool):
        raise InvalidInput(f"{name} takes a whole number of workers, not {value!r}.")
    return count
