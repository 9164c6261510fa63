"""A small real cluster in this process, and a stand-in for CuPy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from distributed import Client

FAKE_CUPY = '''
"""CuPy's face, with NumPy behind it; no GPU is needed."""
from types import SimpleNamespace

__version__ = "14.0.0"
MODEL, MEMORY = b"Fake GPU", 8 * 10**9
runtime = SimpleNamespace(
    getDevice=lambda: 0,
    getDeviceProperties=lambda device: {
        "name": MODEL, "uuid": bytes(16), "totalGlobalMem": MEMORY,
    },
)
cuda = SimpleNamespace(runtime=runtime)
'''

FAKE_CUPY_RANDOM = '''
"""Counts the chunks that were made here."""
import numpy

made = []


class RandomState(numpy.random.RandomState):
    def normal(self, *args, size, **kwargs):
        made.append(size)
        return super().normal(*args, size=size, **kwargs)
'''


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts a cluster: it takes two thirds of the time of all quick tests."""
    for item in items:
        if Path(__file__).parent in item.path.parents and "client" in getattr(
            item, "fixturenames", ()
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def client() -> Iterator[Client]:
    """Connect to two workers of one thread each in this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def a_cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a stand-in for CuPy on the path; returns its folder."""
    for name in [name for name in sys.modules if name.split(".")[0] == "cupy"]:
        monkeypatch.delitem(sys.modules, name)  # where the real one is installed, and was imported
    package = tmp_path / "cupy"
    package.mkdir()
    (package / "__init__.py").write_text(FAKE_CUPY)
    (package / "random.py").write_text(FAKE_CUPY_RANDOM)
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    for name in ("cupy", "cupy.random"):
        sys.modules.pop(name, None)
