"""The bundled benchmark: run it, report it, compare it."""

from __future__ import annotations

from .compare import Comparison, compare
from .measure import Progress, run_benchmark
from .options import PRESETS, SumOptions, add_arguments, options_from
from .plots import plot_devices, plot_scaling
from .progress import ProgressBar
from .report import Report, document_lines, read_report, table, write_report
from .workloads import BenchmarkFailed

__all__ = [
    "PRESETS",
    "BenchmarkFailed",
    "Comparison",
    "Progress",
    "ProgressBar",
    "Report",
    "SumOptions",
    "add_arguments",
    "compare",
    "document_lines",
    "options_from",
    "plot_devices",
    "plot_scaling",
    "read_report",
    "run_benchmark",
    "table",
    "write_report",
]
