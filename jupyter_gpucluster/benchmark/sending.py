"""Send a built workload to the workers, count its progress, fetch its value; time links."""

from __future__ import annotations

import functools
import inspect
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import kernels
from .report import Link
from .workers import WorkerFacts
from .workloads import BenchmarkFailed, LongTasks

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(frozen=True)
class Outcome:
    """The value of a run; of long tasks also the answer of each of them.

    ``seconds`` is set where the run timed itself, otherwise the wall time counts.
    """

    value: float
    tasks: tuple[Mapping[str, Any], ...] = ()
    seconds: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FromClient:
    """Work that is a conversation of the client with the cluster, such as a round trip."""

    talk: Callable[[Client, Sequence[str], Callable[[int], None]], Outcome]


class SentGraph:
    """A lazy Dask collection whose value is a float."""

    def __init__(self, client: Client, lazy: Any, addresses: Sequence[str] | None) -> None:
        self.client = client
        self.futures: list[Future[Any]] = [client.compute(lazy, workers=addresses)]

    def done(self) -> int:
        """Count the pieces that are done."""

        # Travels by value, see `carried`.
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

        return int(self.client.run_on_scheduler(count, key=self.futures[0].key))

    def outcome(self) -> Outcome:
        """Fetch the value; raises the error of a task."""
        return Outcome(float(self.futures[0].result()))


class SentTasks:
    """One long task for each GPU, or for each thread of CPU workers."""

    def __init__(
        self, client: Client, built: LongTasks, device: str, workers: Sequence[WorkerFacts]
    ) -> None:
        # Thread by thread, so that few tasks are spread over the workers.
        lanes = [
            worker.address
            for lane in range(1 if device == "gpu" else max(w.threads for w in workers))
            for worker in workers
            if lane < worker.threads
        ]
        self.client = client
        self.most = 0
        self.fold = built.fold
        self.run = secrets.token_hex(8)
        self.shares = built.shares(len(lanes))
        self.addresses = lanes[: len(self.shares)]
        task = carried(kernels.long_task)
        kernel = carried(built.kernel)
        self.futures: list[Future[Any]] = [
            client.submit(
                task,
                kernel,
                self.run,
                share,
                key=f"bench-{self.run}-{share['number']}",
                workers=[address],
                pure=False,
            )
            for share, address in zip(self.shares, self.addresses, strict=True)
        ]

    def done(self) -> int:
        """Count steps; finished tasks are not asked any more, but counted by their futures."""
        # Not `scheduler_info`: it returns what the client keeps, which its refresh every 2 s, that
        # asks for no workers, may empty between answer and return (distributed 2026.8.0).
        gone = set(self.addresses) - set(self.client.nthreads())
        if gone:
            # Its task may run nowhere else, so without this the run would wait for ever.
            raise WorkerGone(", ".join(sorted(gone)))
        ended = sum(steps_of(s) for s, f in zip(self.shares, self.futures, strict=True) if f.done())
        # A worker that is about to go cannot answer; the next look misses it.
        ask, there = carried(kernels.progress_of), sorted(set(self.addresses))
        answers = self.client.run(ask, self.run, workers=there, on_error="ignore")
        # For a moment a task has left its worker's board while its future is not done yet.
        self.most = max(self.most, ended + sum(int(done) for done in answers.values()))
        return self.most

    def outcome(self) -> Outcome:
        """Fetch the value; raises the error of a task."""
        tasks = self.client.gather(self.futures)
        weights = [share.get("rows", 1) for share in self.shares]
        parts = [weight / sum(weights) for weight in weights]
        answers = tuple({**t, "part": part} for t, part in zip(tasks, parts, strict=True))
        # Tasks that timed themselves ran side by side: the slowest of them is what counts.
        timed = max(task["seconds"] for task in tasks) if tasks[0]["timed"] else None
        return Outcome(self.fold([task["value"] for task in tasks]), answers, timed)


class WorkerGone(Exception):
    """A worker that held a long task is no longer connected."""


