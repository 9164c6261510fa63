"""Files of an earlier version keep their meaning, and its heads are understood.

``tests/recorded/before_house`` holds cluster directories, one for each phase, and the answers of
live heads, recorded before the modules were moved.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import ENDED, TOKEN_HEADER, Phase, Target
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.processes import this_process
from jupyter_gpucluster.state.control_client import Endpoint, ask

RECORDED = Path(__file__).parents[1] / "recorded" / "before_house"
DIRECTORIES = sorted(path.name for path in RECORDED.iterdir() if path.is_dir())
TOKEN = "replaced-token"


def brought(root: Path, name: str) -> ClusterDirectory:
    """Copy a recorded directory to where clusters are, under its id."""
    id = json.loads((RECORDED / name / "record.json").read_text())["id"]
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.parent.chmod(0o700)
    shutil.copytree(RECORDED / name, root / id)
    for path in (root / id, *(root / id).rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return ClusterDirectory(root / id)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_recorded_directory_is_read_in_its_phase_and_left_as_it_is(root: Path, name: str) -> None:
    directory = brought(root, name)
    (directory.path / "lease").touch()
    before = (directory.path / "record.json").read_bytes()
    raw = json.loads(before)
    view = Clusters().get(raw["id"])
    assert (view.name, view.phase.value, view.profile) == (
        raw["name"],
        raw["phase"],
        raw["spec"]["profile"],
    )
    assert len(Clusters().jobs(raw["id"])) == len(raw["jobs"])
    timeline = directory.path / "events.jsonl"
    lines = timeline.read_text().splitlines() if timeline.exists() else []
    assert len(Clusters().events(raw["id"])) == len(lines)
    if not raw["spec"]["in_job"] or raw["head"]:
        assert (directory.path / "record.json").read_bytes() == before
    assert not list(directory.path.glob("record.json.*"))


class Replayed(BaseHTTPRequestHandler):
    """Answers each request as the recorded head did, the first time for its first answer."""

    calls: list[dict[str, Any]]

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        token = self.headers.get(TOKEN_HEADER) == TOKEN
        asked = {"method": self.command, "path": self.path, "body": body, "token": token}
        found = [call for call in self.calls if asked.items() <= call.items()]
        status, answer = (found[0]["status"], found[0]["answer"]) if found else (404, {})
        text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PATCH = do_POST = answer

    def log_message(self, *args: object) -> None:
        """Write nothing."""


@pytest.fixture(params=["answers-local", "answers-batch"])
def head(request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """Serve a recorded head's answers."""

    class Handler(Replayed):
        calls = json.loads((RECORDED / f"{request.param}.json").read_text())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Endpoint("127.0.0.1", server.server_port, TOKEN, "")
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_recorded_head_s_errors_are_understood(head: Endpoint) -> None:
    with pytest.raises(InvalidInput, match="two whole numbers"):
        ask(head, "PATCH", "/gpucluster/cluster", {"target": {"minimum": 2, "maximum": 1}})
    with pytest.raises(InvalidInput, match="cluster's name"):
        ask(head, "PATCH", "/gpucluster/cluster", {"name": "no/name"})


def test_a_recorded_head_is_scaled_renamed_and_stopped(root: Path, head: Endpoint) -> None:
    directory = brought(root, "local-running")
    (directory.path / "lease").touch()
    record = directory.read_record()
    # The recorded head's process: a child of ours that does nothing, so that it counts as alive.
    record = replace(record, http_address=f"127.0.0.1:{head.port}", head=this_process())
    directory.write_record(record)
    os.utime(directory.lease)
    mine = Clusters()
    view = mine.update(record.id, new_name="renamed", target=Target(2, 2))
    assert view.phase not in ENDED
    assert mine.stop(record.id).phase is not Phase.FAILED
