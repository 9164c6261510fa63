"""Run a workload on the workers of a client, check its value, take the times.

Also several runs: scaling over 1, 2, 4 ... workers, and the check-up of everything.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidInput
from ..core.serialize import copied
from .compare import verdict
from .family import FAMILY, SHUFFLE
from .options import Options
from .report import DeviceResult, Report, Run, columns, device_result
from .sending import FromClient, SentGraph, SentTasks, failure, measure_links, quiet
from .workers import WorkerFacts, ask_workers, choose_devices, crew, names, remarks, worker_shares
from .workloads import Device, LongTasks, Workload

if TYPE_CHECKING:
    from distributed import Client, Future

TRAFFIC_OF_SUM = 1.5
"""The sum in peak mode writes its array once and reads every second row of it."""

PROGRESS_SECONDS = 0.5
"""Interval between two looks at the progress; a run that is shorter is never disturbed."""

BAR_WIDTH = 30

COLD_SECONDS = 60.0
"""A first GPU run that is shorter is spoilt by some seconds of loading kernels."""


@dataclass(frozen=True)
class Progress:
    """Progress of one run: chunks done of all, and seconds since it began."""

    device: Device
    run: int
    runs: int
    done: int
    total: int
    seconds: float


def progress_line(progress: Progress) -> str:
    """Return e.g. ``gpu 1/3 [####....] 12/50 chunks, 3 s, 9 s left``.

    It is empty after a run, of which the report has the figures.
    """
    if progress.done >= progress.total:
        return ""
    filled = BAR_WIDTH * progress.done // progress.total
    text = (
        f"{progress.device} {progress.run}/{progress.runs} "
        f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] "
        f"{progress.done}/{progress.total} chunks, {progress.seconds:.0f} s"
    )
    if progress.done:
        left = progress.seconds * (progress.total - progress.done) / progress.done
        text += f", {left:.0f} s left"
    return text


def run_benchmark(
    client: Client,
    options: Options,
    *,
    progress: Callable[[Progress], None] | None = None,
    start_seconds: float | None = None,
) -> Report:
    """Run a workload on each requested device and report, once there are enough workers.

    Parameters
    ----------
    client
        A blocking client.
    progress
        Called twice a second while a run lasts, and at its end.
    start_seconds
        Duration of the cluster's start, for the report; None = not measured.

    Raises
    ------
    BenchmarkFailed
        A task failed, the cluster went away, or a result is wrong.
    InvalidInput, UnsuitableEnvironment
        The workers cannot run this workload.
    KeyboardInterrupt
        The tasks of the run are cancelled first.
    """
    import dask.array  # noqa: F401  # now, so that the first graph is not timed with it

    if client.asynchronous:
        raise InvalidInput("The client is asynchronous.", hint="Use one that blocks.")
    connected = ask_workers(client, options.workers or 1, look_for_gpus=options.device != "cpu")
    # In order of host, so that a small count stays on few hosts.
    wanted = connected[: options.workers]
    devices, workers = choose_devices(options.device, wanted)
    the_crew = crew(workers, devices)
    workload = options.workload_for(the_crew)
    warnings = [*remarks(wanted, workers, devices), *workload.warnings]
    # Without a restriction the graph is the documents': Dask queues its tasks differently with one.
    addresses = [worker.address for worker in workers] if len(workers) < len(connected) else None
    runner = _Runner(client, workload, workers, addresses, progress)
    results = tuple(
        device_result(
            device,
            names(workers, device),
            workload,
            [runner.run(device, number, options.repeats) for number in range(options.repeats)],
        )
        for device in devices
    )
    if workload.name == SHUFFLE:
        results = tuple(
            replace(result, links=measure_links(client, workers, result.device))
            for result in results
        )
    return copied(
        Report,
        workload,
        the_crew,
        workload=workload.name,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        host=socket.gethostname(),
        hosts=tuple(sorted({worker.host for worker in workers})),
        start_seconds=start_seconds,
        results=results,
        cpu_to_gpu=_ratio(results),
        versions=_versions(workers),
        warnings=(*warnings, *_cold_start(results)),
        protocol="+".join(sorted({worker.address.split("://")[0] for worker in workers})),
    )


@dataclass(frozen=True)
class _Runner:
    client: Client
    workload: Workload
    workers: Sequence[WorkerFacts]
    addresses: Sequence[str] | None
    progress: Callable[[Progress], None] | None

    def run(self, device: Device, number: int, runs: int) -> Run:
        from asyncio import CancelledError

        began = time.perf_counter()

        of_caller: list[Exception] = []

        def show(done: int) -> None:
            if self.progress:
                seconds = time.perf_counter() - began
                total = self.workload.pieces
                try:
                    self.progress(Progress(device, number + 1, runs, done, total, seconds))
                except Exception as error:
                    of_caller.append(error)
                    raise

        built = self.workload.build(device)
        created = time.perf_counter()
        futures: list[Future[Any]] = []
        try:
            # Dask's own wait asks the current client, which need not be this one.
            with self.client.as_current(), quiet("distributed.protocol.pickle"):
                if isinstance(built, FromClient):
                    addresses = [worker.address for worker in self.workers]
                    outcome = built.talk(self.client, addresses, show)
                else:
                    work: SentGraph | SentTasks = (
                        SentTasks(self.client, built, device, self.workers)
                        if isinstance(built, LongTasks)
                        else SentGraph(self.client, built, self.addresses)
                    )
                    futures = work.futures
                    _wait(work, show, self.workload.pieces)
                    outcome = work.outcome()
            ended = time.perf_counter()
        except (CancelledError, Exception) as error:  # whatever a task raised arrives here
            if error in of_caller:
                raise
            raise failure(self.client, futures, error) from None
        finally:
            # Whatever ended the wait, nothing of ours may go on computing.
            if not all(future.done() for future in futures):
                self.client.cancel(futures, force=True)
            for future in futures:
                future.release()
        self.workload.check(outcome.value)
        show(self.workload.pieces)
        seconds = ended - created if outcome.seconds is None else outcome.seconds
        shares = worker_shares(self.workers, outcome.tasks, self.workload.amount)
        return Run(created - began, seconds, outcome.value, shares, outcome.figures)


def _wait(work: SentGraph | SentTasks, show: Callable[[int], None], total: int) -> None:
    from distributed import wait

    while not all(future.done() for future in work.futures):
        if any(future.status == "error" for future in work.futures):
            return  # the others' work is of no use any more
        try:
            wait(work.futures, timeout=PROGRESS_SECONDS)
        except TimeoutError:
            show(min(total, work.done()))


def _ratio(results: Sequence[DeviceResult]) -> float | None:
    seconds = {result.device: result.wall_seconds for result in results}
    return seconds["cpu"] / seconds["gpu"] if len(seconds) == 2 else None


def _cold_start(results: Sequence[DeviceResult]) -> list[str]:
    # On an H100, 51 GB took 4.8 s at first and 0.8 s later: CuPy compiles and loads its kernels.
    return [
        "a first run on GPUs also loads CuPy's kernels, some seconds: give --repeats 2 or more"
        for result in results
        if result.device == "gpu" and len(result.runs) == 1 and result.wall_seconds < COLD_SECONDS
    ]


def _versions(workers: Sequence[WorkerFacts]) -> dict[str, str]:
    """Versions on the workers; several, where they differ."""
    found: dict[str, set[str]] = {}
    for worker in workers:
        for name, version in worker.versions.items():
            found.setdefault(name, set()).add(version)
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def run_scaling(
    client: Client, options: Options, *, weak: bool = False, **how: Any
) -> list[Report]:
    """Run on all workers, then on half of them, and so on down to one; fewest first.

    Parameters
    ----------
    weak
        Let the array grow with the workers; otherwise all runs do the same work.
    how
        ``progress`` and ``start_seconds`` of `run_benchmark`.
    """
    if not weak and options.workload != "sum":
        words = "Only the sum keeps its size over different numbers of workers."
        hint = "Use --scaling weak."
        raise InvalidInput(words, hint=hint, detail="scaling")

    whole = run_benchmark(client, options, **how)
    others = []
    for count in halves(whole.workers):
        fewer = replace(options, workers=count)
        if fewer.workload == "sum":
            rows, columns = whole.parameters["shape"]
            part = max(1, round(rows * count / whole.workers)) if weak else rows
            fewer = replace(fewer, shape=(part, columns))
        others.append(run_benchmark(client, fewer, **how))
    return [*others, whole]


def halves(workers: int) -> list[int]:
    """Return the powers of two below a number.

    >>> halves(6), halves(4)
    ([1, 2, 4], [1, 2])
    """
    return [2**power for power in range(workers.bit_length()) if 2**power < workers]


def scaling_table(reports: Sequence[Report]) -> list[str]:
    """Return a row for each number of workers: rate, speed-up and efficiency against the fewest."""
    first = reports[0].results[0]
    rows = [["workers", "size", "wall s", first.unit, "speed-up", "efficiency"]]
    for report in reports:
        result = report.results[0]
        speed_up = result.rate / first.rate
        ideal = report.workers / reports[0].workers
        size, seconds = f"{report.nbytes / 1e9:.4g} GB", f"{result.wall_seconds:.3f}"
        gain = [f"{speed_up:.3f}", f"{100 * speed_up / ideal:.1f} %"]
        rows.append([str(report.workers), size, seconds, f"{result.rate:.4g}", *gain])
    return columns(rows, text=set())


def run_check_up(
    client: Client, *, device: str | None = None, workers: int | None = None, **how: Any
) -> list[Report]:
    """Run all workloads, small: the sum in peak mode, and the whole family.

    Parameters
    ----------
    how
        ``progress`` and ``start_seconds`` of `run_benchmark`.
    """
    common = Options(device=device, repeats=2, workers=workers)
    everything = [replace(common, mode="peak")]
    everything += [replace(common, workload=name) for name in FAMILY]
    summed, *others = [run_benchmark(client, options, **how) for options in everything]
    copy = next(report for report in others if report.workload == "copy")
    reports = [with_ceiling(summed, copy), *others]
    return [replace(report, verdict=verdict(report)) for report in reports]


def with_ceiling(report: Report, copy: Report) -> Report:
    """Add to the sum the ceiling that the memory of the same GPUs allows, by their copying."""
    [result], [copied] = report.results, copy.results
    if result.device != "gpu":
        return report
    return replace(report, results=(replace(result, ceiling=copied.rate / TRAFFIC_OF_SUM),))


def check_up_table(reports: Sequence[Report]) -> list[str]:
    """Return a row for each workload, and the verdicts below."""
    rows = [["workload", "device", "rate", "unit", "of ceiling", "slowest to fastest worker"]]
    for report in reports:
        for result in report.results:
            rates = sorted(share.rate for share in result.shares)
            part = f"{100 * result.rate / result.ceiling:.0f} %" if result.ceiling else "-"
            span = f"{rates[0]:.4g} to {rates[-1]:.4g}" if rates else "-"
            rate = f"{result.rate:.4g}"
            rows.append([report.workload, result.device, rate, result.unit, part, span])
    found = [finding for report in reports for finding in report.verdict]
    small = any(result.device == "cpu" for report in reports for result in report.results)
    return [
        *columns(rows, text={0, 1, 3, 5}),
        *(["run on processors, smaller than on GPUs"] if small else []),
        *(f"verdict: {finding}" for finding in found),
        *([] if found else ["verdict: no device is slower than its equals"]),
    ]
