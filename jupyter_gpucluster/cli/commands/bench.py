"""``bench WORKLOAD``: run a benchmark on a cluster of its own, or on one that is there."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.cluster import Target
from ...core.errors import InvalidInput
from ...launch.request import Request
from ..arguments import options_from
from ..borrowing import borrowed
from ..output import Outcome, Text
from ..parsing import Parser, assignment, suggestion, whole_number
from ..places import default_profile, note_problems, refuse_gpus_on
from ..session import Session
from ..waiting import stop_quietly

if TYPE_CHECKING:
    from distributed import Client

    from ... import benchmark
    from ...state.view import ClusterView


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    from ... import benchmark

    parser.add_argument(
        "workload", metavar="WORKLOAD", help=f"one of {', '.join(benchmark.WORKLOADS)}"
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--profile", help="start a cluster of this profile, and stop it afterwards")
    place.add_argument("--cluster", metavar="NAME", help="use this cluster, and leave it running")
    workers = parser.add_mutually_exclusive_group()
    for option, what in (("--workers", "workers"), ("--gpus", "GPUs, each of them one worker")):
        workers.add_argument(
            option, metavar="N", type=whole_number(option, 1), help=f"run on this many {what}"
        )
    parser.add_argument(
        "--option",
        metavar="K=V",
        action="append",
        default=[],
        type=assignment,
        help="set an option of the profile; may be given several times",
    )
    benchmark.add_arguments(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Run it, report it, compare it."""
    from ... import benchmark

    if arguments.workload not in benchmark.WORKLOADS:
        raise InvalidInput(
            f"There is no workload {arguments.workload!r}.",
            hint=suggestion(arguments.workload, benchmark.WORKLOADS)
            or f"The workloads are: {', '.join(benchmark.WORKLOADS)}.",
        )
    asked_gpus = arguments.gpus
    arguments.workers = arguments.workers if asked_gpus is None else asked_gpus
    options = benchmark.options_from(arguments)
    earlier = [benchmark.read_report(path) for path in arguments.compare or ()]
    if len(earlier) == 2:
        text = "\n".join(benchmark.compare(*earlier).table())
        return Outcome(blocks=(Text(text, code=True),))
    kind = "scaling" if arguments.scaling else arguments.workload
    if kind in ("scaling", "check-up"):
        _refuse_single(arguments, kind)
    # What cannot be compared or drawn is refused now, not after a run that may take hours.
    usual = benchmark.read_report(Path(arguments.against)) if arguments.against else None
    for report in earlier:
        benchmark.require_same_workload(report.workload, arguments.workload)
    if arguments.plots is not None:
        benchmark.prepare_plots(arguments.plots)
    if kind in ("scaling", "check-up"):
        with _cluster(arguments, session) as (view, start_seconds):
            reports = _series(view, options, arguments, start_seconds)
        lines = _series_lines(kind, reports)
        if arguments.json is not None:
            benchmark.write_reports(kind, reports, arguments.json)
    else:
        with _cluster(arguments, session) as (view, start_seconds):
            report = _measure(view, options, start_seconds)
        reports = [_judged(report, usual, kept=arguments.against == "")]
        lines = _lines(reports[0])
        if arguments.json is not None:
            benchmark.write_report(reports[0], arguments.json)
        if earlier:
            lines += ["", *benchmark.compare(earlier[0], reports[0]).table()]
        if arguments.save_baseline:
            lines += ["", f"kept as the baseline: {benchmark.save_baseline(reports[0])}"]
    if arguments.plots is not None:
        lines += ["", *map(str, benchmark.write_plots(kind, reports, arguments.plots))]
    return Outcome(blocks=(Text("\n".join(lines), code=True),))


def _refuse_single(arguments: argparse.Namespace, kind: str) -> None:
    for name in ("compare", "save_baseline", "against"):
        if getattr(arguments, name) not in (None, False):
            raise InvalidInput(
                f"--{name.replace('_', '-')} is for one workload, not for {kind}.", detail=name
            )


def _judged(
    report: benchmark.Report, usual: benchmark.Report | None, *, kept: bool
) -> benchmark.Report:
    """Add what is slower than it should be, or than what is usual: given, or kept as such."""
    from ... import benchmark

    missing: tuple[str, ...] = ()
    if kept:
        try:
            usual = benchmark.find_baseline(report)
        except InvalidInput as error:
            # Only the devices that a run found name the file; the run itself is worth keeping.
            missing = (f"nothing was compared: {error.message} {error.hint}",)
    return replace(report, verdict=(*benchmark.verdict(report, usual), *missing))


def _lines(report: benchmark.Report) -> list[str]:
    from ... import benchmark

    published = [*benchmark.document_lines(report), ""] if report.workload == "sum" else []
    return [*published, *benchmark.table(report)]


def _series_lines(kind: str, reports: list[benchmark.Report]) -> list[str]:
    from ... import benchmark

    if kind == "check-up":
        lines = [line for report in reports for line in (*benchmark.table(report), "")]
        return [*lines, *benchmark.check_up_table(reports)]
    return [
        *benchmark.table(reports[-1]),
        "",
        *benchmark.scaling_table(reports),
    ]


@contextmanager
def _cluster(
    arguments: argparse.Namespace, session: Session
) -> Iterator[tuple[ClusterView, float | None]]:
    """Give a cluster, and the seconds that its start took where it was started for this."""
    clusters = session.clusters
    if arguments.cluster is not None:
        with borrowed(arguments.cluster, arguments.workers, session) as view:
            yield view, None
        return
    profile = arguments.profile or default_profile()
    refuse_gpus_on(profile, arguments)
    note_problems(profile, session)
    target = None if arguments.workers is None else Target(arguments.workers, arguments.workers)
    began = time.monotonic()
    # This process is the client, so its own Python is the one that fits.
    options = options_from(arguments)
    view = clusters.start(
        Request(profile, target=target, options=options, python=sys.executable, owned=True)
    )
    try:
        with session.progress() as progress:
            view = clusters.wait_ready(view.id, progress=progress)
        yield view, time.monotonic() - began
    finally:
        stop_quietly(view, session)


def _measure(
    view: ClusterView, options: benchmark.Options, start_seconds: float | None
) -> benchmark.Report:
    from ... import benchmark

    with _connected(view) as (client, bar):
        return benchmark.run_benchmark(client, options, progress=bar, start_seconds=start_seconds)


def _series(
    view: ClusterView,
    options: benchmark.Options,
    arguments: argparse.Namespace,
    start_seconds: float | None,
) -> list[benchmark.Report]:
    from ... import benchmark

    with _connected(view) as (client, bar):
        if arguments.scaling:
            return benchmark.run_scaling(
                client,
                options,
                weak=arguments.scaling == "weak",
                progress=bar,
                start_seconds=start_seconds,
            )
        return benchmark.run_check_up(
            client,
            device=options.device,
            workers=options.workers,
            progress=bar,
            start_seconds=start_seconds,
        )


@contextmanager
def _connected(view: ClusterView) -> Iterator[tuple[Client, benchmark.ProgressBar]]:
    from ... import benchmark
    from ...client.connect import connect

    bar = benchmark.ProgressBar(sys.stderr)
    try:
        with connect(view.id) as client:
            yield client, bar
    finally:
        bar.close()
