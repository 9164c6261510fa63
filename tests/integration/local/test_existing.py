"""Schedulers that somebody else started: attached to by address or file, and left alone."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask
import pytest
from distributed import Client

from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.client.gpucluster import GPUCluster
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import (
    ClusterConflict,
    HeadUnreachable,
    InvalidInput,
    UnsuitableEnvironment,
)
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.certificates import make_certificates
from jupyter_gpucluster.state import external
from tests.waiting import until

START_SECONDS = 60.0


@pytest.fixture(scope="module")
def files(module_home: Path) -> Path:
    """Return a folder with the certificates of somebody else's cluster."""
    folder = module_home / "theirs"
    folder.mkdir(mode=0o700)
    make_certificates(folder, cluster="theirs", seconds=3600)
    return folder


@contextmanager
def a_scheduler(folder: Path, name: str, *arguments: str) -> Iterator[tuple[int, Path]]:
    file = folder / f"{name}.json"
    argv = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    argv += ["--port", "0", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(file)]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([*argv, *arguments], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not file.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process.pid, file
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def schedulers(files: Path) -> Iterator[dict[str, Path]]:
    """Run one scheduler without encryption and one with it."""
    tls = ["--tls-ca-file", str(files / "ca.pem"), "--tls-cert", str(files / "scheduler-cert.pem")]
    tls += ["--tls-key", str(files / "scheduler-key.pem"), "--protocol", "tls"]
    with ExitStack() as stack:
        _, plain = stack.enter_context(a_scheduler(files, "plain"))
        _, encrypted = stack.enter_context(a_scheduler(files, "encrypted", *tls))
        yield {"plain": plain, "encrypted": encrypted}


def profile(home: Path, name: str, text: str) -> str:
    path = home / "data" / "gpucluster" / "profiles" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"title: {name}\nbackend: existing\n" + textwrap.dedent(text))
    return name


def tls_of(files: Path, *, key: str = "client-key.pem") -> str:
    return f"tls: {{ca: {files / 'ca.pem'}, cert: {files / 'client-cert.pem'}, key: {files / key}}}"


@pytest.mark.slow
def test_an_existing_scheduler_is_listed_connected_to_and_left_alone(
    module_home: Path, schedulers: dict[str, Path]
) -> None:
    file = schedulers["plain"]
    clusters = Clusters()
    place = profile(module_home, "theirs", f"existing: {{scheduler_file: {file}}}\n")
    view = clusters.start(place, name="attached", target=Target(1, 1))
    assert (view.phase, view.backend, view.encrypted) == (Phase.RUNNING, "existing", False)
    assert "not started here" in view.words
    assert clusters.wait_ready(view.id, timeout=5).id == view.id
    assert [shown.name for shown in clusters.list()] == ["attached"]
    with connect("attached") as client:
        assert client.scheduler_info()["address"] == view.scheduler_address
    assert (
        str(ClusterDirectory(Path(view.directory)).scheduler_file)
        in clusters.client_code(view.id)["dask"]
    )
    with pytest.raises(ClusterConflict, match="cannot be scaled or renamed"):
        clusters.update(view.id, target=Target(3, 3))
    with pytest.raises(ClusterConflict, match="another user started it"):
        clusters.endpoint(view.id)
    stopped = clusters.stop(view.id)
    assert stopped.phase is Phase.STOPPED
    assert "left alone" in stopped.reason
    assert clusters.list() == []
    assert file.exists()
    with Client(view.scheduler_address, set_as_default=False) as client:
        assert client.scheduler_info()["address"] == view.scheduler_address


