"""A search path of its own for each test: system, environment, JUPYTER_PATH and user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import settings
from jupyter_core import paths

from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.profiles import ProfileProblem, apply_options, find_profile
from tests.batch.golden import rendered

# How long an example takes says something about the machine, not about the reader.
settings.register_profile("profiles", deadline=None)
settings.load_profile("profiles")


PLACE = """
    title: Place
    backend: slurm
    job:
      queue: normal
      gpus: 4
      directives: [-C gpu]
    limits:
      workers: 64
      clusters: 2
"""


def script_of(name: str) -> str:
    """Return the script of a profile, with a value for each option that the user must set."""
    loaded = find_profile(name).profile
    required = [key for key, option in loaded.options.items() if option.required]
    profile = apply_options(loaded, dict.fromkeys(required, "value"))
    return rendered(profile, name, ClusterDirectory(Path("/home/ann/clusters/7f3a2b")))[1]


@dataclass
class Site:
    """The directories of the four levels, and a pen."""

    root: Path

    def directory(self, level: str) -> Path:
        """Return the profile directory of a level."""
        return self.root / level / "gpucluster" / "profiles"

    def write(self, level: str, name: str, text: str | bytes) -> str:
        """Write a profile file, indentation removed; return its path."""
        file = self.directory(level) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(dedent(text).encode() if isinstance(text, str) else text)
        return str(file)


@pytest.fixture
def site(home: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Give an empty search path, the user's directory before the environment's."""
    made = Site(home / "site")
    monkeypatch.setattr(paths, "SYSTEM_JUPYTER_PATH", [str(made.root / "system")])
    monkeypatch.setattr(paths, "ENV_JUPYTER_PATH", [str(made.root / "environment")])
    monkeypatch.setattr("site.ENABLE_USER_SITE", False)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(made.root / "user"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
    return made


@contextlib.contextmanager
def as_nobody(home: Path) -> Iterator[None]:
    """Give up root's rights for a while, without losing the way into the test's home."""
    home.chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


Places = Callable[[list[ProfileProblem]], list[tuple[str, int, int]]]


@pytest.fixture
def places() -> Places:
    """Return a function that reduces problems to file name, line and column."""
    return lambda problems: [(Path(p.file).name, p.line, p.column) for p in problems]
