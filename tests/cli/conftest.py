"""The command line as users run it: in a terminal of its own, on clusters of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.clusters import Clusters

from .doubles import Desk, InMemoryClusters, a_view

CHECKOUT = Path(__file__).parents[2]
SECONDS = 120.0


@dataclass(frozen=True)
class Answer:
    """The answer of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)


class CommandLine:
    """Runs ``jupyter gpucluster`` in processes of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *words: str) -> Answer:
        with self.begin(*words) as process:
            out, err = process.communicate(timeout=SECONDS)
        return Answer(process.returncode, out, err)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a command and leave it running, in a session of its own like in a new terminal."""
        return subprocess.Popen(
            [sys.executable, "-m", "jupyter_gpucluster", *words],
            cwd=self.directory,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def desk() -> Desk:
    """A terminal whose clusters are in memory: one runs, one has ended."""
    from jupyter_gpucluster.core.cluster import Phase

    return Desk(InMemoryClusters(a_view("alpha"), a_view("omega", Phase.STOPPED)))


@pytest.fixture
def gpucluster(home: Path) -> Iterator[CommandLine]:
    """The command line in this test's home; its clusters are stopped at the end."""
    yield CommandLine(home)
    clusters = Clusters()
    live = clusters.list()
    for view in live:
        clusters.stop(view.id)
    for view in live:
        clusters.wait_stopped(view.id, timeout=60)