@pytest.mark.slow
def test_an_encrypted_scheduler_takes_the_files_of_the_profile(
    module_home: Path, files: Path, schedulers: dict[str, Path]
) -> None:
    clusters = Clusters()
    address = external.read_scheduler_file(schedulers["encrypted"])["address"]
    place = profile(module_home, "secured", f"existing:\n  address: {address}\n  {tls_of(files)}\n")
    view = clusters.start(place)
    assert (view.phase, view.encrypted) == (Phase.RUNNING, True)
    with connect(view.name) as client:
        assert client.scheduler_info()["address"] == address
    clusters.stop(view.id)
    assert (files / "client-key.pem").exists()
    bare = profile(module_home, "bare", f"existing: {{address: '{address}'}}\n")
    with pytest.raises(InvalidInput, match="no certificates"):
        clusters.start(bare)


def test_a_scheduler_that_takes_connections_and_says_nothing_is_given_up(home: Path) -> None:
    clusters = Clusters()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        dask.config.set({"distributed.comm.timeouts.connect": "500ms"}),
    ):
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        view = clusters.start(profile(home, "mute", f"existing: {{address: '{address}'}}\n"))
        for connects in (connect, GPUCluster.from_name):
            with pytest.raises(HeadUnreachable, match=f"does not answer at {address}") as caught:
                connects(view.id)
            assert f"logs {view.name}" in caught.value.hint
        clusters.stop(view.id)


