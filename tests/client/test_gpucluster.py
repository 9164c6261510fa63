"""`GPUCluster` and `connect`: Dask's conventions on real clusters of this machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, wait
from distributed.core import Status

from jupyter_gpucluster import GPUCluster, connect
from jupyter_gpucluster.client.connect import client_environment, dashboard_link, jupyter_base
from jupyter_gpucluster.client.gpucluster import first_target, number
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import (
    ClusterConflict,
    ClusterNotFound,
    GpuClusterError,
    InvalidInput,
    ProfileNotFound,
)
from tests.waiting import until

CHECKOUT = Path(__file__).parents[2]
SECONDS = 60


@pytest.fixture
def clusters(home: Path) -> Iterator[Clusters]:
    """The clusters of this test's home; what still lives at the end is stopped."""
    clusters = Clusters()
    yield clusters
    live = clusters.list()
    for view in live:
        clusters.stop(view.id)
    for view in live:
        clusters.wait_stopped(view.id, timeout=SECONDS)


def run_python(code: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=SECONDS * 2,
        check=check,
    )


# Numbers and links, without a cluster.


@pytest.mark.parametrize("value", [-1, 1.5, "2", None, True])
def test_a_number_of_workers_is_whole_and_not_negative(value: object) -> None:
    with pytest.raises(InvalidInput, match="whole number of workers"):
        number(value, "scale")
    assert number(np.int64(3), "scale") == 3


def test_workers_and_adapt_exclude_each_other() -> None:
    assert first_target(None, None) is None
    assert first_target(2, None) == Target(2, 2)
    assert first_target(None, (0, 4)) == Target(0, 4)
    with pytest.raises(InvalidInput, match="not both"):
        first_target(1, (0, 4))


@pytest.mark.parametrize(
    "variable, value, base",
    [
        ("JUPYTERHUB_SERVICE_PREFIX", "/user/ada", "/user/ada/"),
        ("JPY_PARENT_PID", "4711", "/jupyter/"),
        ("JUPYTER_SERVER_URL", "http://localhost:8888", "http://localhost:8888/"),
        ("JPY_PARENT_PID", "", ""),
        ("JPY_PARENT_PID", "no number", ""),
        ("JPY_PARENT_PID", "4712", ""),
    ],
)
def test_the_base_of_jupyter_comes_from_hub_kernel_or_terminal(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, base: str
) -> None:
    (home / "run" / "jpserver-4711.json").write_text(json.dumps({"base_url": "/jupyter/"}))
    monkeypatch.setenv(variable, value)
    assert jupyter_base() == base


def test_the_package_is_light_until_a_name_is_used() -> None:
    code = "import sys, jupyter_gpucluster; print('distributed' in sys.modules, end='')"
    assert run_python(code).stdout == "False"


# Real clusters.


