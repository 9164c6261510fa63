"""Real queueing systems that the tests of this folder share, and clusters on Slurm."""

from __future__ import annotations

import os
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters

from .sge_site import SgeSite
from .slurm_site import SlurmSite

WriteProfile = Callable[[str, str], str]
OPEN_TO_ALL = tempfile.gettempdir()
"""Not below a test's own home: daemons run as other users, and outlive a test."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here: it starts real daemons."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def site() -> Iterator[SlurmSite]:
    """Start a Slurm of four nodes, and end it after the last test."""
    if os.geteuid() != 0:
        pytest.skip("needs root: Slurm's daemons")
    base = Path(tempfile.mkdtemp(prefix="slurm-", dir=OPEN_TO_ALL))
    base.chmod(0o755)
    slurm = SlurmSite(base)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def grid_engine() -> Iterator[SgeSite]:
    """Start the machine's Grid Engine, and end it after the last test."""
    if os.geteuid() != 0:
        pytest.skip("needs root: Grid Engine's daemons")
    base = Path(tempfile.mkdtemp(prefix="sge-", dir=OPEN_TO_ALL))
    base.chmod(0o755)
    engine = SgeSite(base)
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def clusters(home: Path, site: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    """Return the clusters of this test's home; what still lives at its end is stopped."""
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    mine = Clusters()
    yield mine
    live = mine.live()
    for view in live:
        mine.stop(view.id)
    for view in live:
        mine.wait_stopped(view.id, timeout=60)
    assert site.queue() == [], "jobs outlived their cluster"


@pytest.fixture
def write_profile(home: Path) -> WriteProfile:
    """Write a Slurm profile of this user and return its name."""

    def write(name: str, text: str) -> str:
        path = home / "data" / "gpucluster" / "profiles" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"title: {name}\nbackend: slurm\nnetwork: {{interface: lo}}\n"
        path.write_text(head + textwrap.dedent(text))
        return name

    return write
