"""Run a workload on the workers of a client, check its value, take the times."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from ..core.errors import InvalidInput
from .family import SHUFFLE
from .links import measure_links
from .options import Options
from .report import DeviceResult, Report, Run, device_result
from .sending import FromClient, SentGraph, SentTasks, failure, quiet
from .workers import WorkerFacts, ask_workers, choose_devices, crew, names, remarks, worker_shares
from .workloads import Device, LongTasks, Workload

if TYPE_CHECKING:
    from distributed import Client, Future

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


class ProgressBar:
    """Draws one line again and again on a terminal; elsewhere it stays silent."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn = 0

    def __call__(self, progress: Progress) -> None:
        """Draw; a finished run is wiped, since the report has its figures."""
        if not self._stream.isatty():
            return
        self._draw("" if progress.done >= progress.total else line(progress))

    def close(self) -> None:
        """Wipe what is left of an interrupted run."""
        if self._drawn:
            self._draw("")

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._drawn) + ("" if text else "\r"))
        self._stream.flush()
        self._drawn = len(text)


def line(progress: Progress) -> str:
    """Return e.g. ``gpu 1/3 [####....] 12/50 chunks, 3 s, 9 s left``."""
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
    warn: Callable[[str], None] | None = None,
    start_seconds: float | None = None,
    timeout: float | None = None,
) -> Report:
    """Run a workload on each requested device and report.

    Parameters
    ----------
    client
        A blocking client.
    progress
        Called twice a second while a run lasts, and at its end.
    warn
        Called with each warning before the first run (the report holds them too), and once if
        workers have to be waited for.
    start_seconds
        Duration of the cluster's start, for the report; None = not measured.
    timeout
        Seconds to wait for ``options.workers``; None = without limit.

    Raises
    ------
    BenchmarkFailed
        A task failed, the cluster went away, or a result is wrong.
    InvalidInput, UnsuitableEnvironment
        The workers cannot run this workload.
    WaitTimeout
        The workers did not come in time.
    KeyboardInterrupt
        The tasks of the run are cancelled first.
    """
    import dask.array  # noqa: F401  # now, so that the first graph is not timed with it

    if client.asynchronous:
        raise InvalidInput("The client is asynchronous.", hint="Use one that blocks.")
    connected = ask_workers(
        client,
        options.workers or 1,
        look_for_gpus=options.device != "cpu",
        warn=warn,
        timeout=timeout,
    )
    # In order of host, so that a small count stays on few hosts.
    wanted = connected[: options.workers]
    devices, workers = choose_devices(options.device, wanted)
    the_crew = crew(workers, devices)
    workload = options.workload(the_crew)
    warnings = [*remarks(wanted, workers, devices), *workload.warnings]
    if warn:
        for warning in warnings:
            warn(warning)
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
    return Report(
        workload=workload.name,
        mode=workload.mode,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        host=socket.gethostname(),
        parameters=workload.parameters,
        nbytes=workload.nbytes,
        pieces=workload.pieces,
        expected=workload.expected,
        sigma=workload.sigma,
        workers=the_crew.workers,
        threads=the_crew.threads,
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
    short = any(
        result.device == "gpu" and len(result.runs) == 1 and result.wall_seconds < COLD_SECONDS
        for result in results
    )
    return (
        ["a first run on GPUs also loads CuPy's kernels, some seconds: give --repeats 2 or more"]
        if short
        else []
    )


def _versions(workers: Sequence[WorkerFacts]) -> dict[str, str]:
    """Versions on the workers; several, where they differ."""

    def found(name: str) -> str:
        return ", ".join(sorted({getattr(worker, name) for worker in workers} - {""}))

    every = {name: found(name) for name in ("python", "dask", "distributed", "numpy", "cupy")}
    return {name: version for name, version in every.items() if version}
