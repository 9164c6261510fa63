"""Every test gets a home of its own, leaves no process behind, and never skips in silence."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tools.leftovers import end_processes, running

pytest_plugins = ("pytest_jupyter.jupyter_server",)

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

ALLOWED_SKIPS = ("needs root: ", "needs a GPU: ", "needs another interpreter: ")
"""Beginnings of the reason of a skip; any other skip is a failure."""

SCHEDULER_VARIABLES = ("SLURM_", "SBATCH_", "PBS_", "LSB_", "COBALT_", "OAR_", "DASK_", "JUPYTER")


@contextlib.contextmanager
def a_home() -> Iterator[Path]:
    """Point home, Jupyter, Dask and temporary files at a new folder; no process may outlive it.

    The path is short because Unix sockets below it have some 100 characters at most.
    """
    before = running()
    home = Path(tempfile.mkdtemp(prefix="gpc-"))
    kept = dict(os.environ)
    for name in kept:
        if name.startswith(SCHEDULER_VARIABLES):
            del os.environ[name]
    os.environ |= {
        "HOME": str(home),
        "DASK_CONFIG": str(home / "dask"),
        "DASK_TEMPORARY_DIRECTORY": str(home / "tmp"),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_GPUCLUSTER_LOGIN_NODE": "no",  # tests of batch systems install their commands
        "JUPYTER_PLATFORM_DIRS": "1",
        "JUPYTER_RUNTIME_DIR": str(home / "run"),
        "MPLCONFIGDIR": str(home / "matplotlib"),
        "XDG_RUNTIME_DIR": str(home / "run"),
    }
    (home / "tmp").mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(home / "tmp")
    (home / "run").mkdir(mode=0o700)
    try:
        yield home
        left = end_processes(home, before)
    finally:
        os.environ.clear()
        os.environ |= kept
        tempfile.tempdir = None
        shutil.rmtree(home, ignore_errors=True)
    assert not left, "processes outlived the test:\n" + "\n".join(left)


@pytest.fixture(scope="session", autouse=True)
def basetemp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settle where ``tmp_path`` is before homes bring temporary folders of their own."""
    return tmp_path_factory.getbasetemp()


@pytest.fixture(scope="module")
def module_home() -> Iterator[Path]:
    """Share one home between the tests of a module that share a running cluster."""
    with a_home() as home:
        yield home


@pytest.fixture(autouse=True)
def home(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Give the test a home of its own (``JUPYTER_DATA_DIR`` is its ``data``)."""
    if "module_home" in request.fixturenames:
        yield request.getfixturevalue("module_home")
        return
    with a_home() as path:
        yield path


@pytest.fixture
def root(home: Path) -> Path:
    """Return where clusters keep their directories by default; nothing is there yet."""
    return home / "data" / "gpucluster" / "clusters"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put modules with slow tests first, batch systems before the others.

    Each of several processes takes the next module when it has little left, so quick ones at the
    end leave none of them alone with a slow one.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, "integration" not in item.path.parts))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips without permission."""
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a module that skips without permission."""
    return refuse_skip((yield))


def refuse_skip(report: Report) -> Report:
    """Make a failure of a skip whose reason does not begin as the allowed ones do."""
    if report.skipped and isinstance(report.longrepr, tuple):
        path, line, message = report.longrepr
        reason = message.removeprefix("Skipped: ")
        if not reason.startswith(ALLOWED_SKIPS):
            report.outcome = "failed"
            report.longrepr = f"{path}:{line}: skipped without permission: {reason}"
    return report
