"""The real dask-labextension 7 beside our extension, and what Dask's own tools find of clusters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import dask
import pytest
import yaml

from jupyter_gpucluster.client.dask_hooks import security_for
from jupyter_gpucluster.client.gpucluster import GPUCluster
from jupyter_gpucluster.clusters import Clusters
from tests.server.hub import free_port

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parents[2]
LABEXTENSION = CHECKOUT / ".venv" / "dask-labextension"
"""Apart from the environment, where any Jupyter server would load it; `tools/setup.py` makes it."""
DASK_CONFIG = CHECKOUT / "jupyter-config" / "dask" / "jupyter_gpucluster.yaml"
FACTORY = """
labextension:
  factory:
    module: jupyter_gpucluster
    class: GPUCluster
    args: []
    kwargs: {profile: local}
  default: {workers: null, adapt: null}
  initial: []
"""
TOKEN = "of-the-test"
PATIENCE = 60.0

SNIPPET = """
from dask.distributed import Client
with Client("{address}") as client:
    print(client.submit(sum, [20, 22]).result())
"""


@pytest.fixture
def server(home: Path) -> Iterator[Callable[..., Any]]:
    """Serve both extensions; return a call that asks."""
    config = home / "dask"
    config.mkdir()
    (config / "labextension.yaml").write_text(FACTORY)
    port = free_port()
    extensions = {"dask_labextension": True, "jupyter_gpucluster": True}
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
                *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={TOKEN}"),
                f"--ServerApp.jpserver_extensions={extensions}",
            ],
            env={**os.environ, "PYTHONPATH": f"{LABEXTENSION}{os.pathsep}{CHECKOUT}"},
            stdout=log,
            stderr=log,
        )

    def ask(path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/{path}",
            method=method,
            data=b"" if method == "PUT" else None,
            headers={"Authorization": f"token {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or b"null")

    try:
        until(lambda: ask("api/status"))
        yield ask
    finally:
        process.terminate()
        process.wait(PATIENCE)


def until(question: Callable[[], Any]) -> Any:
    """Ask until there is an answer that counts."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if answer := question():
                return answer
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline
        time.sleep(0.1)


async def test_its_new_button_starts_a_cluster_that_our_list_shows(
    server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = str(uuid.uuid4())
    made = server(f"dask/clusters/{number}", "PUT")
    assert made["id"] == number
    [ours] = server("gpucluster/api/clusters")["clusters"]
    address = ours["scheduler_address"]
    assert address.startswith("tls://")
    assert made["scheduler_address"] == address
    until(lambda: server(f"gpucluster/api/clusters/{ours['id']}")["workers"]["ready"])

    # Its snippet knows an address and nothing else.
    environment = {**os.environ, "DASK_CONFIG": str(DASK_CONFIG), "PYTHONPATH": str(CHECKOUT)}
    told = subprocess.run(  # noqa: ASYNC221  # nothing else runs on this loop
        [sys.executable, "-c", SNIPPET.format(address=address)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert told.stdout == "42\n"

    name = ours["name"]
    async with GPUCluster.from_name(name, asynchronous=True) as cluster:
        assert cluster.scheduler_address == address
    assert Clusters().get(name).phase.value in ("running", "degraded", "starting")

    server(f"dask/clusters/{number}", "DELETE")
    until(lambda: server(f"gpucluster/api/clusters/{ours['id']}")["phase"] == "stopped")
    assert security_for({"address": address}) is None
    Clusters().wait_stopped(ours["id"], timeout=PATIENCE)


def test_the_shipped_configuration_names_the_loader_of_certificates() -> None:
    named = yaml.safe_load(DASK_CONFIG.read_text())["distributed"]["client"]["security-loader"]
    module, _, name = named.rpartition(".")
    assert getattr(import_module(module), name) is security_for
    assert dask.config.get("distributed.client.security-loader") in (None, named)


def test_addresses_of_others_are_left_alone(home: Path) -> None:
    for address in ("tcp://127.0.0.1:8786", "tls://192.0.2.1:8786", None, 5):
        assert security_for({"address": address}) is None
