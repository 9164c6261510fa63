"""``bench WORKLOAD``: run a benchmark on a cluster of its own, or on one that is there."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...errors import InvalidInput
from ...records import Target
from ..arguments import options_from
from ..output import Outcome, Text
from ..parsing import Parser, assignment, suggestion, whole_number
from ..places import default_profile, refuse_gpus_on
from ..session import Session
from ..waiting import stop_quietly

if TYPE_CHECKING:
    from ... import benchmark
    from ...views import ClusterView

WORKLOADS = ("sum",)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    from ... import benchmark

    parser.add_argument("workload", metavar="WORKLOAD", help=f"one of {', '.join(WORKLOADS)}")
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

    if arguments.workload not in WORKLOADS:
        raise InvalidInput(
            f"There is no workload {arguments.workload!r}.",
            hint=suggestion(arguments.workload, WORKLOADS)
            or f"The workloads are: {', '.join(WORKLOADS)}.",
        )
    asked_gpus = arguments.gpus
    arguments.workers = arguments.workers if asked_gpus is None else asked_gpus
    options = benchmark.options_from(arguments)
    reports = [benchmark.read_report(path) for path in arguments.compare or ()]
    if len(reports) == 2:
        text = "\n".join(benchmark.compare(*reports).table())
        return Outcome(blocks=(Text(text, code=True),))
    with _cluster(arguments, session) as (view, start_seconds):
        report = _measure(view, options, start_seconds)
    if arguments.json is not None:
        benchmark.write_report(report, arguments.json)
    lines = [*benchmark.document_lines(report), "", *benchmark.table(report)]
    if reports:
        lines += ["", *benchmark.compare(reports[0], report).table()]
    return Outcome(blocks=(Text("\n".join(lines), code=True),))


@contextmanager
def _cluster(
    arguments: argparse.Namespace, session: Session
) -> Iterator[tuple[ClusterView, float | None]]:
    """Give a cluster, and the seconds that its start took where it was started for this."""
    clusters = session.clusters
    if arguments.cluster is not None:
        yield clusters.get(arguments.cluster), None
        return
    profile = arguments.profile or default_profile()
    refuse_gpus_on(profile, arguments)
    target = None if arguments.workers is None else Target(arguments.workers, arguments.workers)
    began = time.monotonic()
    # This process is the client, so its own Python is the one that fits.
    view = clusters.start(
        profile, target=target, options=options_from(arguments), python=sys.executable
    )
    try:
        with session.progress() as progress:
            view = clusters.wait_ready(view.id, progress=progress)
        yield view, time.monotonic() - began
    finally:
        stop_quietly(view, session)


def _measure(
    view: ClusterView, options: benchmark.SumOptions, start_seconds: float | None
) -> benchmark.Report:
    from ... import benchmark
    from ...connection import connect

    bar = benchmark.ProgressBar(sys.stderr)
    try:
        with connect(view.id) as client:
            return benchmark.run_benchmark(
                client, options, progress=bar, start_seconds=start_seconds
            )
    finally:
        bar.close()
