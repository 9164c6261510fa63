"""The dashboard proxy, against a head that tells what reached it and answers whatever is asked."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from jupyter_server.serverapp import ServerApp
from pytest_jupyter.pytest_tornasync import AsyncHTTPServerClient
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_gpucluster.launch.certificates import make_certificates
from jupyter_gpucluster.server.dashboard import open_path, without_token
from jupyter_gpucluster.state.control_client import Endpoint
from tests.server.conftest import Allowing, Ask, serve_a_head
from tests.server.doubles import (
    LOST,
    RUNNING,
    STARTING,
    STOPPED,
    TOKEN,
    InMemoryClusters,
    SlowSocket,
)
from tests.waiting import hang_up

HERE = f"gpucluster/dashboard/{RUNNING}"
SELF = "frame-ancestors 'self'"

BROWSER = {
    "Cookie": "session=secret",
    "Authorization": "Bearer secret",
    "X-XSRFToken": "secret",
    "X-Forwarded-Access-Token": "secret",
    "Proxy-Authorization": "secret",
    "Referer": "http://127.0.0.1/lab?token=secret",
    "X-Gpucluster-Token": "forged",
    "Accept-Language": "de",
}


@pytest.fixture
def connect(
    http_server_client: AsyncHTTPServerClient,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> Iterator[Any]:
    """Return a call that opens a websocket below the base URL."""
    port = http_server_client.get_http_port()
    opened: list[WebSocketClientConnection] = []

    async def connect_to(
        path: str, headers: dict[str, str] | None = None, *, token: bool = True, **options: Any
    ) -> WebSocketClientConnection:
        given = {**(jp_auth_header if token else {}), **(headers or {})}
        request = HTTPRequest(f"ws://127.0.0.1:{port}{jp_base_url}{path}", headers=given)
        opened.append(await websocket_connect(request, **options))
        return opened[-1]

    yield connect_to
    for socket in opened:
        jp_asyncio_loop.run_until_complete(hang_up(socket))


@pytest.fixture
def secure_head(
    clusters: InMemoryClusters, jp_asyncio_loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> Iterator[int]:
    """Serve a head over HTTPS, with certificates made as for any cluster; return its port."""
    make_certificates(tmp_path, cluster="abcdef", seconds=3600)
    server, port = jp_asyncio_loop.run_until_complete(serve_a_head(certificates=tmp_path))
    clusters.endpoints[RUNNING] = Endpoint(
        "127.0.0.1", port, TOKEN, (tmp_path / "ca.pem").read_text()
    )
    yield port
    server.stop()
    jp_asyncio_loop.run_until_complete(server.close_all_connections())


@pytest.fixture
def jp_server_config(jp_server_config: dict[str, Any]) -> dict[str, Any]:
    """Make the user's token a word that can be searched for."""
    return {**jp_server_config, "IdentityProvider": {"token": "secret"}}


async def test_a_page_arrives_with_the_heads_token_and_without_the_users(
    ask: Ask, head: int
) -> None:
    path = HERE + "/status?token=secret&theme=dark&to%6ben=secret"
    answer = await ask(path, headers=BROWSER, token=False)
    assert answer.status == 200
    seen = answer.json
    assert seen["uri"] == "/status?theme=dark"
    assert seen["headers"]["x-gpucluster-token"] == TOKEN
    assert seen["headers"]["accept-language"] == "de"
    assert seen["headers"]["host"] == f"127.0.0.1:{head}"
    assert "secret" not in answer.body.decode()
    assert "authorization" not in seen["headers"]


@pytest.mark.parametrize("accepted", [{}, {"Accept": "text/event-stream"}])
async def test_a_page_may_be_framed_here_and_sets_nothing_for_this_site(
    ask: Ask, head: int, accepted: dict[str, str]
) -> None:
    headers = (await ask(HERE + "/status", headers=accepted)).headers
    assert headers.get_list("Content-Security-Policy") == [SELF]
    assert "stolen" not in str(list(headers.get_all()))
    assert "Clear-Site-Data" not in headers
    assert headers.get("Access-Control-Allow-Origin", "") == ""


