"""A head with a thousand idle connections of another user goes on."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed import Scheduler
from distributed.core import rpc

from jupyter_gpucluster.core.cluster import TOKEN_HEADER, Spec
from jupyter_gpucluster.head import dask_scheduler, half_open, http_api
from jupyter_gpucluster.head.service import Service
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory

IDLE = 1000
MOST = 100


async def open_idle(address: tuple[str, int]) -> list[socket.socket]:
    """Open connections that send nothing."""
    found = []
    for number in range(IDLE):
        idle = socket.socket()
        idle.setblocking(False)
        await asyncio.get_running_loop().sock_connect(idle, address)
        found.append(idle)
        if number % 50 == 0:
            await asyncio.sleep(0.01)
    return found


async def closed_by_peer(idle: list[socket.socket], count: int) -> None:
    """Wait until the other end has closed so many of the connections."""
    open_ones = set(idle)
    while len(idle) - len(open_ones) < count:
        for one in list(open_ones):
            try:
                while data := one.recv(4096):  # the scheduler's part of the handshake
                    assert data
                open_ones.discard(one)
            except BlockingIOError:
                pass
            except OSError:
                open_ones.discard(one)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("port", ["scheduler", "http"])
@pytest.mark.parametrize("how", ["limited", "timed"])
async def test_a_thousand_idle_connections_are_closed_and_known_ones_go_on(
    port: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = how == "timed"
    monkeypatch.setattr(half_open, "SECONDS", 0.5 if timed else 300.0)
    monkeypatch.setattr(half_open, "most_half_open", lambda: 10**6 if timed else MOST)
    monkeypatch.setattr(http_api, "most_half_open", lambda: 10**6 if timed else MOST)
    spec = Spec("p", "P", "local", "python", encrypted=False, scratch=str(tmp_path))
    scheduler = dask_scheduler.make_scheduler(ClusterDirectory(tmp_path), spec)
    summary = SimpleNamespace(
        files=SimpleNamespace(newer_than=nothing, summary=SimpleNamespace(revision=7))
    )
    http_api.install(scheduler, cast("Service", summary), "secret")
    async with scheduler:
        half_open.guard_scheduler(scheduler)
        known = rpc(scheduler.address)
        assert (await known.identity())["type"] == "Scheduler"
        reader, writer = await asyncio.open_connection("127.0.0.1", http_port(scheduler))
        assert await asked(reader, writer) == {"revision": 7}
        address = ("127.0.0.1", scheduler.port if port == "scheduler" else http_port(scheduler))
        idle = await open_idle(address)
        await asyncio.wait_for(closed_by_peer(idle, IDLE if timed else IDLE - MOST), 60)
        assert (await known.identity())["type"] == "Scheduler"
        assert await asked(reader, writer) == {"revision": 7}
        another = rpc(scheduler.address)
        assert (await another.identity())["type"] == "Scheduler"
        writer.close()
        for one in (known, another):
            await one.close_rpc()
        for each in idle:
            each.close()


async def nothing(*_: Any) -> None:
    """Wait for nothing."""


def http_port(scheduler: Scheduler) -> int:
    server: Any = scheduler.http_server
    return int(server.port)


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Any:
    """Ask the head for its revision over a connection that stays open."""
    import json

    text = f"GET /gpucluster/summary?brief=1 HTTP/1.1\r\nHost: x\r\n{TOKEN_HEADER}: secret\r\n\r\n"
    writer.write(text.encode())
    head = await reader.readuntil(b"\r\n\r\n")
    [length] = [line for line in head.decode().split("\r\n") if "Content-Length" in line]
    return json.loads(await reader.readexactly(int(length.split()[1])))
