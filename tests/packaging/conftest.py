"""The wheel, built as a release builds it, and an empty environment with it installed."""

from __future__ import annotations

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
def wheel(source: Path) -> Path:
    """Build the sdist, and the wheel from it, as a release does."""
    run_loudly([sys.executable, "-m", "build", "--outdir", str(source / "dist"), str(source)])
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel and JupyterLab into an empty virtual environment."""
    folder = tmp_path_factory.mktemp("venv")
    environment = install(sys.executable, folder, str(wheel), "jupyterlab")
    assert shutil.which("node", path=environment.variables["PATH"]) is None
    return environment
