"""The extension as Jupyter loads it: what it imports, and that it leaves clusters alone."""

from __future__ import annotations

import json
import subprocess
import sys

from jupyter_server.serverapp import ServerApp

import jupyter_gpucluster
from jupyter_gpucluster.server.app import GpuClusterApp
from tests.server.doubles import InMemoryClusters

NEVER = {"dask", "distributed", "bokeh", "dask_cuda", "dask_jobqueue"}

LOAD = """
import json, sys
import jupyter_gpucluster.server.app
import jupyter_gpucluster.clusters
import jupyter_gpucluster.launch.create, jupyter_gpucluster.launch.preview
print(json.dumps(list(sys.modules)))
"""


def test_a_server_with_the_extension_never_imports_dask() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LOAD], capture_output=True, text=True, check=True
    )
    modules = json.loads(answer.stdout)
    assert {name.partition(".")[0] for name in modules} & NEVER == set()


def test_jupyter_finds_the_extension() -> None:
    [point] = jupyter_gpucluster._jupyter_server_extension_points()
    assert point == {"module": "jupyter_gpucluster", "app": GpuClusterApp}


async def test_a_stopping_server_leaves_clusters_alone(
    jp_serverapp: ServerApp, clusters: InMemoryClusters
) -> None:
    before = dict(clusters.views)
    await jp_serverapp.extension_manager.stop_all_extensions()
    assert clusters.views == before