async def test_every_answer_may_be_framed_also_where_a_hub_forbids_frames(
    ask: Ask, head: int, clusters: InMemoryClusters, jp_serverapp: ServerApp
) -> None:
    settings = jp_serverapp.web_app.settings
    settings["headers"] = {"Content-Security-Policy": "frame-ancestors 'none'"}
    clusters.endpoints[STOPPED] = clusters.endpoints[RUNNING]
    for path in ("c-nobody/status", f"{STOPPED}/status", f"{RUNNING}/status", f"{LOST}/x"):
        answer = await ask(f"gpucluster/dashboard/{path}")
        assert answer.headers.get_list("Content-Security-Policy") == [SELF], path
    login = await ask(HERE + "/status", token=False)
    assert login.headers.get_list("Content-Security-Policy") == [SELF]


async def test_a_dashboard_can_only_be_looked_at(ask: Ask, head: int) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
        body = None if method in ("HEAD", "OPTIONS") else b"x"
        answer = await ask(HERE + "/status", method, body)
        assert answer.status == 405, method
        assert answer.headers["Allow"] == "GET"
        assert TOKEN not in answer.body.decode()


async def test_pages_of_dead_clusters_say_so_and_repeat_nothing(
    ask: Ask, head: int, clusters: InMemoryClusters
) -> None:
    for path, status, words in (
        ("c-nobody<script>/status", 404, "no such cluster"),
        (f"{STOPPED}/<script>", 409, "ended"),
        (f"{STARTING}/<script>", 409, "still starting"),
        (f"{LOST}/<script>", 503, "does not answer"),
    ):
        answer = await ask(f"gpucluster/dashboard/{path.replace('<', '%3C').replace('>', '%3E')}")
        assert answer.status == status, path
        assert answer.headers["Content-Type"].startswith("text/html")
        text = answer.body.decode()
        assert words in text
        assert "script" not in text


async def test_a_head_that_does_not_answer_is_said_to(
    ask: Ask, clusters: InMemoryClusters, caplog: pytest.LogCaptureFixture
) -> None:
    clusters.endpoints[RUNNING] = Endpoint("127.0.0.1", 1, TOKEN)
    answer = await ask(HERE + "/status")
    assert answer.status == 503
    assert "does not answer" in answer.body.decode()
    assert "Traceback" not in caplog.text


CLOSED = (
    "/gpucluster/summary",
    "/gpucluster",
    "/GPUCluster/stop",
    "/%67pucluster/summary",
    "/gpucluster%2Fsummary",
    "//gpucluster/summary",
    "/./gpucluster/summary",
    "/status/../gpucluster/summary",
    "/status/%2e%2e/gpucluster/summary",
    "/status%2F..%2Fgpucluster/summary",
    "/status/..%5Cgpucluster/summary",
    "/%00gpucluster/summary",
    "/proxy/8888/127.0.0.1/status",
    "/%0D%0Ax",
)


async def test_the_control_of_a_head_is_out_of_reach(ask: Ask, head: int) -> None:
    for path in CLOSED:
        answer = await ask(HERE + path)
        assert answer.status == 404, path
        assert TOKEN not in answer.body.decode()


MEANT = (
    ("", "/"),
    ("/status", "/status"),
    ("/info/main/workers.html", "/info/main/workers.html"),
    ("/static/js/bokeh.min.js?v=1", "/static/js/bokeh.min.js?v=1"),
    ("/a%20b%3Fc%23d%25", "/a%20b%3Fc%23d%25"),
    ("/%25%36%37pucluster/summary", "/%2567pucluster/summary"),
    ("/individual-cpu?x=%26token=1", "/individual-cpu?x=%26token=1"),
)


async def test_a_path_arrives_as_it_was_meant(ask: Ask, head: int) -> None:
    for path, arrives in MEANT:
        assert (await ask(HERE + path)).json["uri"] == arrives


REDIRECTS = (
    ("status", "/status"),
    ("/individual-cpu?a=1&token=secret", "/individual-cpu?a=1"),
    ("/a%20b", "/a%20b"),
    ("http://127.0.0.1:{port}/status", "/status"),
    ("//127.0.0.1:{port}/status", "/status"),
)


async def test_a_redirect_stays_below_the_dashboard(ask: Ask, head: int, jp_base_url: str) -> None:
    for location, arrives in REDIRECTS:
        to = quote(location.format(port=head), safe="")
        answer = await ask(f"{HERE}/x?to={to}")
        assert answer.status == 302, location
        assert answer.headers["Location"] == jp_base_url + HERE + arrives


