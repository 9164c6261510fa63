"""A real JupyterHub with its proxy and a base URL: routes, dashboards, other users, culling."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.websocket import websocket_connect

from tests.server.hub import PATIENCE, running_hub
from tests.waiting import hang_up

pytestmark = pytest.mark.slow

SELF = "frame-ancestors 'self'"
API = "gpucluster/api/"
IDLE_SECONDS = 8


@dataclass(frozen=True)
class Hub:
    """A Hub, asked as a service of its own, and its users as themselves."""

    home: str
    token: str

    async def ask(
        self,
        path: str,
        method: str = "GET",
        body: Any = None,
        *,
        token: str = "",
        headers: dict[str, str] | None = None,
    ) -> HTTPResponse:
        request = HTTPRequest(
            self.home + path,
            method=method,
            body=None if body is None else json.dumps(body),
            headers={"Authorization": f"token {token or self.token}", **(headers or {})},
            allow_nonstandard_methods=True,
            follow_redirects=False,
            request_timeout=PATIENCE,
        )
        return await AsyncHTTPClient().fetch(request, raise_error=False)

    async def log_in(self, user: str) -> str:
        """Make a user; return a token of theirs."""
        assert (await self.ask(f"hub/api/users/{user}", "POST")).code == 201
        made = await self.ask(f"hub/api/users/{user}/tokens", "POST", {"expires_in": 600})
        assert made.code == 201, made.body
        return str(json.loads(made.body)["token"])

    async def start_server(self, user: str) -> None:
        """Start a user's server, and wait for it."""
        asked = await self.ask(f"hub/api/users/{user}/server", "POST")
        assert asked.code in (201, 202), asked.body
        async with asyncio.timeout(PATIENCE):
            while True:
                if (await self.server_of(user) or {}).get("ready"):
                    return
                await asyncio.sleep(0.1)

    async def server_of(self, user: str) -> dict[str, Any] | None:
        """Return what the Hub knows of a user's server, None if there is none."""
        found: dict[str, Any] = json.loads((await self.ask(f"hub/api/users/{user}")).body)
        return dict(found["servers"]).get("")


@pytest.fixture
def hub(home: Path) -> Iterator[Hub]:
    """Run a Hub with its proxy."""
    with running_hub(home) as (address, token):
        yield Hub(address, token)


async def test_pages_that_nobody_touches_let_the_idle_culler_end_the_server(home: Path) -> None:
    with running_hub(home, culled_after=IDLE_SECONDS) as (address, token):
        hub = Hub(address, token)
        ada, bob = await hub.log_in("ada"), await hub.log_in("bob")
        await asyncio.gather(hub.start_server("ada"), hub.start_server("bob"))
        body = {"profile": "local", "target": {"workers": 1}}
        made = await hub.ask("user/ada/" + API + "clusters", "POST", body, token=ada)
        assert made.code == 201, made.body
        try:
            answers = await poll_until_culled(hub, ada, bob)
            # What changes while the workers start is sent; then there is nothing to send.
            assert answers[200] < answers[304]
        finally:
            await hub.start_server("ada")
            where = made.headers["Location"].removeprefix("/hub-base/")
            assert (await hub.ask(where, "DELETE", token=ada)).code == 202
            async with asyncio.timeout(PATIENCE):
                code = 0
                while code != 204:
                    await asyncio.sleep(0.1)
                    code = (await hub.ask(where, "DELETE", token=ada)).code


async def poll_until_culled(hub: Hub, ada: str, bob: str) -> Counter[int]:
    """Poll as a page of ada's does, and ask for bob's kernels as any Lab does by itself."""
    answers: Counter[int] = Counter()
    tag = ""
    async with asyncio.timeout(PATIENCE):
        while (await hub.server_of("ada")) is not None:
            polled = await hub.ask(
                "user/ada/" + API + "clusters?ended=1", token=ada, headers={"If-None-Match": tag}
            )
            answers[polled.code] += 1
            tag = polled.headers.get("Etag", tag)
            await hub.ask("user/bob/api/kernels", token=bob)
            await asyncio.sleep(0.3)
    assert await hub.server_of("bob") is not None
    return answers


async def test_a_cluster_and_its_dashboard_under_a_hub(hub: Hub) -> None:
    ada, eve = await hub.log_in("ada"), await hub.log_in("eve")
    await hub.start_server("ada")
    mine = "user/ada/"
    made = await hub.ask(
        mine + API + "clusters", "POST", {"profile": "local", "target": {"workers": 1}}, token=ada
    )
    assert made.code == 201, made.body
    cluster = json.loads(made.body)
    where = made.headers["Location"].removeprefix("/hub-base/")
    assert where == f"{mine}{API}clusters/{cluster['id']}"
    try:
        async with asyncio.timeout(PATIENCE):
            while cluster["phase"] != "running":
                assert cluster["phase"] not in ("failed", "stopped"), cluster
                await asyncio.sleep(0.1)
                cluster = json.loads((await hub.ask(where, token=ada)).body)
        await see_the_dashboard(hub, cluster["dashboard"], ada)
        await see_that_another_user_sees_nothing(hub, where, cluster["dashboard"], eve)
    finally:
        assert (await hub.ask(where, "DELETE", token=ada)).code == 202
    async with asyncio.timeout(PATIENCE):
        while cluster["phase"] != "stopped":
            await asyncio.sleep(0.1)
            cluster = json.loads((await hub.ask(where, token=ada)).body)
    # An error may be framed as well: it is shown where the plots were.
    ended = await hub.ask(f"{mine}gpucluster/dashboard/{cluster['id']}/status", token=ada)
    assert (ended.code, ended.headers.get_list("Content-Security-Policy")) == (409, [SELF])
    unknown = await hub.ask(f"{mine}gpucluster/dashboard/nobody/status", token=ada)
    assert (unknown.code, unknown.headers.get_list("Content-Security-Policy")) == (404, [SELF])
    rest = await hub.ask(mine + API + "clusters", token=ada)
    assert "frame-ancestors 'none'" in rest.headers["Content-Security-Policy"]
    forgotten = await hub.ask(where, "DELETE", token=ada)  # waits for the head to be closed
    assert forgotten.code == 204, forgotten.body


async def see_the_dashboard(hub: Hub, dashboard: str, token: str) -> None:
    assert dashboard.startswith("/hub-base/user/ada/gpucluster/dashboard/")
    path = dashboard.removeprefix("/hub-base/")
    page = await hub.ask(path + "status", token=token)
    assert page.code == 200
    assert page.headers.get_list("Content-Security-Policy") == [SELF]
    [bokeh] = set(re.findall(r'"token":"([^"]+)"', page.body.decode()))
    socket = await websocket_connect(
        HTTPRequest(
            hub.home.replace("http", "ws", 1) + path + "status/ws",
            headers={"Authorization": f"token {token}"},
        ),
        subprotocols=["bokeh", bokeh],
    )
    first = await asyncio.wait_for(socket.read_message(), PATIENCE)
    assert json.loads(first or "{}")["msgtype"] == "ACK"
    await hang_up(socket)


async def see_that_another_user_sees_nothing(
    hub: Hub, where: str, dashboard: str, token: str
) -> None:
    page = dashboard.removeprefix("/hub-base/") + "status"
    for path in (where, page, "user/ada/" + API + "clusters"):
        assert (await hub.ask(path, token=token)).code == 403, path
    request = HTTPRequest(
        hub.home.replace("http", "ws", 1) + page + "/ws",
        headers={"Authorization": f"token {token}"},
    )
    with pytest.raises(HTTPClientError) as refused:
        await websocket_connect(request)
    assert refused.value.code == 403