def steps_of(share: Mapping[str, Any]) -> int:
    """Return the number of steps of a share."""
    if "rows" in share:
        return int(-(-share["rows"] // share["step"]))
    return int(share["steps"])


def failure(client: Client, futures: Sequence[Future[Any]], error: BaseException) -> Exception:
    """Turn the error of a wait into one for users."""
    failed = next((future for future in futures if future.status == "error"), None)
    if isinstance(error, WorkerGone):
        hint = "Look at its log, then run again."
        return BenchmarkFailed("A worker went away during the run.", hint=hint, detail=str(error))
    if failed is None:
        return BenchmarkFailed(
            "The cluster went away during the run.",
            hint="Look at its log, then start it again.",
            detail=f"{type(error).__name__}: {error}",
        )
    text = _text_of(client, failed, error)
    if type(error).__name__ == "KilledWorker":
        hint = "They may have run out of memory: take smaller --chunks; else look at their log."
        return BenchmarkFailed("Workers died during the run.", hint=hint, detail=text)
    if isinstance(error, MemoryError) or text.startswith("OutOfMemoryError"):  # CuPy's
        hint = "Take smaller --chunks."
        return BenchmarkFailed("A worker ran out of memory.", hint=hint, detail=text)
    return BenchmarkFailed(f"A task failed: {text}", hint="Look at the workers' log.")


def _text_of(client: Client, future: Future[Any], error: BaseException) -> str:
    """Return the error of a task as text, also if the client lacks the library that defines it."""
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


@contextmanager
def quiet(name: str) -> Iterator[None]:
    """Keep a logger from printing tracebacks of what is reported in a line of our own."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@functools.cache
def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same on workers whose environment lacks this package.

    The whole module goes along as far as the function uses it, so it may import only what the
    workers have.  A parameter ``dask_worker`` is filled in by `distributed.Client.run`.
    """
    import cloudpickle  # type: ignore[import-untyped]  # it has no stubs

    module = inspect.getmodule(function)
    cloudpickle.register_pickle_by_value(module)
    try:
        payload: bytes = cloudpickle.dumps(function)
    finally:
        cloudpickle.unregister_pickle_by_value(module)

    # distributed pickles importable functions by name; a function within a function goes by value.
    def call(*arguments: Any, **named: Any) -> Any:
        import pickle

        return pickle.loads(payload)(*arguments, **named)  # noqa: S301  # made above

    # There distributed looks for ``dask_worker``.
    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


BYTES = {"gpu": 256 * 10**6, "cpu": 16 * 10**6}
"""Size of a block: some tenths of a second through host memory."""
ROUNDS = 3
"""The best of so many counts: on a shared machine single ones are half as fast."""
MOST_NEIGHBOURS = 7
"""Each worker takes from so many others at most: all of them on a node of eight GPUs."""


def measure_links(client: Client, workers: Sequence[WorkerFacts], device: str) -> tuple[Link, ...]:
    """Let all workers take a block of memory from their first neighbour, then from the next ...

    Returns
    -------
    tuple of Link
        Rates in GB/s, from the giver's device memory to the taker's.  Within a round all workers
        give and take at the same time; in one process there is no way between them, so no link.
    """
    makes, takes = carried(make_block), carried(take_block)
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for shift in range(1, min(len(workers), MOST_NEIGHBOURS + 1)):
            pairs = [(w, workers[(n + shift) % len(workers)]) for n, w in enumerate(workers)]
            blocks = [
                client.submit(
                    makes, BYTES[device], device == "gpu", workers=[giver.address], pure=False
                )
                for giver, _ in pairs
            ]
            client.gather(
                [
                    client.submit(takes, block, workers=[taker.address], pure=False)
                    for block, (_, taker) in zip(blocks, pairs, strict=True)
                ]
            )
            answers = client.run(
                carried(transfers), [b.key for b in blocks], workers=[w.address for w in workers]
            )
            for giver, taker in pairs:
                for rate in answers[taker.address].get(giver.address, ()):
                    pair = (giver.address, taker.address)
                    best[pair] = max(rate, best.get(pair, 0.0))
    names = {worker.address: worker.name or worker.address for worker in workers}
    hosts = {worker.address: worker.host for worker in workers}
    return tuple(
        Link(names[giver], names[taker], hosts[giver], hosts[taker], rate)
        for (giver, taker), rate in sorted(best.items())
    )


def make_block(nbytes: int, gpu: bool) -> Any:
    """Return a block of the device's memory; of random bytes, since zeros could be compressed."""
    import importlib

    arrays = importlib.import_module("cupy" if gpu else "numpy")
    return arrays.random.randint(0, 2**31, nbytes // 8)


def take_block(block: Any) -> int:
    """Take a block, and return its size."""
    return int(block.nbytes)


def transfers(keys: Sequence[str], dask_worker: Any) -> Mapping[str, list[float]]:
    """Return the rates in GB/s at which this worker took these blocks, by their givers."""
    found: dict[str, list[float]] = {}
    for entry in dask_worker.transfer_incoming_log:
        if set(entry["keys"]) <= set(keys):
            found.setdefault(entry["who"], []).append(entry["bandwidth"] / 1e9)
    return found