ASTRAY = (
    "https://elsewhere.example/",
    "//elsewhere.example/",
    "http://127.0.0.1:1/status",
    "https://127.0.0.1:{port}/status",
    "http://127.0.0.1:{port}@elsewhere.example/",
    "javascript:alert(1)",
    "/gpucluster/summary",
    "/x/../gpucluster/summary",
    "/proxy/1/127.0.0.1/",
)


async def test_a_redirect_to_anywhere_else_is_refused(ask: Ask, head: int) -> None:
    for location in ASTRAY:
        answer = await ask(f"{HERE}/x?to={quote(location.format(port=head), safe='')}")
        assert answer.status in (404, 502), location
        assert "Location" not in answer.headers
        assert answer.headers.get_list("Content-Security-Policy") == [SELF]


async def test_nobody_sees_a_dashboard_without_logging_in(
    ask: Ask, head: int, connect: Any, authorizer: type[Allowing]
) -> None:
    answer = await ask(HERE + "/status", token=False)
    assert answer.status == 302
    assert "/login?next=" in answer.headers["Location"]
    with pytest.raises(HTTPClientError, match="403"):
        await connect(HERE + "/ws", token=False)
    unknown = await ask("gpucluster/dashboard/c-nobody/status", token=False)
    assert unknown.status == 302
    assert not authorizer.asked


async def test_an_authorizer_tells_pages_from_websockets(
    ask: Ask, head: int, connect: Any, authorizer: type[Allowing]
) -> None:
    authorizer.allowed = frozenset({("read", "gpucluster")})
    assert (await ask(HERE + "/status")).status == 200
    with pytest.raises(HTTPClientError, match="403"):
        await connect(HERE + "/ws")
    authorizer.allowed = frozenset({("execute", "gpucluster")})
    assert (await ask(HERE + "/status")).status == 403
    await connect(HERE + "/ws")


async def test_a_websocket_carries_messages_and_no_credentials(connect: Any, head: int) -> None:
    path = HERE + "/ws?token=secret&a=1"
    socket = await connect(path, BROWSER, token=False, subprotocols=["bokeh", "t0"])
    seen = json.loads(await socket.read_message())
    assert seen["uri"] == "/ws?a=1"
    assert seen["headers"]["x-gpucluster-token"] == TOKEN
    assert seen["headers"]["sec-websocket-protocol"] == "bokeh,t0"
    assert socket.selected_subprotocol == "bokeh"
    assert "secret" not in str(seen)
    assert "authorization" not in seen["headers"]
    for message in ("text", b"\x00binary"):
        await socket.write_message(message, binary=isinstance(message, bytes))
        assert await socket.read_message() == message


async def test_a_websocket_to_nothing_is_refused_before_it_opens(connect: Any, head: int) -> None:
    for path, status in (
        ("gpucluster/dashboard/c-nobody/ws", "404"),
        (f"gpucluster/dashboard/{STOPPED}/ws", "409"),
        (f"gpucluster/dashboard/{LOST}/ws", "503"),
        (HERE + "/gpucluster/summary", "404"),
    ):
        with pytest.raises(HTTPClientError, match=status):
            await connect(path)


async def test_a_websocket_of_another_site_is_refused(
    connect: Any, head: int, ask: Ask, jp_serverapp: ServerApp
) -> None:
    page = await ask(f"tree?token={jp_serverapp.identity_provider.token}", token=False)
    cookies = "; ".join(c.split(";")[0] for c in page.headers.get_list("Set-Cookie"))
    await connect(HERE + "/ws", {"Cookie": cookies}, token=False)
    for origin in ("https://elsewhere.example", "null"):
        with pytest.raises(HTTPClientError, match="403"):
            await connect(HERE + "/ws", {"Cookie": cookies, "Origin": origin}, token=False)


async def test_a_websocket_that_the_head_refuses_is_closed_with_words(
    connect: Any, head: int, clusters: InMemoryClusters, caplog: pytest.LogCaptureFixture
) -> None:
    no_websocket = await connect(HERE + "/status")
    assert await no_websocket.read_message() is None
    assert no_websocket.close_code == 1013
    clusters.endpoints[RUNNING] = Endpoint("127.0.0.1", 1, TOKEN)
    no_head = await connect(HERE + "/ws")
    assert await no_head.read_message() is None
    assert no_head.close_reason == "The scheduler process does not answer."
    assert "Traceback" not in caplog.text


