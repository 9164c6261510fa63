"""A Jupyter server that is killed takes no cluster with it."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase

from .driving import READY_SECONDS

TOKEN = secrets.token_hex(8)
UP_SECONDS = 60.0


class Server:
    """A Jupyter server with the extension, as a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "jupyter_server", "--allow-root", "--no-browser"]
        command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self.port}"]
        command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"]
        command += ["--ServerApp.jpserver_extensions={'jupyter_gpucluster': True}"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
        )

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(
                method,
                f"/gpucluster/api/{path}",
                None if body is None else json.dumps(body),
                {"Authorization": f"token {TOKEN}"},
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")

    def wait(self) -> None:
        deadline = time.monotonic() + UP_SECONDS
        while True:
            with contextlib.suppress(OSError):
                if self.ask("GET", "health")[0] == 200:
                    return
            assert time.monotonic() < deadline, "the server is not up"
            time.sleep(0.1)


@contextlib.contextmanager
def a_server(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    try:
        server.wait()
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def test_a_killed_server_leaves_its_cluster_to_the_next_one(clusters: Clusters, home: Path) -> None:
    with a_server(home) as first:
        target = {"workers": 1}
        status, view = first.ask("POST", "clusters", {"profile": "local", "target": target})
        assert status == 201
        clusters.wait_ready(view["id"], timeout=READY_SECONDS)
    # The first server was killed (SIGKILL), not stopped.
    with connect(view["name"]) as client:
        assert client.submit(lambda: 42).result() == 42
    with a_server(home) as second:
        status, listed = second.ask("GET", "clusters")
        assert [cluster["id"] for cluster in listed["clusters"]] == [view["id"]]
        assert second.ask("DELETE", f"clusters/{view['id']}")[0] == 202
        ended = clusters.wait_stopped(view["id"], timeout=READY_SECONDS)
    assert ended.phase is Phase.STOPPED
