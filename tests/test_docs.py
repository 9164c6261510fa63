"""The examples of the user's documents run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(sh|shell|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS = 240

pytestmark = pytest.mark.slow


def examples(kind: str) -> list[Any]:
    """Return the examples of a kind as parameters of a test."""
    found = []
    for name in ("quickstart.md", "benchmark.md"):
        for number, (language, code) in enumerate(BLOCK.findall((DOCS / name).read_text())):
            spoken = "notebook" if "%gpucluster" in code else language.replace("shell", "sh")
            if spoken == kind:
                found.append(pytest.param(code, id=f"{name}-{number}"))
    return found


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, with the environment's programs first."""
    here = home / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    return here


@pytest.mark.parametrize("code", examples("sh"))
def test_shell_lines(code: str, folder: Path) -> None:
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("code", examples("python"))
def test_scripts(code: str, folder: Path) -> None:
    (folder / "example.py").write_text(code)
    result = subprocess.run(
        [sys.executable, "example.py"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


@pytest.mark.parametrize("code", examples("notebook"))
def test_notebook_cells(code: str, folder: Path) -> None:
    cells = [nbformat.v4.new_code_cell(line) for line in code.splitlines()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3").execute()
    printed = [o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", [])]
    assert "45\n" in printed
