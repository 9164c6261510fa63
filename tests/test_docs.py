"""The examples of the user's documents run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from jupyter_gpucluster import GPUCluster
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.launch.profile_catalog import places

CHECKOUT = Path(__file__).parent.parent
DOCS = CHECKOUT / "docs"
PAGES = (
    "README.md",
    "docs/quickstart.md",
    "docs/benchmark.md",
    "docs/demo-site.md",
    "docs/when-it-fails.md",
)
ELSEWHERE = ("pip install", "make ")
"""Examples of other tests: the wheel in an empty environment, and the Makefile's targets."""
BLOCK = re.compile(r"^```(sh|shell|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```(yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"^```bash\n(#.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS = 240

pytestmark = pytest.mark.slow


def examples(kind: str) -> list[Any]:
    """Return the examples of a kind as parameters of a test; what two pages say is run once."""
    found: dict[str, Any] = {}
    for page in PAGES:
        for number, (language, code) in enumerate(BLOCK.findall((CHECKOUT / page).read_text())):
            spoken = "notebook" if "%gpucluster" in code else language.replace("shell", "sh")
            if spoken == kind and not code.startswith(ELSEWHERE):
                found[code] = pytest.param(code, id=f"{Path(page).name}-{number}")
    return [*found.values()]


def sessions() -> list[Any]:
    """Return what all pages show of a terminal, commands with their output."""
    return [
        pytest.param(text, id=f"{page.name}-{number}")
        for page in sorted((CHECKOUT / "README.md", *DOCS.rglob("*.md")))
        for number, text in enumerate(CONSOLE.findall(page.read_text()))
    ]


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


@pytest.mark.parametrize("session", sessions())
def test_what_a_terminal_shows(session: str, folder: Path) -> None:
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith("cat "):  # the page tells what the reader's own file says
            file = Path(command.removeprefix("cat ")).expanduser()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(shown)
        # Without the batch system a start goes as far as its script.
        command = command.replace(" start slurm ", " script slurm ")
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        assert shown in result.stdout


@pytest.mark.parametrize("system", ["cobalt", "htcondor", "lsf", "oar", "pbs", "sge", "slurm"])
def test_the_directives_that_a_page_shows_are_those_of_its_profile(
    system: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "backends" / f"{system}.md").read_text()
    path = home / "data" / "gpucluster" / "profiles" / "shown.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(YAML.findall(page)[0][1])
    (home / "lsf.conf").write_text("LSF_UNIT_FOR_LIMITS=MB\n")
    monkeypatch.setenv("LSF_ENVDIR", str(home))
    lines = iter(Clusters().script("shown").text.replace("<id>", "7f3a2b").splitlines())
    for shown in SCRIPT.findall(page)[0].splitlines():
        beginning = shown.removesuffix("...")
        assert any(line == shown or (shown != beginning and line.startswith(beginning))
                   for line in lines), shown  # fmt: skip


@pytest.mark.parametrize("code", examples("python"))
def test_scripts(code: str, folder: Path) -> None:
    (folder / "example.py").write_text(code)
    result = subprocess.run(
        [sys.executable, "example.py"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_the_profile_for_classes_is_what_students_get(folder: Path, home: Path) -> None:
    page = (DOCS / "teaching.md").read_text()
    [(_, profile)] = YAML.findall(page)
    path = home / "data" / "gpucluster" / "profiles" / "class.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(profile)
    [shown] = [place for place in places()["profiles"] if place["name"] == "class"]
    assert places()["problems"] == []
    assert (shown["default"], shown["final"]) == (True, True)
    assert shown["options"]["properties"] == {}
    assert shown["limits"] == {"workers": 2, "clusters": 1}
    [(_, cells)] = BLOCK.findall(page)
    run_notebook(cells)


@pytest.mark.skipif(
    not Path("/etc/profile.d/modules.sh").exists(), reason="needs root: Environment Modules"
)
def test_the_profile_with_modules_loads_one_into_workers(folder: Path, home: Path) -> None:
    shown = YAML.findall((DOCS / "your-software.md").read_text())
    [profile] = [text for _, text in shown if "module load cuda" in text]
    (folder / "cuda").write_text("#%Module1.0\nsetenv CUDA_ROOT /opt/cuda\n")
    path = home / "data" / "gpucluster" / "profiles" / "modules.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(profile.replace("module load", f"module use {folder}; module load"))
    with GPUCluster(profile="modules", workers=1) as cluster, cluster.get_client() as client:
        assert client.submit(os.getenv, "CUDA_ROOT").result() == "/opt/cuda"


@pytest.mark.parametrize("code", examples("notebook"))
def test_notebook_cells(code: str, folder: Path) -> None:
    run_notebook(code)


def run_notebook(code: str) -> None:
    """Run lines as cells; they must print the sum of the numbers up to 9."""
    cells = [nbformat.v4.new_code_cell(line) for line in code.splitlines()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3").execute()
    printed = [o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", [])]
    assert "45\n" in printed
