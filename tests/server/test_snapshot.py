"""The look at the clusters that all pages share: its age, its figures, its tag."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from tornado import web

from jupyter_gpucluster.core.cluster import TOKEN_HEADER, Phase, Target
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.core.serialize import to_json
from jupyter_gpucluster.core.summary import GpuReading, Summary, WorkerCounts
from jupyter_gpucluster.server import snapshot
from jupyter_gpucluster.server.bodies import Models, shown_bytes
from jupyter_gpucluster.server.snapshot import Snapshots, is_asked, with_figures
from jupyter_gpucluster.state.control_client import Endpoint
from tests.server.conftest import Ask, serve_a_head
from tests.server.doubles import RUNNING, TOKEN, InMemoryClusters, a_view
from tests.server.test_routes import API

GIB = 1024**3
LIST = API + "clusters?ended=1"


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while True:
            if true():
                return
            await asyncio.sleep(0.01)


def a_summary(**changes: Any) -> Summary:
    known = {
        "id": RUNNING,
        "name": "quiet-fox",
        "profile": "local",
        "phase": Phase.RUNNING,
        "phase_since": 1_700_000_060.5,
        "reason": "",
        "words": "1 of 2 workers ready",
        "revision": 3,
        "written": 0.0,
        "target": Target(2, 2),
        "workers": WorkerCounts(asked=2, ready=1, starting=1),
        "memory_used": 7 * GIB,
    }
    return Summary(**{**known, **changes})


class TalkingHead(web.RequestHandler):
    """The head's side: its figures, and who asked for them."""

    answer: Summary
    asked: list[str]
    open: asyncio.Event

    async def get(self) -> None:
        assert self.request.headers[TOKEN_HEADER] == TOKEN
        self.asked.append(self.request.query)
        await self.open.wait()
        self.write({"summary": to_json(self.answer)})


