"""Gauges in the server's Prometheus registry."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.summary import WorkerCounts
from jupyter_gpucluster.server.health import GAUGES
from tests.server.conftest import Ask
from tests.server.doubles import InMemoryClusters, a_view
from tests.server.test_routes import API
from tests.server.test_snapshot import until

NAMES = {
    "jupyter_gpucluster_clusters",
    "jupyter_gpucluster_workers_ready",
    "jupyter_gpucluster_gpus_held",
    "jupyter_gpucluster_look_timestamp_seconds",
}


async def scrape(ask: Ask) -> dict[tuple[str, str], float]:
    """Return our values by name and phase."""
    text = (await ask("metrics")).body.decode()
    return {
        (sample.name, sample.labels.get("phase", "")): sample.value
        for family in text_string_to_metric_families(text)
        if family.name in NAMES
        for sample in family.samples
    }


async def test_a_scrape_tells_clusters_by_phase_workers_and_gpus(
    ask: Ask, clusters: InMemoryClusters
) -> None:
    counts = WorkerCounts(asked=8, ready=3, starting=2, pending=3)
    clusters.views["c-gpus"] = a_view("c-gpus", Phase.DEGRADED, unit="GPUs", workers=counts)
    await ask(API + "clusters")
    found = await scrape(ask)
    assert {name for name, _ in found} == NAMES
    phases = {p: int(v) for (name, p), v in found.items() if name == "jupyter_gpucluster_clusters"}
    assert set(phases) == {phase.value for phase in Phase}
    assert {p: n for p, n in phases.items() if n} == {
        "running": 1,
        "starting": 1,
        "unreachable": 1,
        "degraded": 1,
    }
    ready = sum(v.workers.ready for v in await clusters.list())
    assert found["jupyter_gpucluster_workers_ready", ""] == ready
    assert found["jupyter_gpucluster_gpus_held", ""] == 5


async def test_a_scrape_waits_for_no_look_but_asks_for_one(
    ask: Ask, clusters: InMemoryClusters, jp_serverapp: Any
) -> None:
    assert await scrape(ask) == {}
    await until(lambda: GAUGES.looked is not None)
    assert (await scrape(ask))["jupyter_gpucluster_clusters", "running"] == 1
    assert jp_serverapp.web_app.settings["gpucluster"].snapshots._tasks == {}


async def test_an_old_look_is_shown_with_its_time(
    ask: Ask, clusters: InMemoryClusters, jp_serverapp: Any
) -> None:
    GAUGES.take(list(clusters.views.values()))
    GAUGES.looked = 1000.0
    assert (await scrape(ask))["jupyter_gpucluster_look_timestamp_seconds", ""] == 1000.0
    await until(lambda: GAUGES.looked != 1000.0)


async def test_a_server_that_ends_leaves_no_figures(
    ask: Ask, clusters: InMemoryClusters, jp_serverapp: Any
) -> None:
    await ask(API + "clusters")
    assert GAUGES.looked is not None
    await jp_serverapp.extension_manager.stop_all_extensions()
    assert list(GAUGES.collect()) == []


@pytest.fixture(autouse=True)
def afresh() -> None:
    GAUGES.reset()
