"""Plots of reports, with Matplotlib where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InvalidInput, UnsuitableEnvironment
from .report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"gpu": "#76b900", "cpu": "#4c72b0"}


def plot_devices(report: Report) -> Figure:
    """Draw a bar of GB/s for each device of one report, with the runs as dots."""
    figure, axes = _figure()
    for place, result in enumerate(report.results):
        rates = [report.nbytes / 1e9 / run.wall_seconds for run in result.runs]
        bar = axes.bar(place, result.gigabytes_per_second, 0.6, color=COLORS[result.device])
        axes.bar_label(bar, fmt="%.3g")
        axes.plot([place] * len(rates), rates, "k.", alpha=0.5)
    axes.set_xticks(
        range(len(report.results)), [result.device.upper() for result in report.results]
    )
    axes.set_xlim(-0.6, len(report.results) - 0.4)
    axes.set_ylabel("GB/s")
    axes.set_title(f"{report.workload} on {report.workers} workers")
    return figure


def plot_scaling(reports: Sequence[Report]) -> Figure:
    """Draw speed-up over the number of workers, against the ideal line.

    Each device's fewest workers are its reference, with the speed-up that ideal scaling from one
    worker would have given them.
    """
    if not reports:
        raise InvalidInput("There are no reports to plot.", hint="Run the benchmark first.")
    figure, axes = _figure()
    counts = sorted({report.workers for report in reports})
    axes.plot(counts, counts, "k--", alpha=0.5, label="ideal")
    for device, color in COLORS.items():
        rates = {
            report.workers: result.gigabytes_per_second
            for report in reports
            for result in report.results
            if result.device == device
        }
        if rates:
            least = min(rates)
            places = sorted(rates)
            speed_ups = [least * rates[count] / rates[least] for count in places]
            axes.plot(places, speed_ups, "o-", color=color, label=device.upper())
    axes.set_xticks(counts)
    axes.set_xlabel("workers")
    axes.set_ylabel("speed-up")
    axes.legend()
    axes.set_title(f"{reports[0].workload}: scaling")
    return figure


def _figure() -> tuple[Figure, Axes]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsuitableEnvironment(
            "Plots need Matplotlib.", hint="Install matplotlib into this environment."
        ) from None
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    return figure, figure.add_subplot()
