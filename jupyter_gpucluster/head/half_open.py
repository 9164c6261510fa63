"""Limit of connections to a head whose other end has not shown who it is."""

from __future__ import annotations

import asyncio
import inspect
import resource
from collections.abc import Callable
from typing import Any

from distributed import Scheduler
from tornado.iostream import IOStream

SECONDS = 30.0
"""Time for the handshake, or for the first request with the token; Dask's clients give up, too."""
PART = 4
"""Such connections get this part of the open files at most; the oldest is closed for a new one."""


class HalfOpen:
    """Connections of one port that are not known yet: any user of the host may open them.

    Parameters
    ----------
    most
        Their largest number.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.streams: dict[IOStream, asyncio.TimerHandle] = {}

    def guard(self, server: Any) -> None:
        """Count each connection that a tornado server accepts."""
        accept: Callable[[IOStream, Any], Any] = server.handle_stream

        def handle_stream(stream: IOStream, address: Any) -> Any:
            self.enter(stream)
            answer = accept(stream, address)
            return self.until_done(stream, answer) if inspect.isawaitable(answer) else answer

        server.handle_stream = handle_stream

    async def until_done(self, stream: IOStream, work: Any) -> None:
        """Wait until a connection is over; a failed handshake ends it early."""
        try:
            await work
        finally:
            self.leave(stream)

    def enter(self, stream: IOStream) -> None:
        """Begin to count a connection; close the oldest if there are too many."""
        loop = asyncio.get_running_loop()
        self.streams[stream] = loop.call_later(SECONDS, self.close, stream)
        while len(self.streams) > self.most:
            self.close(next(iter(self.streams)))

    def close(self, stream: IOStream) -> None:
        """Close a connection that is not known yet."""
        self.leave(stream)
        stream.close()

    def leave(self, stream: IOStream | None) -> None:
        """Count a connection no longer: its other end is known, or it is over."""
        if stream is not None and (timer := self.streams.pop(stream, None)) is not None:
            timer.cancel()


def most_half_open() -> int:
    """Return the largest number of unknown connections of one port."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, (65536 if soft < 0 else soft) // PART)


def guard_scheduler(scheduler: Scheduler) -> None:
    """Limit the connections to Dask's port that have not finished their handshake."""
    listener: Any
    for listener in scheduler.listeners:
        server = getattr(listener, "tcp_server", None)
        if server is None:
            continue  # UCX
        gate = HalfOpen(most_half_open())
        gate.guard(server)
        listener.on_connection = _left_after(gate, listener.on_connection)


def _left_after(gate: HalfOpen, handshake: Callable[..., Any]) -> Callable[..., Any]:
    async def on_connection(comm: Any, *arguments: Any, **named: Any) -> Any:
        answer = await handshake(comm, *arguments, **named)
        gate.leave(comm.stream)
        return answer

    return on_connection
