"""Several runs by one command: scaling over 1, 2, 4 ... workers, and the check-up of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.errors import InvalidInput
from .family import FAMILY, FamilyOptions
from .measure import Progress, run_benchmark
from .options import Options, SumOptions
from .report import Report, columns
from .verdict import verdict
from .workloads import Size

if TYPE_CHECKING:
    from distributed import Client

TRAFFIC_OF_SUM = 1.5
"""The sum in peak mode writes its array once and reads every second row of it."""


def run_scaling(
    client: Client,
    options: Options,
    *,
    weak: bool = False,
    progress: Callable[[Progress], None] | None = None,
    start_seconds: float | None = None,
    timeout: float | None = None,
) -> list[Report]:
    """Run on all workers, then on half of them, and so on down to one; fewest first.

    Parameters
    ----------
    weak
        Let the array grow with the workers; otherwise all runs do the same work.
    """
    if not weak and not isinstance(options, SumOptions):
        raise InvalidInput(
            "Only the sum keeps its size over different numbers of workers.",
            hint="Use --scaling weak.",
            detail="scaling",
        )

    def run(these: Options) -> Report:
        return run_benchmark(
            client, these, progress=progress, start_seconds=start_seconds, timeout=timeout
        )

    whole = run(options)
    others = []
    for count in halves(whole.workers):
        fewer = replace(options, workers=count)
        if isinstance(fewer, SumOptions):
            rows, columns = whole.parameters["shape"]
            shape = grown((rows, columns), count, whole.workers) if weak else (rows, columns)
            fewer = replace(fewer, shape=shape)
        others.append(run(fewer))
    return [*others, whole]


def halves(workers: int) -> list[int]:
    """Return the powers of two below a number.

    >>> halves(6), halves(4)
    ([1, 2, 4], [1, 2])
    """
    return [2**power for power in range(workers.bit_length()) if 2**power < workers]


def grown(shape: Size, count: int, workers: int) -> Size:
    """Return the part of an array that so many of the workers do."""
    return max(1, round(shape[0] * count / workers)), shape[1]


def scaling_table(reports: Sequence[Report]) -> list[str]:
    """Return a row for each number of workers: rate, speed-up and efficiency against the fewest."""
    first = reports[0].results[0]
    rows = [["workers", "size", "wall s", first.unit, "speed-up", "efficiency"]]
    for report in reports:
        result = report.results[0]
        speed_up = result.rate / first.rate
        ideal = report.workers / reports[0].workers
        rows.append(
            [
                str(report.workers),
                f"{report.nbytes / 1e9:.4g} GB",
                f"{result.wall_seconds:.3f}",
                f"{result.rate:.4g}",
                f"{speed_up:.3f}",
                f"{100 * speed_up / ideal:.1f} %",
            ]
        )
    return columns(rows, text=set())


def run_check_up(
    client: Client,
    *,
    device: str | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    start_seconds: float | None = None,
    timeout: float | None = None,
) -> list[Report]:
    """Run all workloads, small: the sum in peak mode, and the whole family."""
    everything: list[Options] = [SumOptions(mode="peak", device=device, repeats=2, workers=workers)]
    everything += [
        FamilyOptions(name, device=device, repeats=2, workers=workers) for name in FAMILY
    ]
    reports = [
        run_benchmark(
            client, options, progress=progress, start_seconds=start_seconds, timeout=timeout
        )
        for options in everything
    ]
    return [replace(report, verdict=verdict(report)) for report in with_ceilings(reports)]


def with_ceilings(reports: Sequence[Report]) -> Iterator[Report]:
    """Add to the sum the ceiling that the memory of the same devices allows, by their copying."""
    copied = {
        result.device: result.rate
        for report in reports
        if report.workload == "copy"
        for result in report.results
    }
    for report in reports:
        if report.workload == "sum" and report.mode == "peak":
            yield replace(
                report,
                results=tuple(
                    replace(result, ceiling=copied[result.device] / TRAFFIC_OF_SUM)
                    if result.device in copied and result.device == "gpu"
                    else result
                    for result in report.results
                ),
            )
        else:
            yield report


def check_up_table(reports: Sequence[Report]) -> list[str]:
    """Return a row for each workload, and the verdicts below."""
    rows = [["workload", "device", "rate", "unit", "of ceiling", "slowest to fastest worker"]]
    for report in reports:
        for result in report.results:
            rates = sorted(share.rate for share in result.shares)
            rows.append(
                [
                    report.workload,
                    result.device,
                    f"{result.rate:.4g}",
                    result.unit,
                    f"{100 * result.rate / result.ceiling:.0f} %" if result.ceiling else "-",
                    f"{rates[0]:.4g} to {rates[-1]:.4g}" if rates else "-",
                ]
            )
    found = [finding for report in reports for finding in report.verdict]
    small = any(result.device == "cpu" for report in reports for result in report.results)
    return [
        *columns(rows, text={0, 1, 3, 5}),
        *(["run on processors, smaller than on GPUs"] if small else []),
        *(f"verdict: {finding}" for finding in found),
        *([] if found else ["verdict: no device is slower than its equals"]),
    ]
