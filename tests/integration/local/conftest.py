"""Clusters of this machine for tests to use and to kill."""

from __future__ import annotations

import gc
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import ENDED, Target
from jupyter_gpucluster.state import control_client
from jupyter_gpucluster.state.view import ClusterView

from .driving import READY_SECONDS, fixed, until

Start = Callable[..., ClusterView]
StartHead = Callable[[], ClusterView]
WriteProfile = Callable[[str, str], str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here: it starts real processes."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            # Dask's client closes the sockets of a scheduler that was killed under it when Python
            # collects them.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect those sockets before tests come that do not know of them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def temporary(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where clusters keep what does not fit into memory: nobody else's are there."""
    monkeypatch.setattr(tempfile, "tempdir", str(home / "tmp"))
    monkeypatch.setenv("TMPDIR", str(home / "tmp"))
    return home / "tmp"


@pytest.fixture
def clusters(home: Path, temporary: Path) -> Iterator[Clusters]:
    """Return the clusters of this test's home; those that still live at its end are stopped."""
    with_home = Clusters()
    yield with_home
    stop_all(with_home)


@pytest.fixture
def start(clusters: Clusters) -> Start:
    """Start a cluster and wait until its workers are there."""
    return lambda *args, **request: start_ready(clusters, *args, **request)


@pytest.fixture
def start_head(clusters: Clusters) -> StartHead:
    """Start a cluster and wait until its head listens, which is sooner than its worker."""

    def start() -> ClusterView:
        view = clusters.start("local", target=fixed(1))
        return until(lambda: found if (found := clusters.get(view.id)).scheduler_address else None)

    return start


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up heads that were stopped after a second, in place of ten."""
    monkeypatch.setattr(control_client, "ANSWER_SECONDS", 1.0)


@pytest.fixture
def write_profile(home: Path) -> WriteProfile:
    """Write a profile of this user that runs on this machine, and return its name."""
    return lambda name, text: put_profile(home, name, text)


def start_ready(
    clusters: Clusters,
    profile: str = "local",
    workers: int = 1,
    *,
    target: Target | None = None,
    **request: Any,
) -> ClusterView:
    view = clusters.start(profile, target=target or fixed(workers), **request)
    return clusters.wait_ready(view.id, timeout=READY_SECONDS)


def stop_all(clusters: Clusters) -> None:
    live = [view for view in clusters.list() if view.phase not in ENDED]
    for view in live:
        clusters.stop(view.id)
    for view in live:
        clusters.wait_stopped(view.id, timeout=READY_SECONDS)


def put_profile(home: Path, name: str, text: str) -> str:
    path = home / "data" / "gpucluster" / "profiles" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"title: {name}\nbackend: local\n{textwrap.dedent(text)}")
    return name
