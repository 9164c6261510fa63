"""The notebook of the check-up is clean, and runs on a cluster of CPU workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

import jupyter_gpucluster

NOTEBOOK = Path(jupyter_gpucluster.__file__).parent / "notebooks" / "gpu_checkup.ipynb"


@pytest.fixture
def notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=nbformat.NO_CONVERT)


def test_it_is_valid_has_a_title_and_carries_no_outputs(notebook: Any) -> None:
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# GPU check-up\n")
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.slow
def test_it_runs_on_processors_and_says_so(
    notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbclient import NotebookClient

    from jupyter_gpucluster.clusters import Clusters

    monkeypatch.setenv("PYTHONPATH", os.fspath(NOTEBOOK.parent.parent.parent))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    text = "".join(output.get("text", "") for output in outputs)
    assert "run on processors, smaller than on GPUs" in text
    assert "verdict: " in text
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert Clusters().list() == []
