"""The bodies that requests may have; anything else is refused with the path of the field."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..core.cluster import Target
from ..core.errors import InvalidInput
from ..launch.request import Request

MAXIMUM_BODY = 64 * 1024
"""Bytes; a form with hundreds of options has some 10 kB."""


class MalformedRequest(InvalidInput):
    """The body is not a JSON object."""

    status = 400


class RequestTooLarge(InvalidInput):
    """The body is larger than any request needs."""

    status = 413


class Body(BaseModel):
    """A JSON object whose keys are all known and whose values have the very type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AmountBody(Body):
    """A number of workers: ``{"workers"}``, or ``{"minimum", "maximum"}`` for a range."""

    workers: int | None = None
    minimum: int | None = None
    maximum: int | None = None

    def target(self) -> Target | None:
        """Return the target, None where no amount is given."""
        ends = (self.minimum, self.maximum)
        if self.workers is not None and ends == (None, None):
            return Target(self.workers, self.workers)
        if self.minimum is not None and self.maximum is not None and self.workers is None:
            return Target(self.minimum, self.maximum)
        if self.workers is None and ends == (None, None):
            return None
        raise InvalidInput(
            "Give either workers, or both minimum and maximum.", detail="target.workers"
        )


class TargetBody(AmountBody):
    """A target that must say an amount."""

    def target(self) -> Target:
        """Return the target."""
        target = super().target()
        if target is None:
            raise InvalidInput(
                "The target names no amount.",
                hint="Give either workers, or minimum and maximum.",
                detail="target",
            )
        return target


class StartBody(Body):
    """The body of POST clusters."""

    profile: str
    name: str | None = None
    target: TargetBody | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    kernel: str = ""
    python: str = ""
    allocation: str = ""
    request_id: str = ""

    def request(self) -> Request:
        """Return the request of a start."""
        target = self.target.target() if self.target else None
        return Request(**{**dict(self), "target": target})


class UpdateBody(Body):
    """The body of PATCH clusters/{id}."""

    name: str | None = None
    target: TargetBody | None = None


class TrialBody(AmountBody):
    """The request of POST profiles/{name}/script and .../check."""

    options: dict[str, Any] = Field(default_factory=dict)
    kernel: str = ""
    python: str = ""
    allocation: str = ""

    def request(self, profile: str) -> Request:
        """Return the request of a preview."""
        fields = self.model_dump(exclude={*AmountBody.model_fields})
        return Request(profile, target=self.target(), **fields)


class CopyBody(Body):
    """The body of POST notebooks/{name}."""

    directory: str = ""
    cluster: str = ""


B = TypeVar("B", bound=Body)


def read_body(kind: type[B], body: bytes) -> B:
    """Return a request's body as the given kind; an empty one counts as ``{}``.

    Raises
    ------
    MalformedRequest, RequestTooLarge
        It is no JSON object, or far too long.
    InvalidInput
        A field is missing, unknown or of the wrong type; ``detail`` is its path.
    """
    if len(body) > MAXIMUM_BODY:
        raise RequestTooLarge(f"The request is larger than {MAXIMUM_BODY // 1024} KiB.")
    try:
        # NaN and Infinity are no JSON, though Python reads them.
        value = json.loads(body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MalformedRequest("The request's body is not JSON.") from None
    if not isinstance(value, dict):
        raise MalformedRequest("The request's body must be a JSON object.")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _first(kind, error) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _first(kind: type[Body], error: ValidationError) -> InvalidInput:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return InvalidInput(f"{path}: is missing.", detail=path)
    if first["type"] == "extra_forbidden":
        known = ", ".join(kind.model_fields)
        return InvalidInput(
            "There is no such field.", hint=f"The request takes: {known}.", detail=path
        )
    reason = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return InvalidInput(f"{path}: {reason}.", detail=path)
