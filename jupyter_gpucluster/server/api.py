"""The base of all REST handlers: authorization, bodies, errors."""

from __future__ import annotations

import json
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jupyter_server.base.handlers import APIHandler, JupyterHandler
from tornado import web

from ..core.errors import GpuClusterError, InvalidInput
from .bodies import Body, read_body

if TYPE_CHECKING:
    from .app import GpuClusterApp
    from .async_clusters import AsyncClusters

AUTH_RESOURCE = "gpucluster"
"""The resource name for authorizers, with the action read, write or execute."""

EXTENSION_SETTING = "gpucluster"

B = TypeVar("B", bound=Body)


class ShowsErrors(JupyterHandler):
    """Our errors are answers: they are logged in one line, without a traceback."""

    auth_resource = AUTH_RESOURCE

    @property
    def extension(self) -> GpuClusterApp:
        """The extension: its parts are what all handlers share."""
        return cast("GpuClusterApp", self.settings[EXTENSION_SETTING])

    @property
    def clusters(self) -> AsyncClusters:
        """All clusters of this user."""
        return self.extension.clusters

    def log_exception(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Log a traceback only for unexpected errors."""
        if isinstance(value, GpuClusterError):
            self.log.info("%s %s: %s", self.request.method, self.request.path, value.message)
        else:
            super().log_exception(typ, value, tb)


class ApiHandler(ShowsErrors, APIHandler):
    """A REST handler: JSON in, JSON out."""

    async def prepare(self) -> None:  # type: ignore[override]  # as in APIHandler
        """Count what a user does as activity, but never what a page asks for by itself."""
        self._track_activity = self.request.method != "GET"
        await super().prepare()

    @classmethod
    def verbs(cls) -> list[str]:
        """Return the methods that a handler has."""
        names = [(method, method.lower()) for method in cls.SUPPORTED_METHODS]
        plain = web.RequestHandler  # answers 405
        return [method for method, name in names if getattr(cls, name) != getattr(plain, name)]

    def body(self, kind: type[B]) -> B:
        """Return the request's body, checked; raises `InvalidInput` naming the field."""
        return read_body(kind, self.request.body)

    def flag(self, name: str) -> bool:
        """Return a query parameter that is 1 or 0, and 0 where it is missing."""
        value = self.get_query_argument(name, "0")
        if value not in ("0", "1"):
            raise InvalidInput(f"{name}: must be 0 or 1.", detail=name)
        return value == "1"

    def count(self, name: str, default: str, maximum: int) -> int:
        """Return a query parameter that is a number from 1 to a maximum."""
        value = self.get_query_argument(name, default)
        # int() also reads "1_0", " 1" and the digits of other scripts.
        if not (value.isascii() and value.isdigit() and 1 <= int(value[:10]) <= maximum):
            raise InvalidInput(f"{name}: must be a number from 1 to {maximum}.", detail=name)
        return int(value)

    def respond(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Answer with JSON."""
        self.set_status(status)
        self.write(json.dumps(value))

    def on_finish(self) -> None:
        """Let the next list show what this request changed."""
        super().on_finish()
        if self.request.method != "GET":
            self.extension.snapshots.expire()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer an error with message, hint and detail; unexpected errors stay in the log."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        if status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            self.set_header("Allow", ", ".join(self.verbs()))
        if isinstance(error, GpuClusterError):
            self.set_status(error.status)
            shown = error.as_json()
        elif isinstance(error, web.HTTPError):
            # Without arguments tornado has doubled each percent sign.
            message = error.log_message % error.args if error.log_message else error.reason
            shown = GpuClusterError(message or f"{HTTPStatus(status_code).phrase}.").as_json()
        else:
            shown = GpuClusterError(
                "The server extension failed.", hint="The log of the Jupyter server says why."
            ).as_json()
        self.write(json.dumps(shown))
