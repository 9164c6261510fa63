"""Plots hold the figures of the reports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_gpucluster.benchmark import plot_devices, plot_scaling
from jupyter_gpucluster.core.errors import UnsuitableEnvironment
from tests.benchmark.reports import DEEPOPS, THETAGPU, a_report


def test_bars_are_the_rates_of_the_devices(tmp_path: Path) -> None:
    figure = plot_devices(a_report(THETAGPU, 8, {"gpu": 0.0125, "cpu": 80.0}))
    (axes,) = figure.axes
    heights = [bar.get_height() for bar in axes.patches]  # type: ignore[attr-defined]
    assert heights == pytest.approx([6400, 1])
    assert {"6,400", "1"} <= {text.get_text() for text in axes.texts}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["GPU", "CPU"]
    figure.savefig(tmp_path / "devices.svg")


def test_the_scaling_curve_starts_at_the_fewest_workers(tmp_path: Path) -> None:
    figure = plot_scaling(
        [
            a_report(DEEPOPS, workers, {"gpu": seconds})
            for workers, seconds in ((4, 50.0), (2, 80.0))
        ]
    )
    (axes,) = figure.axes
    ideal, gpu = axes.lines
    assert list(map(float, ideal.get_ydata())) == [2.0, 4.0]  # type: ignore[arg-type]
    assert list(map(float, gpu.get_ydata())) == [2.0, 3.2]  # type: ignore[arg-type]
    figure.savefig(tmp_path / "scaling.svg")


def test_a_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsuitableEnvironment, match="Plots need Matplotlib"):
        plot_devices(a_report(THETAGPU, 8, {"gpu": 4.0}))
