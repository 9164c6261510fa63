"""The bundled notebook is clean, and runs on a cluster of CPU workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

import jupyter_gpucluster
from jupyter_gpucluster.benchmark import PRESETS, SumOptions, read_report

NOTEBOOK = Path(jupyter_gpucluster.__file__).parent / "notebooks" / "parallel_sum.ipynb"


@pytest.fixture
def notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=nbformat.NO_CONVERT)


def parameters_of(notebook: Any) -> Any:
    (cell,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    return cell


def test_it_is_valid_and_carries_no_outputs(notebook: Any) -> None:
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)


def test_its_first_line_is_its_title(notebook: Any) -> None:
    assert notebook.cells[0].source.startswith("# Parallel sum\n")


def test_its_parameters_are_options_of_the_benchmark(notebook: Any) -> None:
    values: dict[str, Any] = {}
    exec(parameters_of(notebook).source, values)  # noqa: S102  # the package's own notebook
    SumOptions(**{name: values[name] for name in ("preset", "shape", "chunks", "repeats")})
    assert all(f'"{name}"' in parameters_of(notebook).source for name in PRESETS)


def run(notebook: Any, folder: Path, **changes: Any) -> str:
    """Execute with some parameters changed; returns all that it printed."""
    from nbclient import NotebookClient

    cell = parameters_of(notebook)
    cell.source += "".join(f"\n{name} = {value!r}" for name, value in changes.items())
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()
    return "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )


@pytest.fixture
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(NOTEBOOK.parent.parent.parent))


@pytest.mark.slow
@pytest.mark.usefixtures("_importable")
def test_it_starts_a_cluster_measures_it_and_stops_it(notebook: Any, tmp_path: Path) -> None:
    from jupyter_gpucluster.clusters import Clusters

    text = run(notebook, tmp_path, report_file="report.json")
    assert "Wall time create data + computation time: " in text
    assert "1 worker earlier, 2 later" in text
    plots = [
        cell.id
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert plots == ["devices", "scaling"]
    report = read_report(tmp_path / "report.json")
    assert report.workers == 2
    assert report.start_seconds is not None
    assert Clusters().list() == []


@pytest.mark.slow
@pytest.mark.usefixtures("_importable")
def test_it_leaves_a_cluster_that_was_there_running(notebook: Any, tmp_path: Path) -> None:
    from jupyter_gpucluster.clusters import Clusters
    from jupyter_gpucluster.core.cluster import Phase, Target

    clusters = Clusters()
    clusters.start("local", name="mine", target=Target(1, 1))
    try:
        run(notebook, tmp_path, cluster_name="mine", workers=1, shape=(400, 400), chunks=(100, 100))
        assert clusters.get("mine").phase is Phase.RUNNING
    finally:
        clusters.stop("mine")
        clusters.wait_stopped("mine", timeout=30)
