"""The package's requirements beside the packages of each supported RAPIDS release."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpucluster.launch.python_environments import OLDEST_DASK
from tests.packaging.checkout import pyproject

pytestmark = pytest.mark.slow

RAPIDS = ("cudf-cu12", "dask-cudf-cu12", "dask-cuda[cu12]", "bokeh", "jupyterlab")


def solve(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """Let uv choose a version of each package, from metadata alone."""
    (folder / "in.txt").write_text("\n".join(lines))
    uv = [str(Path(sys.prefix, "bin", "uv")), "pip", "compile", "--quiet", "--no-annotate"]
    command = [*uv, "--python-version", "3.11", str(folder / "in.txt")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("release", ["26.2", "26.4", "26.6", "26.8", "26.10"])
def test_beside_rapids_no_installed_package_changes(release: str, tmp_path: Path) -> None:
    wanted = [f"{name}=={release}.*" if "cud" in name else name for name in RAPIDS]
    installed = solve(tmp_path, *wanted)
    assert installed.returncode == 0, installed.stderr
    both = solve(tmp_path, *installed.stdout.splitlines(), *pyproject()["project"]["dependencies"])
    assert both.returncode == 0, both.stderr
    assert set(installed.stdout.splitlines()) - set(both.stdout.splitlines()) == set()


def test_below_the_oldest_dask_the_installer_refuses_and_names_it(tmp_path: Path) -> None:
    project = pyproject()["project"]
    both = solve(tmp_path, "rapids-dask-dependency==25.12.*", *project["dependencies"])
    assert both.returncode != 0
    assert f"distributed>={OLDEST_DASK}" in both.stderr
