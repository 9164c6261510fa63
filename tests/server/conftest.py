"""A Jupyter server with the extension, clusters in memory and a talkative head."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.auth import Authorizer, User
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.serverapp import ServerApp
from pytest_jupyter.pytest_tornasync import AsyncHTTPServerClient
from tornado import httpserver, netutil, web
from tornado.httpclient import HTTPResponse

from jupyter_gpucluster.server import app
from jupyter_gpucluster.state.control_client import Endpoint
from tests.server.doubles import RUNNING, TOKEN, InMemoryClusters, InMemoryDesk, a_head


class Allowing(Authorizer):
    """Allows what the test allows, and notes what was asked."""

    allowed: frozenset[tuple[str, str]] | None = None
    asked: list[tuple[str, str]]

    def is_authorized(
        self, handler: JupyterHandler, user: User, action: str, resource: str
    ) -> bool:
        self.asked.append((action, resource))
        return self.allowed is None or (action, resource) in self.allowed


@pytest.fixture
def authorizer() -> Iterator[type[Allowing]]:
    """Return who decides; everything is allowed until the test says otherwise."""
    Allowing.allowed, Allowing.asked = None, []
    yield Allowing
    Allowing.allowed = None


@pytest.fixture
def jp_server_config(authorizer: type[Allowing]) -> dict[str, Any]:
    return {
        "ServerApp": {
            "jpserver_extensions": {"jupyter_gpucluster": True},
            "authorizer_class": authorizer,
        },
        "GpuClusterApp": {"clusters_class": InMemoryClusters},
    }


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test but those of its own routes ask this machine's batch systems."""
    monkeypatch.setattr(app, "Desk", InMemoryDesk)


@pytest.fixture
def clusters(jp_serverapp: ServerApp) -> InMemoryClusters:
    """Return the clusters that the server knows."""
    found: InMemoryClusters = jp_serverapp.web_app.settings["gpucluster"].clusters
    return found


@dataclass(frozen=True)
class Answer:
    """The server's answer."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Ask = Callable[..., Awaitable[Answer]]


@pytest.fixture
def ask(
    http_server_client: AsyncHTTPServerClient, jp_base_url: str, jp_auth_header: dict[str, str]
) -> Ask:
    """Return a call that asks a path below the base URL and returns whatever is answered.

    ``token=False`` leaves out the user's token; a body that is no text becomes JSON.
    """

    async def ask_path(
        path: str,
        method: str = "GET",
        body: Any = None,
        *,
        token: bool = True,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        response: HTTPResponse = await http_server_client.fetch(
            jp_base_url + path,
            method=method,
            body=text,
            headers={**(jp_auth_header if token else {}), **(headers or {})},
            allow_nonstandard_methods=True,
            follow_redirects=False,
            raise_error=False,
        )
        return Answer(response.code, response.headers, response.body)

    return ask_path


async def serve_a_head(
    application: web.Application | None = None,
    certificates: Path | None = None,
    role: str = "scheduler",
) -> tuple[httpserver.HTTPServer, int]:
    """Serve the double of a head; over HTTPS where it is given certificates."""
    context = None
    if certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / f"{role}-cert.pem", certificates / f"{role}-key.pem")
    server = httpserver.HTTPServer(application or a_head(), ssl_options=context)
    [socket] = netutil.bind_sockets(0, "127.0.0.1")
    server.add_sockets([socket])
    return server, socket.getsockname()[1]


@pytest.fixture
def head(clusters: InMemoryClusters, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[int]:
    """Serve a head for the running cluster; return its port."""
    server, port = jp_asyncio_loop.run_until_complete(serve_a_head())
    clusters.endpoints[RUNNING] = Endpoint("127.0.0.1", port, TOKEN)
    yield port
    server.stop()
    jp_asyncio_loop.run_until_complete(server.close_all_connections())
