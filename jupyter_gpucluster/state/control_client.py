"""Ask a head: JSON over its own HTTP server, with the cluster's token, from any process."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core import errors
from ..core.cluster import TOKEN_HEADER, Record
from ..core.errors import GpuClusterError, HeadUnreachable
from ..host.cluster_directory import ClusterDirectory
from ..host.processes import is_alive

if TYPE_CHECKING:
    import http.client
    import ssl

ANSWER_SECONDS = 10.0
QUICK_SECONDS = 2.0
"""A head of this host that takes longer, and whose lease is old, is unreachable."""
REMEMBERED_SECONDS = 10.0
"""For so long an answer, or none, holds: pages ask every few seconds."""
AT_ONCE = 32
"""Heads asked at the same time, so that a list waits for one of them and not for each."""

_answers: dict[str, tuple[float, bool]] = {}


@dataclass(frozen=True)
class Endpoint:
    """Address of a live head; the token opens every path there, so it is never shown."""

    host: str
    port: int
    token: str = field(repr=False)
    ca: str = field(default="", repr=False)
    """The cluster's own authority (PEM) if the head speaks HTTPS; else empty."""

    def url(self, path: str, protocol: str = "http") -> str:
        """Return the address of a path there, encrypted if the head shows a certificate."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{protocol}{'s' if self.ca else ''}://{host}:{self.port}{path}"

    def tls(self) -> ssl.SSLContext | None:
        """Return the check of the head's certificate, which its own cluster must have signed.

        Reads no file, so that it can be called on a loop.
        """
        if not self.ca:
            return None
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # The authority signs for this cluster alone, and knows no names of hosts.
        context.check_hostname = False
        context.load_verify_locations(cadata=self.ca)
        return context


def ask(
    endpoint: Endpoint,
    method: str,
    path: str,
    body: object = None,
    *,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Send a request to a head and return its JSON answer.

    Parameters
    ----------
    seconds
        Limit of the wait for it; by default `ANSWER_SECONDS`.

    Raises
    ------
    HeadUnreachable
        Nothing answers there, or not in time.
    GpuClusterError
        What the head itself says is wrong, in its own class.
    """
    # Takes 15 ms to import, which listing clusters does without.
    import http.client

    limit = ANSWER_SECONDS if seconds is None else seconds
    try:
        with contextlib.closing(_connection(endpoint, limit)) as connection:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers={TOKEN_HEADER: endpoint.token},
            )
            response = connection.getresponse()
            answer = json.loads(response.read() or b"{}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise HeadUnreachable(
            f"The scheduler process does not answer ({error}).",
            hint="It may be busy or frozen. Try again, or read its log (command logs).",
        ) from error
    if response.status >= 400:
        raise _as_error(response.status, answer)
    return dict(answer)


def _connection(endpoint: Endpoint, seconds: float) -> http.client.HTTPConnection:
    """Return a connection that is not open yet; raises OSError for a damaged certificate."""
    import http.client

    host, port, context = endpoint.host, endpoint.port, endpoint.tls()
    if context is None:
        return http.client.HTTPConnection(host, port, timeout=seconds)
    return http.client.HTTPSConnection(host, port, timeout=seconds, context=context)


def _as_error(status: int, answer: dict[str, Any]) -> GpuClusterError:
    kind = getattr(errors, str(answer.get("kind", "")), GpuClusterError)
    if not (isinstance(kind, type) and issubclass(kind, GpuClusterError)):
        kind = GpuClusterError
    return kind(
        str(answer.get("message", f"The scheduler process answered with HTTP status {status}.")),
        hint=str(answer.get("hint", "")),
        detail=str(answer.get("detail", "")),
    )


def endpoint_at(directory: ClusterDirectory, address: str) -> Endpoint:
    """Return the address of the head of a cluster, with its token.

    Parameters
    ----------
    address
        ``host:port``, or ``https://host:port``, as records have it.

    Raises
    ------
    OSError
        The cluster's token or certificate cannot be read.
    """
    https = address.startswith("https://")
    host, _, port = address.removeprefix("https://").rpartition(":")
    token = (directory.path / "token").read_text().strip()
    ca = (directory.tls / "ca.pem").read_text() if https else ""
    return Endpoint(host, int(port), token, ca)


def responds(directory: ClusterDirectory, record: Record) -> bool:
    """Return whether a head answers; ask it at most every `REMEMBERED_SECONDS`."""
    key = str(directory.path)
    when, answer = _answers.get(key, (float("-inf"), False))
    if time.monotonic() - when < REMEMBERED_SECONDS:
        return answer
    try:
        endpoint = endpoint_at(directory, record.http_address)
        ask(endpoint, "GET", "/gpucluster/summary?brief=1", seconds=QUICK_SECONDS)
        answer = True
    except (HeadUnreachable, OSError, ValueError):
        answer = False
    except GpuClusterError:
        answer = True  # it refuses, so it lives
    _answers[key] = (time.monotonic(), answer)
    return answer


def ask_all(directories: Iterable[ClusterDirectory]) -> None:
    """Ask many heads at once, so that `responds` knows their answers."""

    def ask_one(directory: ClusterDirectory) -> None:
        with contextlib.suppress(GpuClusterError):
            record = directory.read_record(jobs=False)
            if record.http_address and record.head is not None and is_alive(record.head):
                responds(directory, record)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(ask_one, directories))
