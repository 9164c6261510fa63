"""Wait for what another process does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
