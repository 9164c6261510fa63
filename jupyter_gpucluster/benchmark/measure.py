"""Runs a workload on the workers of a client, checks its value and takes the times."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput
from .options import Options
from .report import DeviceResult, Report, Run, device_result
from .workers import WorkerFacts, ask_workers, choose_devices, crew, names, remarks
from .workloads import BenchmarkFailed, Device, Workload

if TYPE_CHECKING:
    from distributed import Client, Future

PROGRESS_SECONDS = 0.5
"""How often progress is asked for; a run that is shorter is never disturbed."""

COLD_SECONDS = 60.0
"""A first GPU run that is shorter is spoilt by some seconds of loading kernels."""


@dataclass(frozen=True)
class Progress:
    """How far one run is: chunks done of all, and seconds since it began."""

    device: Device
    run: int
    runs: int
    done: int
    total: int
    seconds: float


def run_benchmark(
    client: Client,
    options: Options,
    *,
    progress: Callable[[Progress], None] | None = None,
    warn: Callable[[str], None] | None = None,
    start_seconds: float | None = None,
    timeout: float | None = None,
) -> Report:
    """Run a workload on each device asked for and report.

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
        What the start of the cluster took, for the report; None = not measured.
    timeout
        Seconds to wait for ``options.workers``; None = without limit.

    Raises
    ------
    BenchmarkFailed
        A task failed, the cluster went away, or a result is wrong.
    InvalidInput, UnsuitableEnvironment
        The workers cannot do what is asked.
    WaitTimeout
        The workers did not come in time.
    KeyboardInterrupt
        As it came; what was sent to the workers is cancelled first.
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
    warnings = remarks(wanted, workers, devices) + workload.warnings(the_crew)
    if warn:
        for warning in warnings:
            warn(warning)
    # Without a restriction the graph is the documents': Dask queues its tasks differently with one.
    addresses = [worker.address for worker in workers] if len(workers) < len(connected) else None
    runner = _Runner(client, workload, addresses, progress)
    results = tuple(
        device_result(
            device,
            names(workers, device),
            workload.nbytes,
            [runner.run(device, number, options.repeats) for number in range(options.repeats)],
        )
        for device in devices
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
    )


@dataclass(frozen=True)
class _Runner:
    client: Client
    workload: Workload
    addresses: Sequence[str] | None
    progress: Callable[[Progress], None] | None

    def run(self, device: Device, number: int, runs: int) -> Run:
        began = time.perf_counter()
        lazy = self.workload.build(device)
        created = time.perf_counter()
        future = self.client.compute(lazy, workers=self.addresses)

        def show(done: int) -> None:
            if self.progress:
                seconds = time.perf_counter() - began
                total = self.workload.pieces
                self.progress(Progress(device, number + 1, runs, done, total, seconds))

        try:
            value = _result(self.client, future, show)
            ended = time.perf_counter()
        finally:
            # Whatever ended the wait, nothing of ours may go on computing.
            if not future.done():
                self.client.cancel([future], force=True)
            future.release()
        self.workload.check(value)
        show(self.workload.pieces)
        return Run(created - began, ended - created, value)


def _result(client: Client, future: Future[Any], show: Callable[[int], None]) -> float:
    from asyncio import CancelledError

    from distributed import wait

    try:
        with _quiet("distributed.protocol.pickle"):
            while not future.done():
                try:
                    wait(future, timeout=PROGRESS_SECONDS)
                except TimeoutError:
                    show(_count_done(client, future))
            return float(future.result())
    except (CancelledError, Exception) as error:  # whatever a task raised arrives here
        if future.status != "error":
            raise BenchmarkFailed(
                "The cluster went away during the run.",
                hint="Look at its log, then start it again.",
                detail=f"{type(error).__name__}: {error}",
            ) from None
        raise _task_failure(error, _told(client, future, error)) from None


def _told(client: Client, future: Future[Any], error: BaseException) -> str:
    """Say what a task raised, also where the client lacks the library that defines the error."""
    # A library that the scheduler lacks is the cause of Dask's "Error during deserialization".
    root = error.__cause__ or error
    if not (root.args and isinstance(root.args[0], bytes)):
        return f"{type(root).__name__}: {root}"

    # distributed hands on the pickled error where it cannot load it; the scheduler has its text.
    # Seen with CuPy's OutOfMemoryError and a client without CuPy (distributed 2026.8.0).
    def text(key: Any, dask_scheduler: Any = None) -> str:
        task = dask_scheduler.tasks.get(key)
        return str(task.exception_blame.exception_text) if task else "unknown error"

    return str(client.run_on_scheduler(text, key=future.key))


def _task_failure(error: BaseException, told: str) -> BenchmarkFailed:
    if type(error).__name__ == "KilledWorker":
        return BenchmarkFailed(
            "Workers died during the run.",
            hint="They may have run out of memory: take smaller --chunks; else look at their log.",
            detail=told,
        )
    if isinstance(error, MemoryError) or told.startswith(
        "OutOfMemoryError"
    ):  # the latter is CuPy's
        return BenchmarkFailed(
            "A worker ran out of memory.", hint="Take smaller --chunks.", detail=told
        )
    return BenchmarkFailed(f"A task failed: {told}", hint="Look at the workers' log.")


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a logger from printing tracebacks of what is reported in a line of our own."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _count_done(client: Client, future: Future[Any]) -> int:
    # Travels by value, see workers.py.
    def count(key: Any, dask_scheduler: Any = None) -> int:
        ahead = {"waiting", "no-worker", "queued", "processing"}
        seen = set()
        stack = [dask_scheduler.tasks[key]] if key in dask_scheduler.tasks else []
        done = 0
        while stack:
            task = stack.pop()
            if task.key not in seen:
                seen.add(task.key)
                stack.extend(task.dependencies)
                done += not task.dependencies and task.state not in ahead
        return done

    return int(client.run_on_scheduler(count, key=future.key))


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