if importlib.util.find_spec("distributed_ucxx"):

    @pytest.mark.slow
    def test_a_scheduler_that_speaks_ucx_is_connected_to_and_left_alone(
        module_home: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clusters = Clusters()
        with a_scheduler(files, "fast", "--protocol", "ucx") as (_, file):
            text = f"existing: {{scheduler_file: {file}}}\n"
            view = clusters.start(profile(module_home, "fast", text))
            assert (view.phase, view.encrypted) == (Phase.RUNNING, False)
            assert view.scheduler_address.startswith("ucx://127.0.0.1:")
            with connect(view.id) as client:
                assert client.scheduler_info()["address"] == view.scheduler_address
            with pytest.raises(ClusterConflict, match="cannot be scaled or renamed"):
                clusters.update(view.id, target=Target(3, 3))
            clusters.stop(view.id)
            monkeypatch.setattr(external, "REMEMBERED_SECONDS", 0.0)
            view = clusters.start(profile(module_home, "fast", text))
        file.unlink(missing_ok=True)
        assert clusters.get(view.id).phase is Phase.UNREACHABLE
        clusters.stop(view.id)

else:

    def test_a_scheduler_that_speaks_ucx_needs_a_python_that_does(home: Path) -> None:
        clusters = Clusters()
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            fast = profile(home, "fast", f"existing: {{address: 'ucx://127.0.0.1:{port}'}}\n")
            with pytest.raises(
                UnsuitableEnvironment, match="which a scheduler at ucx://"
            ) as caught:
                clusters.start(fast)
            assert caught.value.detail == "python"
            assert "distributed-ucxx" in caught.value.hint
            assert clusters.list(ended=True) == []
            # One that came to speak it later, as by a Python that can.
            view = clusters.start(
                profile(home, "slow", f"existing: {{address: 'tcp://127.0.0.1:{port}'}}\n")
            )
            file = ClusterDirectory(Path(view.directory)).scheduler_file
            file.write_text(json.dumps({"address": f"ucx://127.0.0.1:{port}"}))
            with pytest.raises(UnsuitableEnvironment, match="which cluster slow-1 needs"):
                connect(view.id).close()


@pytest.mark.slow
def test_a_certificate_of_another_authority_is_not_taken(
    module_home: Path, tmp_path: Path, schedulers: dict[str, Path]
) -> None:
    make_certificates(tmp_path, cluster="other", seconds=3600)
    clusters = Clusters()
    place = profile(
        module_home,
        "stranger",
        f"existing:\n  scheduler_file: {schedulers['encrypted']}\n  {tls_of(tmp_path)}\n",
    )
    view = clusters.start(place)
    assert view.phase is Phase.UNREACHABLE
    assert "No Dask scheduler answers" in view.reason
    with pytest.raises(ClusterConflict, match="No scheduler answers at"):
        connect(view.id).close()
    clusters.stop(view.id)


@pytest.mark.slow
def test_a_file_left_by_a_run_that_is_over_is_known_by_who_answers(
    module_home: Path, tmp_path: Path, schedulers: dict[str, Path]
) -> None:
    clusters = Clusters()
    theirs = external.read_scheduler_file(schedulers["plain"])
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = {**theirs, "address": f"tcp://127.0.0.1:{unused.getsockname()[1]}"}
        reused = {**theirs, "id": "Scheduler-of-before"}
        for name, data, phase, told in (
            ("dead", dead, Phase.UNREACHABLE, "No scheduler answers at"),
            ("reused", reused, Phase.RUNNING, "Another scheduler answers"),
        ):
            file = tmp_path / f"{name}.json"
            file.write_text(json.dumps(data))
            text = f"existing: {{scheduler_file: {file}}}\n"
            view = clusters.start(profile(module_home, name, text))
            assert view.phase is phase
            assert ("may be left from an earlier run" in view.reason) == (name == "dead")
            with pytest.raises(ClusterConflict, match=told) as caught:
                connect(view.id).close()
            assert "start it again" in caught.value.hint
            clusters.stop(view.id)


@pytest.mark.slow
def test_a_trusted_dashboard_is_that_of_the_scheduler_file(
    module_home: Path, schedulers: dict[str, Path]
) -> None:
    file = schedulers["plain"]
    clusters = Clusters()
    text = f"existing: {{scheduler_file: {file}, trust_dashboard: true}}\n"
    view = clusters.start(profile(module_home, "trusted", text))
    endpoint = clusters.endpoint(view.id)
    assert endpoint.port == external.read_scheduler_file(file)["services"]["dashboard"]
    assert endpoint.token == ""
    clusters.stop(view.id)


@pytest.mark.slow
def test_a_scheduler_that_ends_is_unreachable_and_one_that_comes_back_is_found(
    module_home: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external, "REMEMBERED_SECONDS", 0.0)
    clusters = Clusters()
    with a_scheduler(files, "passing") as (_, file):
        text = f"existing: {{scheduler_file: {file}}}\n"
        view = clusters.start(profile(module_home, "passing", text))
        assert view.phase is Phase.RUNNING
    file.unlink(missing_ok=True)
    assert clusters.get(view.id).phase is Phase.UNREACHABLE
    with a_scheduler(files, "passing"):
        until(lambda: clusters.get(view.id).phase is Phase.RUNNING)
        again = clusters.get(view.id)
        assert again.scheduler_address != view.scheduler_address
    clusters.stop(view.id)


@pytest.mark.parametrize(
    "address", ["", "host", "ws://host:1", "host:0", "host:70000", "tcp://ho st:1", "-x:\n1"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="not the address"):
        external.read_address(address)


@pytest.mark.parametrize(
    "address, read",
    [
        ("host:8786", ("tcp", "host", 8786)),
        ("tls://10.0.0.1:1", ("tls", "10.0.0.1", 1)),
        ("ucx://ib0-n1:13337", ("ucx", "ib0-n1", 13337)),
        ("tcp://[fe80::1]:80", ("tcp", "fe80::1", 80)),
    ],
)
def test_an_address_is_read(address: str, read: tuple[str, str, int]) -> None:
    assert external.read_address(address) == read


def test_a_profile_without_a_scheduler_is_refused(home: Path) -> None:
    clusters = Clusters()
    with pytest.raises(InvalidInput, match="which scheduler"):
        clusters.start(profile(home, "nothing", ""))
    with pytest.raises(InvalidInput, match="absolute path"):
        clusters.start(profile(home, "gone", "existing: {scheduler_file: /nonexistent/s.json}\n"))
    assert clusters.list(ended=True) == []
    with pytest.raises(InvalidInput, match="no script"):
        clusters.script("nothing")
