"""The bundled benchmark: run it, report it, compare it.

Runs in the Python that has this package installed.
May import core and state.
"""

from __future__ import annotations

from .compare import compare
from .measure import check_up_table, run_benchmark, run_check_up
from .options import Options
from .plots import plot_check_up, plot_devices, plot_scaling, plot_workers
from .report import document_lines, read_report, table, write_report
from .workloads import BenchmarkFailed

__all__ = [
    "BenchmarkFailed",
    "Options",
    "check_up_table",
    "compare",
    "document_lines",
    "plot_check_up",
    "plot_devices",
    "plot_scaling",
    "plot_workers",
    "read_report",
    "run_benchmark",
    "run_check_up",
    "table",
    "write_report",
]
