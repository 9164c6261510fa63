"""``bench WORKLOAD``: run a benchmark on a cluster of its own, or on one that runs."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...benchmark.compare import (
    compare,
    find_baseline,
    require_same_workload,
    save_baseline,
    verdict,
)
from ...benchmark.family import WORKLOADS
from ...benchmark.measure import (
    check_up_table,
    progress_line,
    run_benchmark,
    run_check_up,
    run_scaling,
    scaling_table,
)
from ...benchmark.options import MODES, PRESETS, Options
from ...benchmark.plots import prepare_plots, write_plots
from ...benchmark.report import Report, document_lines, read_report, table, write_reports
from ...client.connect import connect
from ...core.errors import InvalidInput
from ..arguments import (
    Parser,
    add_options,
    add_workers,
    default_profile,
    request_from,
    whole_number,
)
from ..output import Outcome, Session, Text
from ..waiting import borrowed, own_cluster

if TYPE_CHECKING:
    from ...state.view import ClusterView

SERIES = ("scaling", "check-up")
"""Kinds of several runs."""


def add_bench(parser: Parser) -> None:
    """Add the arguments of ``bench``."""
    names = f"one of {', '.join(WORKLOADS)}"
    parser.add_argument("workload", metavar="WORKLOAD", choices=WORKLOADS, help=names)
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--profile", help="start a cluster of this profile, and stop it afterwards")
    place.add_argument("--cluster", metavar="NAME", help="use this cluster, and leave it running")
    add_workers(parser, least=1)
    add_options(parser)
    # This process is the client, so its own Python is the one that fits.
    parser.set_defaults(adapt=None, python=sys.executable, kernel="", allocation="")
    add = parser.add_argument_group("size").add_argument
    shape = "rows and columns of the array (default: some seconds of work for the workers)"
    add("--shape", metavar="N[xM]", type=array_size, help=shape)
    chunks = "rows and columns of a chunk (default: as the workers' memory allows)"
    add("--chunks", metavar="N[xM]", type=array_size, help=chunks)
    presets = (f"{name} ({rows}x{columns})" for name, ((rows, columns), _) in PRESETS.items())
    add("--preset", metavar="NAME", help=f"a published size: {', '.join(presets)}")
    add = parser.add_argument_group("run").add_argument
    mode = "sum: as published, or as fast as the devices can (default: peak on GPUs)"
    add("--mode", metavar="|".join(MODES), help=mode)
    device = "the device that computes; both gives their ratio (default: GPUs if there are any)"
    add("--device", metavar="gpu|cpu|both", help=device)
    repeats = "runs on each device; the fastest counts (default: 1)"
    add("--repeats", metavar="N", type=whole_number("--repeats", 1), default=1, help=repeats)
    scaling = "run on 1, 2, 4 ... workers: strong = the same work, weak = as much for each worker"
    add("--scaling", choices=("strong", "weak"), help=scaling)
    add = parser.add_argument_group("result").add_argument
    add("--json", metavar="FILE", type=Path, help="write the report to FILE")
    files = "compare this run with the report in FILE; two files are compared without a run"
    add("--compare", metavar=("FILE", "FILE"), nargs="+", default=[], type=Path, help=files)
    add("--plots", metavar="DIR", type=Path, help="draw the report into DIR, as PNG and SVG")
    add("--save-baseline", action="store_true", help="keep the report as baseline for --against")
    against = "report everything slower than in FILE, or than in the kept baseline"
    add("--against", metavar="FILE", nargs="?", const="", help=against)


def array_size(text: str) -> tuple[int, int]:
    """Read ``N`` (square) or ``NxM``; blanks and ``_`` may group digits."""
    match = re.fullmatch(r"([0-9]{1,12})(?:x([0-9]{1,12}))?", re.sub(r"[ _]", "", text.lower()))
    if not match or 0 in (int(part) for part in match.groups() if part):
        hint = "For example --shape 20000 (square) or --shape 20000x10000."
        raise InvalidInput(f"A size is N or NxM, 1 or more, not {text!r}.", hint=hint)
    rows, columns = match.groups()
    return int(rows), int(columns or rows)


def options_of(arguments: argparse.Namespace) -> Options:
    """Return the choices for the workload.

    Raises
    ------
    InvalidInput
        A bad value, or a report that could not be written after the run.
    """
    workload, report = arguments.workload, arguments.json
    if report is not None and (report.is_dir() or not report.parent.is_dir()):
        hint = "Give a file in a folder that exists."
        raise InvalidInput(f"--json: cannot write {report}.", hint=hint)
    if len(arguments.compare) > 2:
        hint = "Give the earlier report first."
        raise InvalidInput("--compare takes one or two files.", hint=hint)
    chosen = ("shape", "chunks", "preset", "mode", "device", "repeats")
    return Options(
        **{name: getattr(arguments, name) for name in chosen},
        workers=arguments.workers if arguments.gpus is None else arguments.gpus,
        workload="sum" if workload == "check-up" else workload,
    )


def run_bench(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Run a benchmark, report it, compare it."""
    options = options_of(arguments)
    earlier = [read_report(path) for path in arguments.compare]
    if len(earlier) == 2:
        text = "\n".join(compare(*earlier))
        return Outcome(blocks=(Text(text, code=True),))
    kind = "scaling" if arguments.scaling else arguments.workload
    if kind in SERIES:
        _refuse_single(arguments, kind)
    # A report that cannot be compared or drawn is refused now, not after a run of hours.
    usual = read_report(Path(arguments.against)) if arguments.against else None
    for report in earlier:
        require_same_workload(report.workload, arguments.workload)
    if arguments.plots is not None:
        prepare_plots(arguments.plots)
    with (
        _cluster(arguments, options.workers, session) as (view, start_seconds),
        connect(view.id) as client,
        session.live_line() as show,
    ):
        run: dict[str, Any] = {"start_seconds": start_seconds}
        if sys.stderr.isatty():
            run["progress"] = lambda progress: show(progress_line(progress))
        if kind == "scaling":
            reports = run_scaling(client, options, weak=arguments.scaling == "weak", **run)
        elif kind == "check-up":
            reports = run_check_up(client, device=options.device, workers=options.workers, **run)
        else:
            reports = [run_benchmark(client, options, **run)]
    if kind not in SERIES:
        reports = [_judged(reports[0], usual, kept=arguments.against == "")]
    lines = _lines(kind, reports)
    for report in earlier:
        lines += ["", *compare(report, reports[0])]
    if arguments.save_baseline:
        lines += ["", f"kept as the baseline: {save_baseline(reports[0])}"]
    if arguments.json is not None:
        write_reports(kind, reports, arguments.json)
    if arguments.plots is not None:
        lines += ["", *map(str, write_plots(kind, reports, arguments.plots))]
    return Outcome(blocks=(Text("\n".join(lines), code=True),))


