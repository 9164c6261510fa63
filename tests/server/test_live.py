"""A real server and a real local cluster, from POST to gone."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.server.async_clusters import AsyncClusters
from tests.server.conftest import Allowing, Ask
from tests.server.test_openapi import check, schema_of, spec
from tests.server.test_routes import API
from tests.waiting import hang_up

__all__ = ["spec"]

pytestmark = pytest.mark.slow

PATIENCE = 60.0
TRIES = 5
"""On a busy machine a regular write of the summary may come before the list is read."""
FILLED = 300_000_000


@pytest.fixture
def jp_server_config(authorizer: type[Allowing]) -> dict[str, Any]:
    return {
        "ServerApp": {
            "jpserver_extensions": {"jupyter_gpucluster": True},
            "authorizer_class": authorizer,
        }
    }


async def until(ask: Ask, path: str, good: Callable[[Any], bool]) -> Any:
    """Ask again and again until the answer is good; return it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await ask(path)).json
            if good(found):
                return found
            await asyncio.sleep(0.05)


def is_ready(cluster: Any) -> bool:
    assert cluster["phase"] not in ("failed", "stopped"), cluster
    return bool(cluster["phase"] == "running" and cluster["workers"]["ready"] == 2)


async def test_a_cluster_from_start_to_gone(
    ask: Ask,
    spec: Any,
    http_server_client: Any,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    jp_serverapp: ServerApp,
) -> None:
    body = {"profile": "local", "name": "live", "target": {"workers": 2}, "request_id": "r-1"}
    started = await ask(API + "clusters", "POST", body)
    assert started.status == 201, started.body
    check(spec, started.json, schema_of(spec, "POST", "clusters", 201))
    again = await ask(API + "clusters", "POST", body)
    assert again.json["id"] == started.json["id"]
    path = started.headers["Location"].removeprefix(jp_base_url)
    try:
        ready = await until(ask, path, is_ready)
        check(spec, ready, schema_of(spec, "GET", "clusters/x", 200))
        await see_the_dashboard(ask, ready, http_server_client, jp_base_url, jp_auth_header)
        for part in ("jobs", "logs", "events", "scripts", "why", "client-code"):
            answer = await ask(f"{path}/{part}")
            assert answer.status == 200, answer.body
            check(spec, answer.json, schema_of(spec, "GET", f"clusters/x/{part}", 200))
        code = (await ask(f"{path}/client-code")).body.decode()
        endpoint = await AsyncClusters().endpoint(ready["id"])
        assert endpoint.token not in code
        await see_figures_that_are_not_on_disk(ask, ready)
        taken = await ask(API + "clusters", "POST", {**body, "request_id": "r-2"})
        assert taken.status == 409
        scaled = await ask(path, "PATCH", {"name": "other", "target": {"workers": 1}})
        assert scaled.status == 200, scaled.body
        await until(ask, path, lambda c: c["workers"]["ready"] == 1 and c["name"] == "other")
        await jp_serverapp.extension_manager.stop_all_extensions()
        assert (await ask(path)).json["phase"] == "running"
    finally:
        stopping = await ask(path, "DELETE")
    assert stopping.status == 202, stopping.body
    stopped = await until(ask, path, lambda c: c["phase"] == "stopped")
    assert stopped["dashboard"] is None
    page = await ask(f"gpucluster/dashboard/{ready['id']}/status")
    assert (page.status, page.headers["Content-Security-Policy"]) == (409, "frame-ancestors 'self'")
    await asyncio.to_thread(Clusters().wait_stopped, ready["id"], timeout=PATIENCE)
    assert (await ask(path, "DELETE")).status == 204
    assert (await ask(path)).status == 404


async def see_figures_that_are_not_on_disk(ask: Ask, cluster: Any) -> None:
    """Fill a worker's memory: the list follows within 3 s, the summary on disk does not."""
    summary = Path(cluster["directory"]) / "summary.json"
    client = await asyncio.to_thread(connect, cluster["id"], set_as_default=False)
    try:
        await until(ask, API + "clusters", lambda found: found["clusters"][0]["clients"] == 1)
        for _ in range(TRIES):
            before = written = summary.stat().st_mtime_ns
            async with asyncio.timeout(PATIENCE):
                while written == before:  # the next time is in ten seconds
                    await asyncio.sleep(0.05)
                    written = summary.stat().st_mtime_ns
            used = (await ask(API + "clusters")).json["clusters"][0]["memory_used"]
            data = await asyncio.to_thread(client.scatter, b"x" * FILLED)
            expected = used + FILLED / 2

            def followed(found: Any, expected: float = expected) -> bool:
                return bool(found["clusters"][0]["memory_used"] > expected)

            async with asyncio.timeout(3.0):
                await until(ask, API + "clusters", followed)
            del data
            if summary.stat().st_mtime_ns == written:
                return
        raise AssertionError("the summary was written each time before the list showed the memory")
    finally:
        await asyncio.to_thread(client.close)


async def see_the_dashboard(
    ask: Ask, cluster: Any, client: Any, base_url: str, authorization: dict[str, str]
) -> None:
    home = cluster["dashboard"].removeprefix(base_url)
    # Jupyter takes the slash off before the dashboard can.
    where, redirects = home, 0
    while (page := await ask(where)).status in (301, 302):
        where, redirects = page.headers["Location"].removeprefix(base_url), redirects + 1
        assert redirects < 4
    assert where == home + "status"
    assert page.status == 200
    text = page.body.decode()
    assert "Bokeh" in text
    assert page.headers["Content-Security-Policy"] == "frame-ancestors 'self'"

    endpoint = await AsyncClusters().endpoint(cluster["id"])
    [bokeh_token] = set(re.findall(r'"token":"([^"]+)"', text))
    assert endpoint.token not in text
    assert endpoint.token not in unpacked(bokeh_token)
    direct = f"http://{endpoint.host}:{endpoint.port}/"
    for path in ("status", "", "gpucluster/summary", "health"):
        refused = await AsyncHTTPClient().fetch(direct + path, raise_error=False)
        assert refused.code == 403

    for script in re.findall(r'<script[^>]* src="([^"]+)"', text):
        if not script.startswith("http"):
            asked = script if script.startswith(base_url) else f"{base_url}{home}{script}"
            assert (await ask(asked.removeprefix(base_url))).status == 200, script
    for path in ("gpucluster/summary", "gpucluster/stop"):
        assert (await ask(home + path)).status == 404
    assert (await ask(home + "individual-plots.json")).status == 200

    port = client.get_http_port()
    session = json.loads(decoded(bokeh_token))["session_id"]
    request = HTTPRequest(
        f"ws://127.0.0.1:{port}{base_url}{home}status/ws?bokeh-session-id={session}",
        headers=authorization,
    )
    socket = await websocket_connect(request, subprotocols=["bokeh", bokeh_token])
    first = await asyncio.wait_for(socket.read_message(), PATIENCE)
    assert json.loads(first or "{}")["msgtype"] == "ACK"
    await hang_up(socket)


def decoded(token: str) -> bytes:
    payload = token.partition(".")[0]
    return base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))


def unpacked(token: str) -> str:
    """Return all that a Bokeh session token says, the packed headers included."""
    payload = json.loads(decoded(token))
    packed = payload.get("__bk__zlib_", "")
    raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    return json.dumps(payload) + (zlib.decompress(raw).decode() if raw else "")
