"""Answers of the head to a request with the token: the dashboard, and control."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import TOKEN_HEADER, Phase
from jupyter_gpucluster.state.control_client import Endpoint
from jupyter_gpucluster.state.view import ClusterView
from tests.waiting import hang_up

from .conftest import start_ready, stop_all

BAD_BODIES = [
    ("PATCH", "/gpucluster/cluster", "{"),
    ("PATCH", "/gpucluster/cluster", "[]"),
    ("PATCH", "/gpucluster/cluster", "\0"),
    ("PATCH", "/gpucluster/cluster", '{"target": 3}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {}}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {"minimum": 1}}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {"minimum": "1", "maximum": 2}}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {"minimum": 1.5, "maximum": 2}}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {"minimum": true, "maximum": true}}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {"minimum": -1, "maximum": 2}}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {"minimum": 3, "maximum": 2}}'),
    ("PATCH", "/gpucluster/cluster", '{"target": {"minimum": 1, "maximum": 999999}}'),
    ("PATCH", "/gpucluster/cluster", '{"name": 3}'),
    ("PATCH", "/gpucluster/cluster", '{"name": "../x"}'),
    ("PATCH", "/gpucluster/cluster", '{"name": ""}'),
    ("PATCH", "/gpucluster/cluster", '{"name": "a\\nb"}'),
    ("POST", "/gpucluster/stop", "{"),
    ("POST", "/gpucluster/stop", "3"),
    ("GET", "/gpucluster/summary?after=x", ""),
    ("GET", "/gpucluster/summary?after=1&timeout=nan", ""),
    ("GET", "/gpucluster/summary?after=1e999", ""),
    ("GET", "/gpucluster/stop", ""),
    ("DELETE", "/gpucluster/cluster", ""),
    ("POST", "/gpucluster/summary", "{}"),
]


@pytest.fixture(scope="module")
def clusters(module_home: Path) -> Iterator[Clusters]:
    found = Clusters()
    yield found
    stop_all(found)


@pytest.fixture(scope="module")
def view(clusters: Clusters) -> ClusterView:
    return start_ready(clusters)


@pytest.fixture
def endpoint(clusters: Clusters, view: ClusterView, home: Path) -> Endpoint:
    return clusters.endpoint(view.id)


def send(endpoint: Endpoint, method: str, path: str, body: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=30)
    try:
        connection.request(method, path, body=body or None, headers={TOKEN_HEADER: endpoint.token})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/status", "/workers", "/tasks", "/system", "/groups"])
def test_dashboards_are_served(endpoint: Endpoint, path: str) -> None:
    status, text = send(endpoint, "GET", path)
    assert status == 200
    assert "bokeh" in text.lower()


@pytest.mark.parametrize("path", ["/json/counts.json", "/health", "/info/main/workers.html"])
def test_dask_s_other_pages_are_served(endpoint: Endpoint, path: str) -> None:
    assert send(endpoint, "GET", path)[0] == 200


def test_the_workers_page_links_to_no_dead_page(endpoint: Endpoint) -> None:
    text = send(endpoint, "GET", "/info/main/workers.html")[1]
    assert "/proxy/" not in text
    assert ">dashboard</a>" not in text


@pytest.mark.parametrize(
    "path", ["/proxy/8787/127.0.0.1/status", "/metrics", "/api/v1/retire_workers"]
)
def test_pages_that_reach_further_than_looking_are_not_there(endpoint: Endpoint, path: str) -> None:
    assert send(endpoint, "GET", path)[0] == 404
    assert send(endpoint, "POST", path, "{}")[0] == 404


def test_the_dashboard_s_websocket_opens_and_streams(endpoint: Endpoint) -> None:
    page = send(endpoint, "GET", "/status")[1]
    found = re.search(r'"token":"([^"]+)"', page)
    assert found is not None
    token = found[1]

    async def first_message() -> str | bytes | None:
        url = f"ws://{endpoint.host}:{endpoint.port}/status/ws"
        request = HTTPRequest(url, headers={TOKEN_HEADER: endpoint.token})
        connection = await websocket_connect(request, subprotocols=["bokeh", token])
        try:
            return await connection.read_message()
        finally:
            await hang_up(connection)

    message = asyncio.run(first_message())
    assert message is not None
    assert "ACK" in str(message)


@pytest.mark.parametrize("method,path,body", BAD_BODIES)
def test_bad_control_requests_are_refused_in_json(
    clusters: Clusters, view: ClusterView, endpoint: Endpoint, method: str, path: str, body: str
) -> None:
    status, text = send(endpoint, method, path, body)
    assert 400 <= status < 500
    answer = json.loads(text)
    assert answer["message"]
    assert "Traceback" not in text
    after = clusters.get(view.id)
    assert (after.phase, after.name, after.target) == (Phase.RUNNING, view.name, view.target)
    assert "Traceback" not in clusters.logs(view.id, "head")


def test_the_summary_waits_for_news_no_longer_than_asked(
    endpoint: Endpoint, view: ClusterView
) -> None:
    status, text = send(endpoint, "GET", "/gpucluster/summary?after=1000000&timeout=0.3")
    assert status == 200
    assert json.loads(text)["summary"]["phase"] == "running"


def test_the_figures_leave_the_jobs_out(endpoint: Endpoint) -> None:
    answer = json.loads(send(endpoint, "GET", "/gpucluster/summary?figures=1")[1])
    assert answer.keys() == {"summary"}
    assert answer["summary"]["memory_used"] > 0
