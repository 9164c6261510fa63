"""An ordinary user of queueing systems, and a Python with Dask that this user may run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.leftovers import end_processes, processes_of

from .real_site import NEUTRAL, OPEN_TO_ALL

NOBODY = "nobody"
"""Everywhere there, and may do nothing."""


@dataclass
class OrdinaryUser:
    """A home, and the product's commands run there."""

    home: Path
    python: str
    environment: Mapping[str, str]

    def write_profile(self, name: str, text: str) -> None:
        folder = self.home / "data/gpucluster/profiles"
        folder.mkdir(parents=True, exist_ok=True)
        for path in (folder.parent.parent, folder.parent, folder):
            shutil.chown(path, NOBODY)
        (folder / f"{name}.yaml").write_text(text)

    def run(self, *argv: str) -> None:
        """Run one of the product's commands as this user."""
        command = ["runuser", "-u", NOBODY, "--", self.python, "-m", "jupyter_gpucluster", *argv]
        ran = subprocess.run(
            command,
            env=dict(self.environment),
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def owners(self) -> list[str]:
        """Return whose the processes are that belong to this home, one by one."""
        return [Path(f"/proc/{pid}").owner() for pid in processes_of(self.home)]


@contextlib.contextmanager
def ordinary_user(site: Mapping[str, str]) -> Iterator[OrdinaryUser]:
    """Give the user a home for a while; no process may outlive it."""
    home = Path(tempfile.mkdtemp(prefix="nobody-", dir=OPEN_TO_ALL))
    shutil.chown(home, NOBODY)
    environment = {
        **NEUTRAL,
        **site,
        "HOME": str(home),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "run"),
        "TMPDIR": str(home),
    }
    try:
        with python_for_anybody() as (python, path):
            yield OrdinaryUser(home, python, environment | {"PYTHONPATH": path})
    finally:
        left = end_processes(home)
        shutil.rmtree(home)
    assert left == []


@contextlib.contextmanager
def python_for_anybody() -> Iterator[tuple[str, str]]:
    """Find a Python that ordinary users may run, and the path on which it finds Dask and us."""
    folders = [Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))]
    if found := runnable(folders):
        yield found
        return
    with contextlib.ExitStack() as stack:
        if not (found := runnable([stack.enter_context(shown_to_all(each)) for each in folders])):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            pytest.fail(f"no Python {version} is where ordinary users may run it, as in /usr/bin")
        yield found


def runnable(folders: Sequence[Path]) -> tuple[str, str] | None:
    path = os.pathsep.join(map(str, folders))
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        argv = ["runuser", "-u", NOBODY, "--", python, "-c", "import distributed, pydantic"]
        environment = NEUTRAL | {"PYTHONPATH": path}
        tried = subprocess.run(argv, env=environment, cwd="/", capture_output=True, check=False)
        if tried.returncode == 0:
            return python, path
    return None


@contextlib.contextmanager
def shown_to_all(folder: Path) -> Iterator[Path]:
    """Show a folder, to be read only, where all may go: a checkout in root's home is closed."""
    place = Path(tempfile.mkdtemp(prefix="shown-", dir=OPEN_TO_ALL))
    place.chmod(0o755)
    try:
        subprocess.run(["mount", "-o", "bind,ro", folder, place], check=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)
    finally:
        place.rmdir()
