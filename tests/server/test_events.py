"""Hints that clusters have changed: who gets them, how often, and when nobody watches."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from jupyter_server.serverapp import ServerApp
from pytest_jupyter.pytest_tornasync import AsyncHTTPServerClient
from tornado import httpserver, netutil, web
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.server import events, watching
from jupyter_gpucluster.server.watching import Watch
from jupyter_gpucluster.state.control_client import Endpoint
from tests.server.conftest import Allowing, Ask
from tests.server.doubles import RUNNING, STARTING, TOKEN, InMemoryClusters, a_view
from tests.server.test_routes import API
from tests.waiting import hang_up

PATIENCE = 20.0


class Listener:
    """A page that listens to Jupyter's events."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self.socket = socket

    async def hint(self) -> tuple[str, int]:
        """Return the next hint: id and revision."""
        while True:
            text = await asyncio.wait_for(self.socket.read_message(), PATIENCE)
            event = json.loads(text or "")
            if event.get("schema_id") == events.SCHEMA_ID:
                return event["id"], event["revision"]


@pytest.fixture
def listen(
    http_server_client: AsyncHTTPServerClient,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    jp_asyncio_loop: asyncio.AbstractEventLoop,
) -> Iterator[Callable[[], Any]]:
    """Return a call that subscribes like a page does."""
    listeners: list[Listener] = []

    async def subscribe() -> Listener:
        port = http_server_client.get_http_port()
        address = f"ws://127.0.0.1:{port}{jp_base_url}api/events/subscribe"
        socket = await websocket_connect(HTTPRequest(address, headers=jp_auth_header))
        listeners.append(Listener(socket))
        return listeners[-1]

    yield subscribe
    for listener in listeners:
        jp_asyncio_loop.run_until_complete(hang_up(listener.socket))


