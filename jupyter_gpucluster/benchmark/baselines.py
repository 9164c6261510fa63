"""What a site measured when all was well, kept to compare later runs with."""

from __future__ import annotations

import re
from pathlib import Path

from ..core.errors import InvalidInput
from .report import Report, read_report, write_report


def baselines_directory() -> Path:
    """Return where baselines are kept: one file for each workload, mode and kind of device."""
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "gpucluster" / "baselines"


def baseline_file(report: Report, directory: Path | None = None) -> Path:
    """Return the file for a report; rates are compared per worker, so it names no number."""
    names = "-".join(sorted({name for result in report.results for name in result.names}))
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{report.workload}-{report.mode}-{names}").strip("-")
    return (directory or baselines_directory()) / f"{words.lower()}.json"


def save_baseline(report: Report, directory: Path | None = None) -> Path:
    """Keep a report as the baseline of its kind; an earlier one is replaced."""
    path = baseline_file(report, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_report(report, path)
    return path


def find_baseline(report: Report, directory: Path | None = None) -> Report:
    """Return the baseline of a report's kind.

    Raises
    ------
    InvalidInput
        None was kept, or it cannot be read.
    """
    path = baseline_file(report, directory)
    if not path.is_file():
        raise InvalidInput(
            f"There is no baseline of {report.workload} ({report.mode}) on these devices.",
            hint="Keep one with --save-baseline, or name a report: --against FILE.",
        )
    return read_report(path)
