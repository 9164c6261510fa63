"""Activity of the server, by which idle servers are culled."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.core.summary import Clock, WorkerCounts
from jupyter_gpucluster.server.activity import is_busy, note_activity
from jupyter_gpucluster.server.app import GpuClusterApp
from tests.server.conftest import Ask
from tests.server.doubles import RUNNING, InMemoryClusters, a_view
from tests.server.test_routes import API, REQUESTS
from tests.server.test_snapshot import until
from tests.waiting import hang_up

COMPUTES = (Clock("idle time-out", 1800.0, None),)
IDLES = (Clock("renamed", 1800.0, 1_700_001_800.0, kind="idle"),)


async def last_activity(ask: Ask) -> datetime:
    """Return what a Hub and its culler read."""
    told = (await ask("api/status?no_track_activity=1")).json["last_activity"]
    return datetime.fromisoformat(told)


async def test_a_page_that_is_left_open_lets_the_server_be_culled(
    ask: Ask,
    head: int,
    clusters: InMemoryClusters,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    http_server_port: Any,
    jp_serverapp: ServerApp,
) -> None:
    address = f"ws://127.0.0.1:{http_server_port[-1]}{jp_base_url}"
    before = await last_activity(ask)
    plot = await websocket_connect(
        HTTPRequest(f"{address}gpucluster/dashboard/{RUNNING}/ws", headers=jp_auth_header)
    )
    for _ in range(2):
        for method, path, _body, _status in REQUESTS:
            if method == "GET":
                await ask(API + path)
        await ask(f"gpucluster/dashboard/{RUNNING}/status")
        await plot.write_message("drawn")
        assert await plot.read_message()
    assert await last_activity(ask) == before
    assert not jp_serverapp.web_app.settings.get("last_activity_times")
    await ask(API + f"clusters/{RUNNING}", "PATCH", {"target": {"workers": 1}})
    assert await last_activity(ask) > before
    await hang_up(plot)


@pytest.mark.parametrize(
    "phase, changes, busy",
    [
        (Phase.RUNNING, {"clocks": COMPUTES}, True),
        (Phase.RUNNING, {"clocks": IDLES}, False),
        (Phase.DEGRADED, {"clocks": COMPUTES}, True),
        (Phase.STOPPED, {"clocks": ()}, False),
        (Phase.UNREACHABLE, {"clocks": COMPUTES}, False),
        (Phase.RUNNING, {"clocks": ()}, True),
        (Phase.PENDING, {"clocks": (), "workers": WorkerCounts(asked=2, pending=2)}, False),
    ],
)
def test_a_cluster_is_busy_unless_its_idle_clock_ticks(
    phase: Phase, changes: dict[str, Any], busy: bool
) -> None:
    assert is_busy(a_view("a", phase, **changes)) is busy


async def test_by_default_a_busy_cluster_does_not_keep_the_server(
    ask: Ask, clusters: InMemoryClusters, jp_serverapp: ServerApp
) -> None:
    clusters.views[RUNNING] = a_view(RUNNING, Phase.RUNNING, clocks=COMPUTES)
    await ask(API + "clusters")
    assert "jupyter_gpucluster_last_activity" not in jp_serverapp.web_app.settings


async def test_an_idle_or_unknown_cluster_notes_nothing(clusters: InMemoryClusters) -> None:
    settings: dict[str, Any] = {}
    clusters.views = {RUNNING: a_view(RUNNING, Phase.RUNNING, clocks=IDLES)}
    await note_activity(clusters, settings)  # type: ignore[arg-type]  # has the same calls
    clusters.broken = StateError("The disk is gone.")
    await note_activity(clusters, settings)  # type: ignore[arg-type]
    assert settings == {}


class BusyAtOnce(InMemoryClusters):
    """One cluster that computes."""

    def __init__(self) -> None:
        super().__init__()
        self.views = {RUNNING: a_view(RUNNING, Phase.RUNNING, clocks=COMPUTES)}


class TestWhereASiteHasChosenThatBusyClustersCount:
    @pytest.fixture
    def jp_server_config(self) -> dict[str, Any]:
        return {
            "ServerApp": {"jpserver_extensions": {"jupyter_gpucluster": True}},
            "GpuClusterApp": {"clusters_class": BusyAtOnce, "busy_clusters_count": True},
        }

    async def test_a_cluster_that_computes_keeps_the_server(
        self, ask: Ask, jp_serverapp: ServerApp
    ) -> None:
        settings = jp_serverapp.web_app.settings
        started = settings["started"]
        await until(lambda: "jupyter_gpucluster_last_activity" in settings)
        assert await last_activity(ask) > started


def test_the_choice_is_a_configurable_trait() -> None:
    assert GpuClusterApp.class_traits(config=True)["busy_clusters_count"].default_value is False