def _refuse_single(arguments: argparse.Namespace, kind: str) -> None:
    for name in ("compare", "save_baseline", "against"):
        if getattr(arguments, name) not in (None, False, []):
            raise InvalidInput(
                f"--{name.replace('_', '-')} is for one workload, not for {kind}.", detail=name
            )


def _judged(report: Report, usual: Report | None, *, kept: bool) -> Report:
    """Add the verdict, against a given report, or against the kept baseline."""
    missing: tuple[str, ...] = ()
    if kept:
        try:
            usual = find_baseline(report)
        except InvalidInput as error:
            # Only the devices that a run found name the file; the run itself is worth keeping.
            missing = (f"nothing was compared: {error.message} {error.hint}",)
    return replace(report, verdict=(*verdict(report, usual), *missing))


def _lines(kind: str, reports: list[Report]) -> list[str]:
    if kind == "check-up":
        lines = [line for report in reports for line in (*table(report), "")]
        return [*lines, *check_up_table(reports)]
    if kind == "scaling":
        return [*table(reports[-1]), "", *scaling_table(reports)]
    published = [*document_lines(reports[0]), ""] if kind == "sum" else []
    return [*published, *table(reports[0])]


@contextmanager
def _cluster(
    arguments: argparse.Namespace, workers: int | None, session: Session
) -> Iterator[tuple[ClusterView, float | None]]:
    """Yield a cluster, and the seconds of its start if it was started for this run."""
    if arguments.cluster is not None:
        yield borrowed(arguments.cluster, workers, session), None
        return
    profile = arguments.profile or default_profile()
    request = request_from(arguments, profile, session, owned=True)
    began = time.monotonic()
    with own_cluster(request, session) as view:
        yield view, time.monotonic() - began
