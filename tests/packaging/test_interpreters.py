"""The wheel under the other Python releases that it is for, where the machine has them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.checkout import pyproject
from tests.packaging.environment import install

pytestmark = pytest.mark.slow

NAMED = re.findall(r"Python :: (3\.\d+)", "\n".join(pyproject()["project"]["classifiers"]))
OTHERS = [version for version in NAMED if version != f"3.{sys.version_info.minor}"]
"""The releases in the package's metadata, but for the one that runs all the other tests."""

PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))  # before a test changes home

WORK = """
from jupyter_gpucluster import GPUCluster
if __name__ == "__main__":
    with GPUCluster(profile="local", workers=1) as cluster, cluster.get_client() as client:
        print(sum(client.gather(client.map(lambda x: x * x, range(4)))))
"""


def interpreter(version: str) -> str:
    """Return a Python of this release, from the path or from pyenv; skip where there is none."""
    for candidate in candidates(version):
        asked = [candidate, "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
        # One of pyenv's shims is there for releases that are not, and then fails.
        told = subprocess.run(asked, capture_output=True, text=True, check=False)
        if told.stdout.strip() == version:
            return candidate
    pytest.skip(f"needs another interpreter: python{version} is neither on PATH nor in {PYENV}")


def candidates(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    yield from map(str, PYENV.glob(f"versions/{version}.*/bin/python"))


@pytest.mark.parametrize("version", OTHERS)
def test_a_cluster_works_from_the_wheel_in(
    version: str, wheel: Path, tmp_path: Path, home: Path
) -> None:
    python = interpreter(version)
    environment = install(python, tmp_path / "venv", str(wheel))
    assert "No broken requirements" in environment.run("pip", "check")
    environment.run("jupyter", "gpucluster", "profiles", "--json")
    profiles = home / "data" / "gpucluster" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "site.yaml").write_text("title: Site\nbackend: slurm\n", encoding="utf-8")
    # Written by dask-jobqueue, which came with the wheel.
    assert "#SBATCH -J gpc-" in environment.run("jupyter", "gpucluster", "script", "site")
    script = tmp_path / "work.py"
    script.write_text(WORK, encoding="utf-8")
    # What a later Python takes away, an earlier one warns of.
    printed = environment.run("python", "-W", "error::DeprecationWarning", str(script))
    assert printed.split()[-1] == "14"
