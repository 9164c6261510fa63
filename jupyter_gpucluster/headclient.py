"""Ask a head: JSON over its own HTTP server, with the cluster's token, from any process."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from . import errors
from .errors import GpuClusterError, HeadUnreachable

TOKEN_HEADER = "X-Gpucluster-Token"  # noqa: S105  # the header's name
ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Endpoint:
    """Where a live head listens; the token opens every path there, so it is never shown."""

    host: str
    port: int
    token: str = field(repr=False)


def ask(
    endpoint: Endpoint,
    method: str,
    path: str,
    body: object = None,
    *,
    seconds: float = ANSWER_SECONDS,
) -> dict[str, Any]:
    """Send a request to a head and return its JSON answer.

    Raises
    ------
    HeadUnreachable
        Nothing answers there, or not in time.
    GpuClusterError
        What the head itself says is wrong, in its own class.
    """
    # Takes 15 ms to import, which listing clusters does without.
    import http.client

    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=seconds)
    try:
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
            f"The cluster's head does not answer ({error}).",
            hint="It may be busy or frozen; try again, or look at its log.",
        ) from error
    finally:
        connection.close()
    if response.status >= 400:
        raise _as_error(response.status, answer)
    return dict(answer)


def _as_error(status: int, answer: dict[str, Any]) -> GpuClusterError:
    kind = getattr(errors, str(answer.get("kind", "")), GpuClusterError)
    if not (isinstance(kind, type) and issubclass(kind, GpuClusterError)):
        kind = GpuClusterError
    return kind(
        str(answer.get("message", f"The head answered {status}.")),
        hint=str(answer.get("hint", "")),
        detail=str(answer.get("detail", "")),
    )
