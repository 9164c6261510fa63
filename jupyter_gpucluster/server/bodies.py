"""The bodies of requests and answers; another request is refused with the path of the field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from jupyter_server.utils import url_path_join
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tornado import web

from ..core.cluster import ENDED, Phase, Target
from ..core.errors import InvalidInput
from ..core.serialize import to_json
from ..launch.request import Request

if TYPE_CHECKING:
    from ..state.view import ClusterView


MAXIMUM_BODY = 64 * 1024
"""Bytes; a form with hundreds of options has some 10 kB."""
UNSHOWN = {"clock", "pcie_sent", "pcie_received", "nvlink_sent", "nvlink_received", "time"}
"""Readings of a GPU that pages do not show."""
AMOUNTS = "Give either workers, or both minimum and maximum."


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
        match (self.workers, self.minimum, self.maximum):
            case (None, None, None):
                return None
            case (int(workers), None, None):
                return Target(workers, workers)
            case (None, int(minimum), int(maximum)):
                return Target(minimum, maximum)
        raise InvalidInput(AMOUNTS, detail="target.workers")


class TargetBody(AmountBody):
    """A target that must say an amount."""

    def target(self) -> Target:
        """Return the target."""
        target = super().target()
        if target is None:
            raise InvalidInput(AMOUNTS, detail="target")
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
    drop: str = ""
    restart: str = ""
    keep: bool = False


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


class SetupBody(Body):
    """The body of POST setup."""

    profile: str
    account: str = ""
    python: str = ""
    check: bool = False
    save: bool = False


class CopyBody(Body):
    """The body of POST notebooks/{name}."""

    directory: str = ""
    cluster: str = ""


B = TypeVar("B", bound=Body)


def read_body(kind: type[B], body: bytes) -> B:
    """Return a request's body as the given kind; an empty one counts as ``{}``.

    Raises
    ------
    HTTPError
        It is no JSON object, or far too long.
    InvalidInput
        A field is missing, unknown or of the wrong type; ``detail`` is its path.
    """
    if len(body) > MAXIMUM_BODY:
        raise web.HTTPError(413, f"The request is larger than {MAXIMUM_BODY // 1024} KiB.")
    try:
        # NaN and Infinity are no JSON, though Python reads them.
        value = json.loads(body or b"{}", parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise web.HTTPError(400, "The request's body is not JSON.") from None
    if not isinstance(value, dict):
        raise web.HTTPError(400, "The request's body must be a JSON object.")
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


class Models:
    """Makes JSON of clusters.

    Parameters
    ----------
    base_url
        The server's base URL, with a slash at its end.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._texts: dict[str, tuple[ClusterView, str, str]] = {}

    def model(self, view: ClusterView) -> dict[str, Any]:
        """Return a cluster ready for JSON."""
        alive = view.scheduler_address and view.phase not in ENDED | {Phase.UNREACHABLE}
        dashboard = url_path_join(self.base_url, "gpucluster/dashboard", view.id) + "/"
        return {**to_json(view), "dashboard": dashboard if alive else None}

    def list(self, views: Sequence[ClusterView]) -> tuple[str, str]:
        """Return the text of a list and its ETag, which changes with what pages show."""
        known, kept_now = self._texts, {}
        for view in views:
            kept = known.get(view.id)
            if kept is None or kept[0] is not view:
                model = self.model(view)
                kept = (view, json.dumps(model), json.dumps(as_shown(model)))
            kept_now[view.id] = kept
        self._texts = kept_now
        texts = ", ".join(text for _, text, _ in kept_now.values())
        shown = hashlib.sha256("".join(shown for _, _, shown in kept_now.values()).encode())
        return f'{{"clusters": [{texts}]}}', f'"{shown.hexdigest()[:32]}"'


def as_shown(model: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster with its figures as coarse as pages show them."""
    queued = model["phase"] == Phase.PENDING.value and model["workers"]["ready"] == 0
    gpus = [
        {
            **{name: gpu[name] for name in gpu.keys() - UNSHOWN},
            "memory_used": shown_bytes(gpu["memory_used"]),
            "power": gpu["power"] and round(gpu["power"]),
        }
        for gpu in model["gpus"]
    ]
    hours = model["gpu_hours"]
    return {
        **model,
        "written": None,
        "memory_used": shown_bytes(model["memory_used"]),
        "gpu_hours": round(hours, 1 if hours < 10 else 0),
        "gpus": gpus,
        "gpu_memory_used": shown_bytes(sum(gpu["memory_used"] for gpu in model["gpus"])),
        "listed": model["listed"] if queued else None,
    }


def shown_bytes(size: int) -> str:
    """Return an amount of memory as `bytes` in ``src/model/words.ts`` does."""
    power = max(0, (max(size, 1).bit_length() - 1) // 10)
    value = size / 1024**power
    return f"{value:.{1 if value < 10 and power else 0}f} {power}"