@pytest.fixture
def talking(
    clusters: InMemoryClusters, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> Iterator[type[TalkingHead]]:
    """Serve a head for the running cluster."""
    TalkingHead.answer, TalkingHead.asked = a_summary(), []
    TalkingHead.open = asyncio.Event()
    TalkingHead.open.set()
    application = web.Application([("/gpucluster/summary", TalkingHead)])
    server, port = jp_asyncio_loop.run_until_complete(serve_a_head(application))
    clusters.endpoints[RUNNING] = Endpoint("127.0.0.1", port, TOKEN)
    yield TalkingHead
    TalkingHead.open.set()
    server.stop()
    jp_asyncio_loop.run_until_complete(server.close_all_connections())


@pytest.fixture
def snapshots(jp_serverapp: ServerApp) -> Snapshots:
    found: Snapshots = jp_serverapp.web_app.settings["gpucluster"].snapshots
    return found


async def running(ask: Ask) -> Any:
    """Return the running cluster as a page sees it."""
    answer = await ask(LIST)
    [found] = [each for each in answer.json["clusters"] if each["id"] == RUNNING]
    return found


async def test_a_page_sees_what_the_head_has_in_memory(
    ask: Ask, talking: type[TalkingHead]
) -> None:
    shown = await running(ask)
    assert (shown["memory_used"], shown["workers"]["ready"]) == (7 * GIB, 1)
    assert shown["words"] == "1 of 2 workers ready"
    assert talking.asked == ["figures=1"]


async def test_many_pages_cost_a_head_one_request_in_one_and_a_half_seconds(
    ask: Ask, clusters: InMemoryClusters, talking: type[TalkingHead]
) -> None:
    loop = asyncio.get_running_loop()
    begun, looks = loop.time(), clusters.looks
    while loop.time() - begun < 4.0:
        await asyncio.gather(*(ask(LIST) for _ in range(5)))
    assert 2 <= len(talking.asked) <= 1 + (loop.time() - begun) / snapshot.ASK_SECONDS
    assert clusters.looks - looks == len(talking.asked)


async def test_a_poll_never_reads_a_look_older_than_a_second(
    ask: Ask, talking: type[TalkingHead]
) -> None:
    await ask(LIST)
    await asyncio.sleep(snapshot.FRESH_SECONDS + 0.1)
    talking.answer = a_summary(memory_used=8 * GIB)
    assert (await running(ask))["memory_used"] == 8 * GIB  # it waited until the head may be asked
    assert len(talking.asked) == 2


async def test_a_user_s_change_is_in_the_next_list(
    ask: Ask, clusters: InMemoryClusters, talking: type[TalkingHead]
) -> None:
    await ask(LIST)
    await ask(API + "clusters", "POST", {"profile": "local"})
    names = [each["id"] for each in (await ask(LIST)).json["clusters"]]
    assert "c new/1" in names
    assert len(talking.asked) == 1


async def test_nothing_runs_while_no_page_asks(
    ask: Ask, clusters: InMemoryClusters, talking: type[TalkingHead], snapshots: Snapshots
) -> None:
    await ask(LIST)
    looks = clusters.looks
    await asyncio.sleep(2.0)
    assert (len(talking.asked), clusters.looks, snapshots._tasks) == (1, looks, {})


async def test_a_head_that_hangs_delays_one_poll_by_half_a_second(
    ask: Ask, talking: type[TalkingHead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "ASK_SECONDS", 0.0)
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 0.0)
    talking.open.clear()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert (await running(ask))["memory_used"] == 1_000  # what the disk has
    delayed = loop.time() - begun
    assert delayed >= snapshot.PATIENCE_SECONDS
    for _ in range(3):
        await ask(LIST)
    assert loop.time() - begun < 2 * delayed
    assert len(talking.asked) == 1
    talking.open.set()
    await asyncio.sleep(0.1)
    assert (await running(ask))["memory_used"] == 7 * GIB


async def test_a_head_that_fails_is_left_alone_for_a_while(
    ask: Ask, clusters: InMemoryClusters, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "ASK_SECONDS", 0.0)
    monkeypatch.setattr(snapshot, "FRESH_SECONDS", 0.0)
    asked = 0

    async def endpoint(name: str) -> Endpoint:
        nonlocal asked
        asked += 1
        return Endpoint("127.0.0.1", 1, TOKEN)

    monkeypatch.setattr(clusters, "endpoint", endpoint)
    for _ in range(4):
        assert (await running(ask))["memory_used"] == 1_000
    assert asked == 1
    snapshots._resting[RUNNING] = 0.0
    await ask(LIST)
    assert asked == 2


async def test_only_a_head_that_was_asked_and_has_not_answered_is_silent(
    clusters: InMemoryClusters, talking: type[TalkingHead], snapshots: Snapshots
) -> None:
    assert await snapshots.silent(5.0) == []
    clusters.views["new"] = a_view("new", Phase.RUNNING)
    clusters.endpoints["new"] = Endpoint("127.0.0.1", 1, TOKEN)
    snapshots.expire()
    assert await snapshots.silent(5.0) == []  # it was asked nothing yet
    snapshots._asked = float("-inf")
    snapshots.expire()
    assert [view.id for view in await snapshots.silent(5.0)] == ["new"]


async def test_a_directory_that_cannot_be_read_is_reported_and_read_again(
    ask: Ask, clusters: InMemoryClusters
) -> None:
    clusters.broken = StateError("The disk is gone.")
    assert (await ask(LIST)).json["message"] == "The disk is gone."
    clusters.broken = None
    assert (await ask(LIST)).status == 200


async def test_a_page_that_has_the_list_gets_no_list(
    ask: Ask, clusters: InMemoryClusters, talking: type[TalkingHead]
) -> None:
    first = await ask(LIST)
    tag = {"If-None-Match": first.headers["Etag"]}
    again = await ask(LIST, headers=tag)
    assert (again.status, again.body) == (304, b"")
    assert (await ask(API + "clusters", headers=tag)).status == 200  # without the ended ones
    await asyncio.sleep(snapshot.ASK_SECONDS)
    talking.answer = a_summary(memory_used=7 * GIB + 1_000)
    assert (await ask(LIST, headers=tag)).status == 304
    await asyncio.sleep(snapshot.ASK_SECONDS)
    talking.answer = a_summary(memory_used=8 * GIB)
    assert (await ask(LIST, headers=tag)).status == 200


@pytest.mark.parametrize(
    "before, after, same",
    [
        ({"revision": 3}, {"revision": 4}, False),
        ({"memory_used": 10 * GIB}, {"memory_used": 10 * GIB + GIB // 8}, True),
        ({"memory_used": 3 * GIB}, {"memory_used": 3 * GIB + GIB // 8}, False),
        ({"gpu_hours": 1.21}, {"gpu_hours": 1.24}, True),
        ({"gpu_hours": 1.21}, {"gpu_hours": 1.26}, False),
        ({"listed": 1.0}, {"listed": 2.0}, True),
        ({"listed": 1.0}, {"listed": 2.0, "phase": Phase.PENDING}, False),
        ({"gpus": (GpuReading("w", power=80.1),)}, {"gpus": (GpuReading("w", power=80.4),)}, True),
        (
            {"gpus": (GpuReading("w", utilization=3),)},
            {"gpus": (GpuReading("w", utilization=4),)},
            False,
        ),
        ({"gpus": (GpuReading("w", time=1.0),)}, {"gpus": (GpuReading("w", time=2.0),)}, True),
    ],
)
def test_the_tag_changes_with_what_pages_show(
    before: dict[str, Any], after: dict[str, Any], same: bool
) -> None:
    models, view = Models("/"), a_view("a", Phase.RUNNING)
    tags = [models.list([dataclasses.replace(view, **each)])[1] for each in (before, after)]
    assert (tags[0] == tags[1]) is same


@pytest.mark.parametrize(
    "size, words",
    [(0, "0 0"), (1023, "1023 0"), (1024, "1.0 1"), (10 * GIB, "10 3"), (GIB - 1, "1024 2")],
)
def test_amounts_are_as_coarse_as_on_the_page(size: int, words: str) -> None:
    assert shown_bytes(size) == words


@pytest.mark.parametrize(
    "changes, figures",
    [
        ({}, True),
        ({"revision": 2}, False),  # the disk is newer
        ({"phase": Phase.STOPPED}, False),
    ],
)
def test_an_answer_counts_unless_the_disk_knows_more(
    changes: dict[str, Any], figures: bool
) -> None:
    view = a_view(RUNNING, Phase.RUNNING)
    shown = with_figures(view, a_summary(**changes))
    assert (shown.memory_used == 7 * GIB) is figures
    assert (shown.id, shown.title, shown.survival) == (view.id, view.title, view.survival)


def test_only_heads_that_can_answer_are_asked(clusters: InMemoryClusters) -> None:
    assert [v.id for v in clusters.views.values() if is_asked(v)] == [RUNNING]
    assert not is_asked(a_view("a", Phase.RUNNING, backend="existing"))