@pytest.fixture
def watch(jp_serverapp: ServerApp, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Return the server's watch, which looks often."""
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(watching, "BREATH_SECONDS", 0.01)
    monkeypatch.setattr(events, "PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(watching, "PAUSE_SECONDS", 0.02)
    found: Watch = jp_serverapp.web_app.settings["gpucluster_watch"]
    return found


def change(clusters: InMemoryClusters, cluster_id: str, **changes: Any) -> None:
    clusters.views[cluster_id] = dataclasses.replace(clusters.views[cluster_id], **changes)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if true():
                return
            await asyncio.sleep(0.01)


async def looked(watch: Watch) -> None:
    """Wait until the first look has been taken."""
    await until(lambda: watch.known is not None)


async def test_a_page_hears_of_a_changed_a_new_and_a_gone_cluster(
    ask: Ask, clusters: InMemoryClusters, watch: Watch, listen: Any
) -> None:
    page = await listen()
    await ask(API + "clusters")
    await looked(watch)
    change(clusters, RUNNING, revision=4)
    assert await page.hint() == (RUNNING, 4)
    clusters.views["c-other"] = a_view("c-other", Phase.PENDING, revision=1)
    assert await page.hint() == ("c-other", 1)
    change(clusters, "c-other", phase=Phase.STOPPED)
    assert await page.hint() == ("c-other", 2)


async def test_a_page_hears_of_a_head_that_nobody_can_tell_of_any_more(
    ask: Ask, clusters: InMemoryClusters, watch: Watch, listen: Any
) -> None:
    page = await listen()
    await ask(API + "clusters")
    await looked(watch)
    change(clusters, RUNNING, phase=Phase.UNREACHABLE)
    assert await page.hint() == (RUNNING, 4)


async def test_a_change_by_a_request_is_told_to_the_other_pages_at_once(
    ask: Ask,
    clusters: InMemoryClusters,
    watch: Watch,
    listen: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = await listen()
    await ask(API + "clusters")
    await looked(watch)
    monkeypatch.setattr(watching, "LOOK_SECONDS", 3600.0)
    await asyncio.sleep(0.1)  # the pause between two looks is the long one now
    await ask(API + "clusters", "POST", {"profile": "local"})
    assert await page.hint() == ("c new/1", 3)


def test_the_schema_names_what_is_told(jp_serverapp: ServerApp) -> None:
    schema = yaml.safe_load(events.SCHEMA.read_text())
    assert schema["$id"] == events.SCHEMA_ID
    logger = jp_serverapp.event_logger
    assert logger is not None
    assert events.SCHEMA_ID in logger.schemas
    assert set(schema["required"]) == set(schema["properties"]) == {"id", "revision"}


class Logger:
    """Takes down what is told."""

    schemas = (events.SCHEMA_ID,)

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def emit(self, *, schema_id: str, data: dict[str, Any]) -> dict[str, Any]:
        self.told.append((data["id"], data["revision"]))
        return data


async def test_hints_of_one_cluster_are_a_second_apart_and_the_last_one_counts() -> None:
    logger = Logger()
    told = logger.told
    hints = events.Hints(logger)  # type: ignore[arg-type]  # what it uses of the real one
    for revision in range(1, 100):
        hints.tell("a", revision)
    hints.tell("b", 7)
    assert told == [("a", 1), ("b", 7)]
    await until(lambda: len(told) == 3)
    assert told == [("a", 1), ("b", 7), ("a", 99)]
    hints.tell("a", 100)
    hints.close()
    await asyncio.sleep(1.1)
    assert len(told) == 3


async def test_nothing_runs_before_somebody_asks_nor_when_nobody_listens(
    ask: Ask, clusters: InMemoryClusters, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watch._task is None
    await ask(API + "clusters", token=False)
    await ask(API + "profiles")
    assert watch._task is None
    monkeypatch.setattr(watching, "DEAF_SECONDS", 0.0)
    await ask(API + "clusters")
    task = watch._task
    assert task is not None
    await looked(watch)
    change(clusters, RUNNING, revision=4)  # a hint that nobody hears
    await asyncio.wait_for(task, PATIENCE)
    assert not watch._followers


async def test_nothing_runs_when_nobody_has_asked_for_long(
    ask: Ask, watch: Watch, listen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "INTEREST_SECONDS", 0.3)
    await listen()
    await ask(API + "clusters")
    task = watch._task
    assert task is not None
    await asyncio.wait_for(task, PATIENCE)


@pytest.mark.parametrize("turns", range(5))
async def test_a_change_as_the_server_closes_does_not_keep_it(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "BREATH_SECONDS", 0.0)
    hints = events.Hints(Logger())  # type: ignore[arg-type]  # as above
    watch = Watch(InMemoryClusters(), hints, lambda _: None)  # type: ignore[arg-type]  # same calls
    watch.want()
    await looked(watch)
    await asyncio.sleep(0.05)  # it waits for a change now
    watch.want(now=True)
    for _ in range(turns):
        await asyncio.sleep(0)
    await asyncio.wait_for(watch.close(), PATIENCE)


async def test_a_page_without_the_right_to_events_is_refused_and_can_still_poll(
    ask: Ask, authorizer: type[Allowing], listen: Any
) -> None:
    authorizer.allowed = frozenset({("read", "gpucluster")})
    with pytest.raises(HTTPClientError) as refused:
        await listen()
    assert refused.value.code == 403
    assert (await ask(API + "clusters")).status == 200


async def test_a_directory_that_cannot_be_read_stops_no_watch(
    ask: Ask, clusters: InMemoryClusters, watch: Watch, listen: Any
) -> None:
    page = await listen()
    await ask(API + "clusters")
    await looked(watch)
    clusters.broken = StateError("The disk is gone.")
    await asyncio.sleep(0.2)
    clusters.broken = None
    change(clusters, RUNNING, revision=9)
    assert await page.hint() == (RUNNING, 9)


class TalkativeHead(web.RequestHandler):
    """The head's side of a long request: answers when the test says that there is news."""

    revision = 3
    news: asyncio.Event
    asked: list[str]

    async def get(self) -> None:
        assert self.request.headers["X-Gpucluster-Token"] == TOKEN
        self.asked.append(self.request.query)
        if int(self.get_query_argument("after")) >= self.revision:
            await self.news.wait()
        self.write({"revision": self.revision})


async def test_each_live_head_is_asked_once_and_its_news_are_told(
    ask: Ask,
    clusters: InMemoryClusters,
    watch: Watch,
    listen: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    TalkativeHead.news, TalkativeHead.asked, TalkativeHead.revision = asyncio.Event(), [], 3
    server = httpserver.HTTPServer(web.Application([("/gpucluster/summary", TalkativeHead)]))
    [socket] = netutil.bind_sockets(0, "127.0.0.1")
    server.add_sockets([socket])
    clusters.endpoints[RUNNING] = Endpoint("127.0.0.1", socket.getsockname()[1], TOKEN)
    page = await listen()
    await ask(API + "clusters")
    await until(lambda: bool(TalkativeHead.asked))
    for _ in range(20):
        await ask(API + "clusters")
    await asyncio.sleep(0.2)  # several looks
    assert len(TalkativeHead.asked) == 1
    monkeypatch.setattr(watching, "LOOK_SECONDS", 3600.0)
    await asyncio.sleep(0.1)  # only the head can tell from here on
    change(clusters, RUNNING, revision=5)
    TalkativeHead.revision = 5
    TalkativeHead.news.set()
    assert await page.hint() == (RUNNING, 5)
    assert all("brief=1" in query for query in TalkativeHead.asked)
    TalkativeHead.revision = 6  # who still waits is answered, or closing would wait for it
    TalkativeHead.news.set()
    server.stop()
    await server.close_all_connections()


def test_of_the_first_look_nothing_is_told() -> None:
    state = {"a": (3, Phase.RUNNING)}
    assert watching.differences(None, state) == []
    assert watching.differences(state, state) == []


def test_only_heads_that_can_answer_are_followed(clusters: InMemoryClusters) -> None:
    followed = [v.id for v in clusters.views.values() if watching.is_followed(v)]
    assert followed == [RUNNING]
    assert STARTING not in followed
    assert not watching.is_followed(a_view("a", Phase.RUNNING, backend="existing"))
