"""The idle culler of a real JupyterHub; the browser tests have clusters and dashboards there."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest, HTTPResponse

from tests.server.hub import PATIENCE, running_hub

pytestmark = pytest.mark.slow

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
