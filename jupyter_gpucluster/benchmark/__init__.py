"""The bundled benchmark: run it, report it, compare it.

Runs in the Python that has this package installed.
May import core.
"""

from __future__ import annotations

from .compare import Comparison, compare, require_same_workload
from .family import WORKLOADS, FamilyOptions
from .measure import Progress, ProgressBar, run_benchmark
from .options import MODES, PRESETS, Options, SumOptions
from .plots import (
    plot_check_up,
    plot_devices,
    plot_scaling,
    plot_workers,
    prepare_plots,
    write_plots,
)
from .report import Report, document_lines, read_report, table, write_report, write_reports
from .series import check_up_table, run_check_up, run_scaling, scaling_table
from .verdict import find_baseline, save_baseline, verdict
from .workloads import BenchmarkFailed

__all__ = [
    "MODES",
    "PRESETS",
    "WORKLOADS",
    "BenchmarkFailed",
    "Comparison",
    "FamilyOptions",
    "Options",
    "Progress",
    "ProgressBar",
    "Report",
    "SumOptions",
    "check_up_table",
    "compare",
    "document_lines",
    "find_baseline",
    "plot_check_up",
    "plot_devices",
    "plot_scaling",
    "plot_workers",
    "prepare_plots",
    "read_report",
    "require_same_workload",
    "run_benchmark",
    "run_check_up",
    "run_scaling",
    "save_baseline",
    "scaling_table",
    "table",
    "verdict",
    "write_plots",
    "write_report",
    "write_reports",
]
