"""Where live heads listen, and whether they answer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..core.cluster import Record
from ..core.errors import GpuClusterError, HeadUnreachable
from ..host.cluster_directory import ClusterDirectory
from ..host.processes import is_alive
from .control_client import Endpoint, ask

ANSWER_SECONDS = 2.0
"""A head of this host that takes longer, and whose lease is old, is unreachable."""
REMEMBERED_SECONDS = 10.0
"""For so long an answer, or none, holds: pages ask every few seconds."""
AT_ONCE = 32
"""Heads asked at the same time, so that a list waits for one of them and not for each."""

_answers: dict[str, tuple[float, bool]] = {}


def endpoint_at(directory: ClusterDirectory, address: str) -> Endpoint:
    """Return where the head of a cluster listens.

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
    """Ask a head for a sign of life, at most once in a while."""
    key = str(directory.path)
    when, answer = _answers.get(key, (float("-inf"), False))
    if time.monotonic() - when < REMEMBERED_SECONDS:
        return answer
    try:
        endpoint = endpoint_at(directory, record.http_address)
        ask(endpoint, "GET", "/gpucluster/summary?brief=1", seconds=ANSWER_SECONDS)
        answer = True
    except (HeadUnreachable, OSError, ValueError):
        answer = False
    except GpuClusterError:
        answer = True  # it refuses, so it lives
    _answers[key] = (time.monotonic(), answer)
    return answer


def ask_all(
    directories: Sequence[ClusterDirectory], read: Callable[[ClusterDirectory], Record]
) -> None:
    """Ask many heads at once and remember their answers for whoever looks at them next."""

    def ask_one(directory: ClusterDirectory) -> None:
        with contextlib.suppress(GpuClusterError):
            record = read(directory)
            if record.http_address and record.head is not None and is_alive(record.head):
                responds(directory, record)

    if len(directories) > 1:  # of one it makes no difference who asks
        with ThreadPoolExecutor(min(len(directories), AT_ONCE)) as threads:
            list(threads.map(ask_one, directories))