@pytest.mark.slow
def test_a_blocking_cluster_keeps_the_conventions_of_dask(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GPUCluster("local", 2, name="alpha") as cluster:
        assert cluster.status == Status.running
        assert cluster.name == "alpha"
        assert repr(cluster).startswith("GPUCluster(alpha, 'tls://127.0.0.1:")
        cluster.wait_for_workers(2, timeout=SECONDS)
        assert len(cluster.scheduler_info["workers"]) == 2

        client = cluster.get_client()
        assert cluster.get_client() is client
        assert client.submit(sum, [1, 2]).result(timeout=SECONDS) == 3
        with Client(cluster) as other:
            assert other.submit(sum, [1, 3]).result(timeout=SECONDS) == 4
        assert cluster.status == Status.running

        assert set(cluster.get_logs()) >= {"Cluster", "Scheduler"}
        assert "==> head.log <==" in cluster.logs()
        assert cluster.dashboard_link == ""
        assert "through JupyterLab" in cluster._repr_html_()
        monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/")
        link = f"/user/ada/gpucluster/dashboard/{cluster.id}/status"
        assert cluster.dashboard_link == client.dashboard_link == link
        assert f'href="{link}"' in cluster._repr_html_()
        assert cluster.view.phase is Phase.RUNNING
        client.close()
    assert cluster.status == Status.closed
    assert clusters.get("alpha").phase is Phase.STOPPED
    cluster.close()
    with pytest.raises(RuntimeError, match="closed"):
        _ = Client(cluster)
    late: list[Callable[[], object]] = [
        lambda: cluster.scale(2),
        lambda: cluster.adapt(0, 1),
        lambda: cluster.wait_for_workers(1),
    ]
    for call in late:
        with pytest.raises(ClusterConflict, match="This GPUCluster is closed"):
            call()


@pytest.mark.slow
def test_scaling_down_loses_no_result(clusters: Clusters) -> None:
    with GPUCluster("local", 2) as cluster, Client(cluster) as client:
        cluster.wait_for_workers(2, timeout=SECONDS)
        data = client.scatter(list(range(30)))
        wait(data)
        cluster.scale(1)
        clusters.wait_ready(cluster.id, timeout=SECONDS)
        until(lambda: len(cluster.scheduler_info["workers"]) <= 1)
        assert client.gather(data) == list(range(30))

        adaptation = cluster.adapt(minimum=1, maximum=2)
        assert (adaptation.minimum, adaptation.maximum) == (1, 2)
        assert clusters.get(cluster.id).target == Target(1, 2)
        with pytest.raises(InvalidInput):
            cluster.scale(-1)
        with pytest.raises(GpuClusterError):
            cluster.scale(100_000)


@pytest.mark.slow
def test_an_asynchronous_cluster_keeps_the_conventions_of_dask(clusters: Clusters) -> None:
    async def use() -> str:
        async with (
            GPUCluster("local", 1, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            assert await client.submit(sum, [1, 2]) == 3
            # As dask-labextension calls them: without awaiting the first, with awaiting the second.
            adaptation = cluster.adapt(minimum=1, maximum=2)
            assert (adaptation.minimum, adaptation.maximum) == (1, 2)
            await adaptation
            assert clusters.get(cluster.id).target == Target(1, 2)
            request = cluster.scale(2)
            assert request is not None
            await request
            assert clusters.get(cluster.id).target == Target(2, 2)
            id: str = cluster.id
            return id

    id = asyncio.run(use())
    assert clusters.get(id).phase is Phase.STOPPED


@pytest.mark.slow
def test_a_cancelled_start_leaves_nothing(clusters: Clusters) -> None:
    async def give_up() -> None:
        cluster = GPUCluster("local", 1, asynchronous=True)
        opening = asyncio.ensure_future(cluster._start())
        while not clusters.list():  # noqa: ASYNC110  # the news comes from another process
            await asyncio.sleep(0.01)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert cluster.status == Status.closed

    asyncio.run(give_up())
    [view] = clusters.list(ended=True)
    assert clusters.wait_stopped(view.id, timeout=SECONDS).phase is Phase.STOPPED


@pytest.mark.slow
def test_others_find_a_cluster_by_its_name_and_let_go_of_it(clusters: Clusters) -> None:
    with GPUCluster("local", 1, name="alpha", shutdown_on_close=False):
        pass
    assert clusters.get("alpha").phase not in (Phase.STOPPED, Phase.STOPPING)
    code = (
        "from jupyter_gpucluster import GPUCluster, connect\n"
        "with connect('alpha') as client:\n"
        "    print(client.submit(sum, [1, 2]).result())\n"
        "cluster = GPUCluster.from_name('alpha')\n"
        "print(cluster.get_client().submit(sum, [1, 3]).result())\n"
    )
    assert run_python(code).stdout == "3\n4\n"
    with connect("alpha") as client:
        assert client.submit(sum, [1, 4]).result(timeout=SECONDS) == 5
    plain = (
        "from distributed import Client\n"
        "with Client() as client: print(client.submit(sum, [1, 5]).result())\n"
    )
    environment = {**os.environ, **client_environment(clusters.get("alpha"))}
    answer = subprocess.run(
        [sys.executable, "-c", plain], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout == "6\n"

    cluster = GPUCluster.from_name("alpha", shutdown_on_close=True)
    assert dashboard_link(cluster.view) == ""
    cluster.close()
    assert clusters.get("alpha").phase is Phase.STOPPED
    with pytest.raises(ClusterConflict, match="alpha is stopped"):
        _ = connect("alpha")
    with pytest.raises(ClusterConflict, match="alpha is stopped"):
        _ = GPUCluster.from_name("alpha")


@pytest.mark.slow
def test_what_cannot_start_raises_and_leaves_nothing(clusters: Clusters) -> None:
    with pytest.raises(ProfileNotFound):
        _ = GPUCluster("lokal")
    with pytest.raises(InvalidInput, match="uses this machine only"):
        _ = GPUCluster("local", allocation="1234")
    with pytest.raises(ClusterNotFound):
        _ = GPUCluster.from_name("nobody")
    with pytest.raises(ClusterNotFound):
        _ = connect("nobody")
    assert clusters.list(ended=True) == []


@pytest.mark.slow
def test_the_end_of_the_process_stops_what_was_not_closed(clusters: Clusters) -> None:
    code = (
        "from jupyter_gpucluster import GPUCluster\n"
        "cluster = GPUCluster('local', 1, name='alpha')\n"
        "kept = GPUCluster('local', 1, name='beta', shutdown_on_close=False)\n"
        "print('started', flush=True)\n"
    )
    assert run_python(code).stdout == "started\n"
    assert clusters.wait_stopped("alpha", timeout=SECONDS).phase is Phase.STOPPED
    assert clusters.get("beta").phase not in (Phase.STOPPED, Phase.STOPPING)


@pytest.mark.slow
def test_a_cluster_that_another_process_stops_has_no_workers(clusters: Clusters) -> None:
    with GPUCluster("local", 1) as cluster:
        cluster.wait_for_workers(1, timeout=SECONDS)
        clusters.stop(cluster.id)
        clusters.wait_stopped(cluster.id, timeout=SECONDS)
        until(lambda: not cluster.scheduler_info["workers"])
        assert cluster.view.phase is Phase.STOPPED


@pytest.mark.slow
def test_ctrl_c_while_starting_leaves_nothing(clusters: Clusters) -> None:
    # On a busy machine the start may be over before the signal comes.
    code = (
        "import time; from jupyter_gpucluster import GPUCluster\n"
        "GPUCluster('local', 1, name='alpha'); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(clusters.list)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert "KeyboardInterrupt" in err
    assert clusters.wait_stopped("alpha", timeout=SECONDS).phase is Phase.STOPPED