# Collecting garbage also meets the client's own half of the connection, cut on purpose.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
async def test_a_closed_tab_is_not_worth_a_traceback(
    connect: Any, head: int, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    socket = await connect(HERE + "/ws")
    await socket.read_message()
    await socket.write_message("flood")
    assert await socket.read_message() == b"x" * 100_000
    socket.stream.close()  # as a browser that is killed
    for _ in range(20):  # the flood goes on into nothing meanwhile
        await ask(HERE + "/status")
    gc.collect()  # only now does asyncio tell of errors that nobody asked for
    await asyncio.sleep(0)
    assert "WebSocketClosedError" not in caplog.text
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


async def test_a_tab_closed_too_early_leaves_no_websocket_behind(
    connect: Any, head: int, ask: Ask
) -> None:
    socket = await connect(HERE + "/slow")
    socket.stream.close()  # as a browser that is killed
    await ask(HERE + "/status")  # our side has seen it by now
    SlowSocket.may_open.set()
    await asyncio.wait_for(SlowSocket.closed.wait(), 10)


async def test_a_head_on_another_node_is_reached_over_https(
    ask: Ask, connect: Any, secure_head: int, jp_base_url: str
) -> None:
    answer = await ask(f"{HERE}/status?a=1", headers=BROWSER)
    assert answer.status == 200
    told = answer.json
    assert (told["uri"], told["headers"]["x-gpucluster-token"]) == ("/status?a=1", TOKEN)
    assert "secret" not in answer.body.decode()
    socket = await connect(f"{HERE}/ws", BROWSER)
    opened = json.loads(await socket.read_message())
    assert opened["headers"]["x-gpucluster-token"] == TOKEN
    await socket.write_message("over TLS")
    assert await socket.read_message() == "over TLS"
    home = f"https://127.0.0.1:{secure_head}/workers"
    moved = await ask(f"{HERE}/status?to={quote(home, safe='')}")
    assert moved.headers["Location"].startswith(f"{jp_base_url}{HERE}/workers")
    plain = home.replace("https", "http")
    assert (await ask(f"{HERE}/status?to={quote(plain, safe='')}")).status == 502


async def test_a_head_of_another_cluster_is_not_believed(
    ask: Ask, connect: Any, clusters: InMemoryClusters, secure_head: int, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_certificates(other, cluster="fedcba", seconds=3600)
    authority = (other / "ca.pem").read_text()
    clusters.endpoints[RUNNING] = Endpoint("127.0.0.1", secure_head, TOKEN, authority)
    answer = await ask(f"{HERE}/status")
    assert answer.status == 503
    assert answer.headers["Content-Security-Policy"] == SELF
    assert TOKEN not in answer.body.decode()
    socket = await connect(f"{HERE}/ws")
    assert await socket.read_message() is None


async def test_who_has_only_a_clients_certificate_cannot_pose_as_a_head(
    ask: Ask, clusters: InMemoryClusters, tmp_path: Path
) -> None:
    make_certificates(tmp_path, cluster="abcdef", seconds=3600)
    server, port = await serve_a_head(certificates=tmp_path, role="client")
    clusters.endpoints[RUNNING] = Endpoint(
        "127.0.0.1", port, TOKEN, (tmp_path / "ca.pem").read_text()
    )
    assert (await ask(f"{HERE}/status")).status == 503
    server.stop()
    await server.close_all_connections()


async def test_what_the_browser_has_already_is_not_sent_again(ask: Ask, head: int) -> None:
    first = await ask(HERE + "/static/js/bokeh.min.js")
    assert first.headers["Etag"] == '"of-the-head"'
    again = await ask(HERE + "/x", headers={"If-None-Match": first.headers["Etag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "query, kept",
    [
        ("", ""),
        ("token=a", ""),
        ("a=1&token=b&c=2", "?a=1&c=2"),
        ("TOKEN=a", "?TOKEN=a"),
        ("tok%65n=a", ""),
        ("token", ""),
        ("a=token=b", "?a=token=b"),
    ],
)
def test_a_query_loses_the_token_and_nothing_else(query: str, kept: str) -> None:
    assert without_token(query) == kept


def test_a_path_of_a_dashboard_is_kept() -> None:
    kept = ["/", "/status", "/info/", "/a b"]
    assert [open_path(path) for path in ("", *kept)] == ["/", *kept]
