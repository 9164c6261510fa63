"""The command as a process: what it imports, how it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CHECKOUT, CommandLine

HEAVY = {
    "bokeh",
    "cryptography",
    "dask",
    "distributed",
    "jupyter_core",
    "jupyter_server",
    "numpy",
    "pydantic",
    "ruamel",
    "tornado",
    "yaml",
}


@pytest.mark.parametrize("words", [["--help"], ["list"], ["list", "--all", "--json"], ["why", "x"]])
def test_looking_imports_nothing_heavy(gpucluster: CommandLine, words: list[str]) -> None:
    code = (
        "import sys\n"
        "from jupyter_gpucluster.cli import main\n"
        f"main({words!r})\n"
        "print(*sorted(name for name in sys.modules if '.' not in name))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert not HEAVY & set(answer.stdout.splitlines()[-1].split())


def test_a_closed_pipe_is_no_noise(gpucluster: CommandLine) -> None:
    with gpucluster.begin("profiles") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_failure(home: Path, closed: str) -> None:
    command = f'"{sys.executable}" -m jupyter_gpucluster list {closed}'
    answer = subprocess.run(
        ["/bin/sh", "-c", command], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize("verb", ["list", "list --json", "profiles", "logs x", "--help"])
@pytest.mark.parametrize("full", [">/dev/full", "2>/dev/full", ">/dev/full 2>&1"])
def test_a_full_disk_behind_the_output_is_one_line(home: Path, verb: str, full: str) -> None:
    command = f'"{sys.executable}" -m jupyter_gpucluster {verb} {full}'
    answer = subprocess.run(
        ["/bin/sh", "-c", command], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == (0 if full == "2>/dev/full" and verb != "logs x" else 1)
    assert "Traceback" not in answer.stderr


def test_a_name_that_no_cluster_has_exits_with_1(gpucluster: CommandLine) -> None:
    answer = gpucluster("show", "nobody", "--json")
    assert answer.code == 1
    assert answer.json["message"] == "There is no cluster named nobody."
    assert answer.err.startswith("error: There is no cluster named nobody.\nhint: ")
