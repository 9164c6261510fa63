"""The wheel, built as a release builds it, and an empty environment with it installed."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.packaging.checkout import CHECKOUT, files
from tests.packaging.environment import Installed, install, run_loudly


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the checkout, without what was built in it."""
    copy = tmp_path_factory.mktemp("source")
    for path in files():
        (copy / path.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / path, copy / path)
    return copy


@pytest.fixture(scope="session")
def wheel(source: Path, common: Path) -> Path:
    """Build the sdist, and the wheel from it, as a release does; once for all processes."""
    out = common / "dist"
    with (common / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(out.glob("*.whl")):
            build = [sys.executable, "-m", "build", "--outdir", str(out), str(source)]
            has_uv = (Path(sys.prefix) / "bin" / "uv").exists()
            run_loudly([*build, "--installer=uv"] if has_uv else build)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of this run of the tests have in common."""
    base = tmp_path_factory.getbasetemp()
    folder = base / "common" if os.environ.get("PYTEST_XDIST_WORKER") is None else base.parent
    (folder / "wheel").mkdir(parents=True, exist_ok=True)
    return folder / "wheel"


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel and JupyterLab into an empty virtual environment."""
    folder = tmp_path_factory.mktemp("venv")
    environment = install(sys.executable, folder, str(wheel), "jupyterlab")
    assert shutil.which("node", path=environment.variables["PATH"]) is None
    return environment
