"""The bundled benchmark: run it, report it, compare it.

Runs in the Python that has this package installed.
May import core and state.
"""

from __future__ import annotations

from .compare import compare, find_baseline, require_same_workload, save_baseline, verdict
from .family import WORKLOADS
from .measure import (
    Progress,
    check_up_table,
    progress_line,
    run_benchmark,
    run_check_up,
    run_scaling,
    scaling_table,
)
from .options import MODES, PRESETS, Options
from .plots import (
    plot_check_up,
    plot_devices,
    plot_scaling,
    plot_workers,
    prepare_plots,
    write_plots,
)
from .report import Report, document_lines, read_report, table, write_report, write_reports
from .workloads import BenchmarkFailed

__all__ = [
    "MODES",
    "PRESETS",
    "WORKLOADS",
    "BenchmarkFailed",
    "Options",
    "Progress",
    "Report",
    "check_up_table",
    "compare",
    "document_lines",
    "find_baseline",
    "plot_check_up",
    "plot_devices",
    "plot_scaling",
    "plot_workers",
    "prepare_plots",
    "progress_line",
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
