"""Plots of reports, with Matplotlib where it is installed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InvalidInput, UnsuitableEnvironment
from .report import DeviceResult, Report, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {"gpu": "#76b900", "cpu": "#4c72b0"}


def plot_devices(report: Report) -> Figure:
    """Draw a bar for each device of one report, with the runs as dots and the ceiling as a line."""
    figure, axes = _bars([(result.device.upper(), result) for result in report.results])
    for place, result in enumerate(report.results):
        amount = result.rate * result.wall_seconds
        rates = [amount / run.wall_seconds for run in result.runs]
        axes.plot([place] * len(rates), rates, "k.", alpha=0.5)
    axes.set_title(f"{report.workload} on {_crew([report])}")
    return figure


def plot_scaling(reports: Sequence[Report]) -> Figure:
    """Draw speed-up over the number of workers, against the ideal line.

    Each device's fewest workers are its reference, with the speed-up that ideal scaling from one
    worker would have given them.
    """
    figure, axes = _figure()
    counts = sorted({report.workers for report in reports})
    axes.plot(counts, counts, "k--", alpha=0.5, label="ideal")
    for device, color in COLORS.items():
        rates = {
            report.workers: result.rate
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
    axes.set_title(f"{reports[0].workload}: scaling to {_crew(reports)}")
    return figure


def plot_workers(report: Report) -> Figure:
    """Draw a bar for each worker of the fastest run on the first device."""
    result = report.results[0]
    figure, axes = _figure()
    for place, share in enumerate(result.shares):
        color = COLORS[result.device] if not share.slowed else "#c44e52"
        axes.bar(place, share.rate, 0.6, color=color)
    axes.set_xticks(range(len(result.shares)), [share.worker for share in result.shares])
    axes.tick_params("x", rotation=90 if len(result.shares) > 4 else 0)
    axes.set_ylabel(result.unit)
    axes.set_title(f"{report.workload}: each of {_crew([report])} alone")
    return figure


def plot_check_up(reports: Sequence[Report]) -> Figure:
    """Draw the rates of GB/s side by side, with their ceilings as lines."""
    shown = [
        (report.workload, result)
        for report in reports
        for result in report.results
        if result.unit == "GB/s"
    ]
    figure, axes = _bars(shown)
    # From the exchange between hosts to the memory of a card it is a factor of a thousand.
    axes.set_yscale("log")
    rates = [result.rate for _, result in shown]
    axes.set_ylim(min(rates) / 3, 3 * max(rates))
    axes.set_title(f"check-up of {_crew(reports)}")
    return figure


def write_plots(kind: str, reports: Sequence[Report], directory: Path) -> list[Path]:
    """Draw what suits the reports (``scaling``, ``check-up``, or one report) as PNG and SVG.

    Raises
    ------
    InvalidInput
        The directory cannot be made, or not be written to.
    """
    if kind == "scaling":
        figures = {f"{reports[0].workload}-scaling": plot_scaling(reports)}
    elif kind == "check-up":
        figures = {"check-up": plot_check_up(reports)}
    else:
        figures = {reports[0].workload: plot_devices(reports[0])}
    for report in reports:
        if len(report.results[0].shares) > 1 and (kind != "scaling" or report is reports[-1]):
            figures[f"{report.workload}-workers"] = plot_workers(report)
    files = {directory / f"{name}.{ending}": name for name in figures for ending in ("png", "svg")}
    with _writing_to(directory):
        for file, name in files.items():
            figures[name].savefig(file, dpi=120)
    return list(files)


def prepare_plots(directory: Path) -> None:
    """Make the directory, and check that Matplotlib is installed.

    Raises
    ------
    InvalidInput, UnsuitableEnvironment
        Plots could not be written there, or not be drawn.
    """
    _figure()
    with _writing_to(directory), tempfile.TemporaryFile(dir=directory):
        pass


@contextmanager
def _writing_to(directory: Path) -> Iterator[None]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        words = f"Cannot write plots to {directory}: {error.strerror}."
        hint = "Name another folder with --plots."
        raise InvalidInput(words, hint=hint) from None


def _crew(reports: Sequence[Report]) -> str:
    """Name the workers with their device: a plot of processors must not pass for one of GPUs."""
    most = max(reports, key=lambda report: report.workers)
    devices = {result.device for report in reports for result in report.results}
    kind = f"{devices.pop().upper()} worker" if len(devices) == 1 else "worker"
    return counted(most.workers, kind)


def _bars(shown: Sequence[tuple[str, DeviceResult]]) -> tuple[Figure, Axes]:
    """Draw a named bar for each result, with its ceiling as a line."""
    figure, axes = _figure()
    for place, (_, result) in enumerate(shown):
        bar = axes.bar(place, result.rate, 0.6, color=COLORS[result.device])
        axes.bar_label(bar, fmt=_written)
        if result.ceiling:
            axes.plot([place - 0.35, place + 0.35], [result.ceiling] * 2, "k-", label="ceiling")
    axes.set_xticks(range(len(shown)), [name for name, _ in shown])
    axes.set_xlim(-0.6, len(shown) - 0.4)
    axes.set_ylabel(shown[0][1].unit)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles[:1], labels[:1])
    return figure, axes


def _written(rate: float) -> str:
    """Write a rate as people read it: three digits, and large ones in full."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.3g}"


def _figure() -> tuple[Figure, Axes]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        hint = "Install matplotlib into this environment."
        raise UnsuitableEnvironment("Plots need Matplotlib.", hint=hint) from None
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    return figure, figure.add_subplot()
