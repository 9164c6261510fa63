"""The bundled notebooks are clean, and run on clusters of CPU workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

import jupyter_gpucluster
from jupyter_gpucluster.benchmark import Options, read_report
from jupyter_gpucluster.benchmark.options import PRESETS
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target

FOLDER = Path(jupyter_gpucluster.__file__).parent / "notebooks"
TITLES = {"parallel_sum": "# Parallel sum\n", "gpu_checkup": "# GPU check-up\n"}

Run = Callable[..., list[Any]]


def notebook(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=nbformat.NO_CONVERT)


def parameters_of(book: Any) -> Any:
    (cell,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", ())]
    return cell


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that executes a notebook with some parameters changed."""
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", os.fspath(FOLDER.parent.parent))

    def execute(name: str, **changes: Any) -> list[Any]:
        book = notebook(name)
        if changes:
            lines = (f"\n{name} = {value!r}" for name, value in changes.items())
            parameters_of(book).source += "".join(lines)
        NotebookClient(book, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
        return [output for cell in book.cells for output in cell.get("outputs", ())]

    return execute


def text_of(outputs: list[Any]) -> str:
    return "".join(output.get("text", "") for output in outputs)


def plots_in(outputs: list[Any]) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("name", TITLES)
def test_it_is_valid_has_a_title_and_carries_no_outputs(name: str) -> None:
    book = notebook(name)
    nbformat.validate(book)
    assert (book.nbformat, book.nbformat_minor) == (4, 5)
    assert book.cells[0].source.startswith(TITLES[name])
    for cell in book.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    ids = [cell.id for cell in book.cells]
    assert len(set(ids)) == len(ids)


def test_the_parameters_of_the_sum_are_options_of_the_benchmark() -> None:
    source = parameters_of(notebook("parallel_sum")).source
    values: dict[str, Any] = {}
    exec(source, values)  # noqa: S102  # the package's own notebook
    Options(**{name: values[name] for name in ("preset", "shape", "chunks", "repeats")})
    assert all(f'"{name}"' in source for name in PRESETS)


@pytest.mark.slow
def test_the_sum_starts_a_cluster_measures_it_and_stops_it(run: Run, tmp_path: Path) -> None:
    outputs = run("parallel_sum", report_file="report.json")
    assert "Wall time create data + computation time: " in text_of(outputs)
    assert "1 worker earlier, 2 later" in text_of(outputs)
    assert plots_in(outputs) == 2
    report = read_report(tmp_path / "report.json")
    assert report.workers == 2
    assert report.start_seconds is not None
    assert Clusters().list() == []


@pytest.mark.slow
def test_the_sum_leaves_a_cluster_that_was_there_running(run: Run) -> None:
    clusters = Clusters()
    clusters.start("local", name="mine", target=Target(1, 1))
    try:
        size = {"shape": (400, 400), "chunks": (100, 100)}
        run("parallel_sum", cluster_name="mine", workers=1, **size)
        assert clusters.get("mine").phase is Phase.RUNNING
    finally:
        clusters.stop("mine")
        clusters.wait_stopped("mine", timeout=30)


@pytest.mark.slow
def test_the_check_up_runs_on_processors_and_says_so(run: Run) -> None:
    outputs = run("gpu_checkup")
    assert "run on processors, smaller than on GPUs" in text_of(outputs)
    assert "verdict: " in text_of(outputs)
    assert plots_in(outputs) == 2
    assert Clusters().list() == []
