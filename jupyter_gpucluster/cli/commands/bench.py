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

from ... import benchmark
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
from ..waiting import borrowed, stop_quietly

if TYPE_CHECKING:
    from ...state.view import ClusterView

SERIES = ("scaling", "check-up")
"""Kinds of several runs."""


def add_bench(parser: Parser) -> None:
    """Add the arguments of ``bench``."""
    parser.add_argument(
        "workload",
        metavar="WORKLOAD",
        choices=benchmark.WORKLOADS,
        help=f"one of {', '.join(benchmark.WORKLOADS)}",
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--profile", help="start a cluster of this profile, and stop it afterwards")
    place.add_argument("--cluster", metavar="NAME", help="use this cluster, and leave it running")
    add_workers(parser, least=1)
    add_options(parser)
    # This process is the client, so its own Python is the one that fits.
    parser.set_defaults(adapt=None, python=sys.executable, kernel="", allocation="")
    add = parser.add_argument_group("size").add_argument
    add(
        "--shape",
        metavar="N[xM]",
        type=array_size("--shape"),
        help="rows and columns of the array (default: some seconds of work for the workers)",
    )
    add(
        "--chunks",
        metavar="N[xM]",
        type=array_size("--chunks"),
        help="rows and columns of a chunk (default: as the workers' memory allows)",
    )
    presets = (f"{name} ({p.shape[0]}x{p.shape[1]})" for name, p in benchmark.PRESETS.items())
    add("--preset", metavar="NAME", help=f"a published size: {', '.join(presets)}")
    add = parser.add_argument_group("run").add_argument
    add(
        "--mode",
        metavar="|".join(benchmark.MODES),
        help="sum: documents = the published programs' own graph, generator and chunks; "
        "peak = as fast as the devices can (default: peak on GPUs, else documents)",
    )
    add(
        "--device",
        metavar="gpu|cpu|both",
        help="the device that computes; both gives their ratio on the same workers "
        "(default: gpu if the workers have GPUs, else cpu)",
    )
    add(
        "--repeats",
        metavar="N",
        type=whole_number("--repeats", 1),
        default=1,
        help="runs on each device; the fastest counts (default: 1)",
    )
    add(
        "--scaling",
        choices=("strong", "weak"),
        help="run on 1, 2, 4 ... workers: strong = the same work, weak = as much for each worker",
    )
    add = parser.add_argument_group("result").add_argument
    add("--json", metavar="FILE", type=Path, help="write the report to FILE")
    add(
        "--compare",
        metavar=("FILE", "FILE"),
        nargs="+",
        default=[],
        type=Path,
        help="compare this run with the report in FILE; two files are compared without a run",
    )
    add("--plots", metavar="DIR", type=Path, help="draw the report into DIR, as PNG and SVG")
    add("--save-baseline", action="store_true", help="keep the report as baseline for --against")
    add(
        "--against",
        metavar="FILE",
        nargs="?",
        const="",
        help="report everything slower than in FILE, or than in the kept baseline",
    )


def array_size(option: str) -> Any:
    """Return an argparse type: ``N`` (square) or ``NxM``; blanks and ``_`` may group digits."""

    def read(text: str) -> tuple[int, int]:
        match = re.fullmatch(r"([0-9]{1,12})(?:x([0-9]{1,12}))?", re.sub(r"[ _]", "", text.lower()))
        if not match or 0 in (int(part) for part in match.groups() if part):
            raise InvalidInput(
                f"{option} takes N or NxM, 1 or more, not {text!r}.",
                hint=f"For example {option} 20000 (square) or {option} 20000x10000.",
            )
        rows, columns = match.groups()
        return int(rows), int(columns or rows)

    return read


def options_of(arguments: argparse.Namespace) -> benchmark.Options:
    """Return the choices for the workload.

    Raises
    ------
    InvalidInput
        A bad value, or a report that could not be written after the run.
    """
    workload, report = arguments.workload, arguments.json
    if report is not None and (report.is_dir() or not report.parent.is_dir()):
        raise InvalidInput(
            f"--json: cannot write {report}.", hint="Give a file in a folder that exists."
        )
    if len(arguments.compare) > 2:
        raise InvalidInput(
            "--compare takes one or two files.", hint="Give the earlier report first."
        )
    chosen = ("shape", "chunks", "preset", "mode", "device", "repeats")
    return benchmark.Options(
        **{name: getattr(arguments, name) for name in chosen},
        workers=arguments.workers if arguments.gpus is None else arguments.gpus,
        workload="sum" if workload == "check-up" else workload,
    )


def run_bench(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Run a benchmark, report it, compare it."""
    options = options_of(arguments)
    earlier = [benchmark.read_report(path) for path in arguments.compare]
    if len(earlier) == 2:
        text = "\n".join(benchmark.compare(*earlier))
        return Outcome(blocks=(Text(text, code=True),))
    kind = "scaling" if arguments.scaling else arguments.workload
    if kind in SERIES:
        _refuse_single(arguments, kind)
    # A report that cannot be compared or drawn is refused now, not after a run of hours.
    usual = benchmark.read_report(Path(arguments.against)) if arguments.against else None
    for report in earlier:
        benchmark.require_same_workload(report.workload, arguments.workload)
    if arguments.plots is not None:
        benchmark.prepare_plots(arguments.plots)
    with (
        _cluster(arguments, options.workers, session) as (view, start_seconds),
        connect(view.id) as client,
        session.live_line() as show,
    ):
        run: dict[str, Any] = {"start_seconds": start_seconds}
        if sys.stderr.isatty():
            run["progress"] = lambda progress: show(benchmark.progress_line(progress))
        if kind == "scaling":
            reports = benchmark.run_scaling(
                client, options, weak=arguments.scaling == "weak", **run
            )
        elif kind == "check-up":
            reports = benchmark.run_check_up(
                client, device=options.device, workers=options.workers, **run
            )
        else:
            reports = [benchmark.run_benchmark(client, options, **run)]
    if kind in SERIES:
        lines = _series_lines(kind, reports)
        if arguments.json is not None:
            benchmark.write_reports(kind, reports, arguments.json)
    else:
        reports = [_judged(reports[0], usual, kept=arguments.against == "")]
        lines = _lines(reports[0])
        if arguments.json is not None:
            benchmark.write_report(reports[0], arguments.json)
        if earlier:
            lines += ["", *benchmark.compare(earlier[0], reports[0])]
        if arguments.save_baseline:
            lines += ["", f"kept as the baseline: {benchmark.save_baseline(reports[0])}"]
    if arguments.plots is not None:
        lines += ["", *map(str, benchmark.write_plots(kind, reports, arguments.plots))]
    return Outcome(blocks=(Text("\n".join(lines), code=True),))


def _refuse_single(arguments: argparse.Namespace, kind: str) -> None:
    for name in ("compare", "save_baseline", "against"):
        if getattr(arguments, name) not in (None, False, []):
            raise InvalidInput(
                f"--{name.replace('_', '-')} is for one workload, not for {kind}.", detail=name
            )


def _judged(
    report: benchmark.Report, usual: benchmark.Report | None, *, kept: bool
) -> benchmark.Report:
    """Add the verdict, against a given report, or against the kept baseline."""
    missing: tuple[str, ...] = ()
    if kept:
        try:
            usual = benchmark.find_baseline(report)
        except InvalidInput as error:
            # Only the devices that a run found name the file; the run itself is worth keeping.
            missing = (f"nothing was compared: {error.message} {error.hint}",)
    return replace(report, verdict=(*benchmark.verdict(report, usual), *missing))


def _lines(report: benchmark.Report) -> list[str]:
    published = [*benchmark.document_lines(report), ""] if report.workload == "sum" else []
    return [*published, *benchmark.table(report)]


def _series_lines(kind: str, reports: list[benchmark.Report]) -> list[str]:
    if kind == "check-up":
        lines = [line for report in reports for line in (*benchmark.table(report), "")]
        return [*lines, *benchmark.check_up_table(reports)]
    return [*benchmark.table(reports[-1]), "", *benchmark.scaling_table(reports)]


@contextmanager
def _cluster(
    arguments: argparse.Namespace, workers: int | None, session: Session
) -> Iterator[tuple[ClusterView, float | None]]:
    """Yield a cluster, and the seconds of its start if it was started for this run."""
    clusters = session.clusters
    if arguments.cluster is not None:
        with borrowed(arguments.cluster, workers, session) as view:
            yield view, None
        return
    profile = arguments.profile or default_profile()
    request = request_from(arguments, profile, session, owned=True)
    began = time.monotonic()
    view = clusters.start(request)
    try:
        with session.progress() as progress:
            view = clusters.wait_ready(view.id, progress=progress)
        yield view, time.monotonic() - began
    finally:
        stop_quietly(view, session)
