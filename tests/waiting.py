"""Wait for what another process does, or ask what it knows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client
    from tornado.websocket import WebSocketClientConnection

SECONDS = 30.0
"""Far more than anything here takes, also on a busy machine."""


def until(true: Callable[[], object]) -> None:
    """Wait until something is true; the test fails where it does not become so."""
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


async def hang_up(websocket: WebSocketClientConnection) -> None:
    """Close a websocket and wait until it is: one left open would count against a later test."""
    websocket.close()
    async with asyncio.timeout(SECONDS):
        while True:
            if websocket.stream.closed():
                return
            await asyncio.sleep(0.01)


def workers_of(client: Client) -> dict[str, Any]:
    """Return what the scheduler tells of its workers, by address.

    Not `Client.scheduler_info`: it returns what the client keeps, which its refresh every 2 s, that
    asks for no workers, may empty between answer and return (distributed 2026.8.0).
    """
    scheduler: Any = client.scheduler
    return dict(client.sync(scheduler.identity, n_workers=-1)["workers"])
