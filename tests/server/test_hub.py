"""A real JupyterHub with its proxy and a base URL: routes, dashboards, other users, frames."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.websocket import websocket_connect

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
PROXY = CHECKOUT / "node_modules" / ".bin" / "configurable-http-proxy"
PATIENCE = 60.0
SELF = "frame-ancestors 'self'"
API = "gpucluster/api/"

CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}/hub-base/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = {proxy!r}
c.ConfigurableHTTPProxy.pid_file = "{place}/proxy.pid"
c.JupyterHub.db_url = "sqlite:///{place}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{place}/secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{place}/homes/{{username}}"
c.Spawner.ip = "127.0.0.1"
c.Spawner.args = ["--allow-root"]
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.environment = {{
    "PYTHONPATH": {checkout!r},
    "JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp",
}}
c.Spawner.env_keep = ["PATH", "LANG", "LC_ALL", "TMPDIR", "JUPYTER_PLATFORM_DIRS"]
c.JupyterHub.services = [{{"name": "test", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{
        "name": "test",
        "services": ["test"],
        "scopes": ["admin:users", "admin:servers", "tokens", "access:servers"],
    }}
]
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@dataclass(frozen=True)
class Hub:
    """A Hub, asked as a service of its own, and its users as themselves."""

    home: str
    token: str

    async def ask(
        self, path: str, method: str = "GET", body: Any = None, *, token: str = ""
    ) -> HTTPResponse:
        request = HTTPRequest(
            self.home + path,
            method=method,
            body=None if body is None else json.dumps(body),
            headers={"Authorization": f"token {token or self.token}"},
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
                model = json.loads((await self.ask(f"hub/api/users/{user}")).body)
                if model["servers"].get("", {}).get("ready"):
                    return
                await asyncio.sleep(0.1)


@pytest.fixture
def hub(home: Path) -> Iterator[Hub]:
    """Run a Hub with its proxy."""
    (home / "homes").mkdir()
    port, token = free_port(), secrets.token_hex()
    config = home / "hub.py"
    config.write_text(
        CONFIG.format(
            port=port,
            hub_port=free_port(),
            api_port=free_port(),
            proxy=[shutil.which("node") or "node", str(PROXY.resolve())],
            place=home,
            python=sys.executable,
            checkout=str(CHECKOUT),
            token=token,
        )
    )
    with (home / "hub.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(config)],
            cwd=home,
            env={**os.environ, "CONFIGPROXY_AUTH_TOKEN": secrets.token_hex()},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(port, process, home / "hub.log")
        yield Hub(f"http://127.0.0.1:{port}/hub-base/", token)
    finally:
        process.terminate()  # single-user servers and the proxy go with it
        process.wait(PATIENCE)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if b"JupyterHub is now running" in log.read_bytes():
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])


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
    socket.close()


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
