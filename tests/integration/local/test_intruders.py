"""Nobody else on the machine can read, reach or use a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from distributed.security import Security

from jupyter_gpucluster.client.connect import security_of
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import TOKEN_HEADER
from jupyter_gpucluster.state.view import ClusterView
from tests.waiting import workers_of

from .conftest import put_profile, start_ready, stop_all
from .driving import client_of, head_of, job_server_of, live_jobs, ports_of, processes_of
from .tasks import double

NOBODY = 65534
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg==",
}
PAGES: list[tuple[str, str, dict[str, str]]] = [
    ("GET", "/", {}),
    ("GET", "/status", {}),
    ("GET", "/status", {TOKEN_HEADER: "guess"}),
    ("GET", "/status", {TOKEN_HEADER: ""}),
    ("GET", "/status?token=", {}),
    ("GET", "/sitemap.json", {}),
    ("GET", "/health", {}),
    ("GET", "/metrics", {}),
    ("GET", "/json/counts.json", {}),
    ("GET", "/json/identity.json", {}),
    ("GET", "/info/main/workers.html", {}),
    ("GET", "/individual-plots.json", {}),
    ("GET", "/statics/css/base.css", {}),
    ("GET", "/static/js/bokeh.min.js", {}),
    ("GET", "/gpucluster/summary", {}),
    ("PATCH", "/gpucluster/cluster", {}),
    ("POST", "/gpucluster/stop", {}),
    ("POST", "/api/v1/retire_workers", {}),
    ("GET", "/proxy/8787/127.0.0.1/status", {}),
    ("GET", "//status", {}),
    ("GET", "/./gpucluster/summary", {}),
    ("OPTIONS", "/status", {}),
    ("HEAD", "/status", {}),
    ("DELETE", "/", {}),
    ("GET", "/status/ws", UPGRADE),
    ("GET", "/eventstream", UPGRADE),
    ("GET", "/nothing-here", {}),
]


@pytest.fixture(scope="module")
def clusters(module_home: Path) -> Iterator[Clusters]:
    found = Clusters()
    yield found
    stop_all(found)


@pytest.fixture(scope="module")
def mine(clusters: Clusters, module_home: Path) -> ClusterView:
    """Start a cluster that only its own directory protects."""
    view = start_ready(clusters, "local", 2, name="mine")
    for path in (module_home, *clusters.root.parents):
        if path.is_relative_to(module_home):
            path.chmod(0o755)
    return view


@pytest.fixture(scope="module")
def other(clusters: Clusters) -> ClusterView:
    """Start a second cluster, whose certificates must not open the first."""
    return start_ready(clusters, "local", 1, name="other")


def send_intruder(task: dict[str, Any]) -> dict[str, Any]:
    """Let somebody else try, a second user of the machine where we may become one."""
    task["uid"] = NOBODY if os.geteuid() == 0 else None
    script = Path(__file__).with_name("intruder.py")
    told = subprocess.run(
        [sys.executable, "-I", script],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    answers: dict[str, Any] = json.loads(told.stdout)
    assert answers["uid"] == (NOBODY if os.geteuid() == 0 else os.getuid())
    return answers


def doors(clusters: Clusters, view: ClusterView) -> list[tuple[str, int]]:
    """Return where scheduler and workers listen."""
    with client_of(view) as client:
        addresses = [view.scheduler_address, *workers_of(client)]
    found = [address.rpartition("/")[2].rpartition(":") for address in addresses]
    return [(host, int(port)) for host, _, port in found]


def client_at(address: str, security: Security | None) -> Client:
    return Client(address, security=security, timeout=1, set_as_default=False)


def pem_of(view: ClusterView, role: str) -> str:
    tls = Path(view.directory) / "tls"
    return (tls / f"{role}-cert.pem").read_text() + (tls / f"{role}-key.pem").read_text()


def task(**parts: Any) -> dict[str, Any]:
    return {"files": [], "doors": [], "pages": [], "certificates": {}, **parts}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it becomes another user")
def test_another_user_cannot_read_the_state(clusters: Clusters, mine: ClusterView) -> None:
    directory = Path(mine.directory)
    paths = [clusters.root, directory, *directory.rglob("*")]
    assert {"token", "client-key.pem", "record.json"} <= {path.name for path in paths}
    told = send_intruder(task(files=[str(path) for path in paths]))
    assert set(told["files"].values()) == {"PermissionError"}


def test_only_this_cluster_s_certificates_open_scheduler_and_workers(
    clusters: Clusters, mine: ClusterView, other: ClusterView
) -> None:
    certificates = {"tls": None, "other": pem_of(other, "scheduler"), "own": pem_of(mine, "client")}
    told = send_intruder(task(doors=doors(clusters, mine), certificates=certificates))
    assert told["doors"] == {
        "plain": [False] * 3,
        "tls": [False] * 3,
        "other": [False] * 3,
        "own": [True] * 3,  # so the intruder knows how to knock
    }


def test_dask_s_own_client_gets_in_with_the_right_certificate_only(
    mine: ClusterView, other: ClusterView
) -> None:
    plain = mine.scheduler_address.replace("tls://", "tcp://")
    for address, security in (
        (plain, None),
        (mine.scheduler_address, Security.temporary()),
        (mine.scheduler_address, security_of(other)),
    ):
        with pytest.raises(OSError, match=r"(?i)timed out|connect|certificate"):
            client_at(address, security).close()
    with client_of(mine) as client:
        assert client.submit(double, 21).result() == 42


def test_a_client_s_certificate_cannot_pose_as_a_scheduler(mine: ClusterView) -> None:
    certificate = (Path(mine.directory) / "tls" / "client-cert.pem").read_bytes()
    from cryptography import x509

    usage = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
        x509.ExtendedKeyUsage
    )
    assert [name._name for name in usage.value] == ["clientAuth"]
    assert not list(Path(mine.directory).rglob("ca*key*"))


def test_every_page_of_the_head_asks_for_the_token(
    clusters: Clusters, mine: ClusterView, other: ClusterView
) -> None:
    endpoint = clusters.endpoint(mine.id)
    theirs = clusters.endpoint(other.id).token
    pages = [*PAGES, ("GET", "/status", {TOKEN_HEADER: theirs})]
    asked = [(endpoint.host, endpoint.port, *page) for page in pages]
    told = send_intruder(task(pages=asked))
    assert dict(zip(map(str, pages), told["pages"], strict=True)) == dict.fromkeys(
        map(str, pages), 403
    )


def test_workers_have_no_pages(clusters: Clusters, mine: ClusterView) -> None:
    workers = [job.process[0] for job in live_jobs(clusters, mine)]
    comms = {port for _, port in doors(clusters, mine)}
    ports = {port for _, port in ports_of(workers)} - comms
    assert len(ports) <= 2
    paths = (
        "/",
        "/status",
        "/info/main.html",
        "/metrics",
        "/json/counts.json",
        "/statics/css/base.css",
    )
    asked: list[tuple[Any, ...]] = [
        ("127.0.0.1", port, "GET", path, {}) for port in sorted(ports) for path in paths
    ]
    assert set(send_intruder(task(pages=asked))["pages"]) <= {404}


def test_everything_listens_on_loopback_only(clusters: Clusters, mine: ClusterView) -> None:
    pids = processes_of(mine.id)
    assert {head_of(mine), job_server_of(mine)} < set(pids)
    listening = ports_of(pids)
    assert len(listening) >= 4
    assert {address for address, _ in listening} <= LOOPBACK


def test_plain_tcp_takes_an_explicit_key_and_shows(clusters: Clusters, module_home: Path) -> None:
    profile = put_profile(module_home, "open", "network: {protocol: tcp}\n")
    view = start_ready(clusters, profile, 1)
    assert not view.encrypted
    assert view.scheduler_address.startswith("tcp://127.0.0.1:")
    assert not list((Path(view.directory) / "tls").iterdir())
    code = clusters.client_code(view.id)["dask"]
    assert "Security" not in code
    with client_of(view) as client:
        assert client.submit(double, 21).result() == 42
    assert {address for address, _ in ports_of(processes_of(view.id))} <= LOOPBACK


def test_no_secret_shows_anywhere(clusters: Clusters, mine: ClusterView) -> None:
    directory = Path(mine.directory)
    secrets = {(directory / "token").read_text().strip()}
    for key in directory.glob("tls/*-key.pem"):
        secrets |= {line for line in key.read_text().splitlines() if "-" not in line}
    assert len(secrets) >= 7
    shown = [
        json.dumps(clusters.client_code(mine.id)),
        clusters.logs(mine.id),
        clusters.why(mine.id),
        repr(clusters.get(mine.id)),
        repr(clusters.endpoint(mine.id)),
        repr(clusters.events(mine.id)),
        *(path.read_text() for path in directory.glob("*.json*")),
        *(path.read_text() for path in directory.glob("jobs/*")),
    ]
    for entry in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                shown.append((entry / name).read_text(errors="replace"))
            except OSError:
                continue
    assert not [text for text in shown if any(secret in text for secret in secrets)]
