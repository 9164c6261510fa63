"""The steps of long tasks; the module travels by value to workers that lack this package."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

BOARD = "_gpucluster_bench"
"""Attribute of a worker: the progress of its long tasks, and values kept for the next one."""
AHEAD = 3
"""Steps in a GPU's queue: enough that it never waits for Python, few enough to stop soon."""
LOOK_SECONDS = 0.25
"""Interval of the queries for a GPU's clocks, while it works: 50 microseconds each time."""
DYNAMIC = 104
"""``CURAND_ORDERING_PSEUDO_DYNAMIC``: as many states as the card has room for.

With the default ordering cuRAND's XORWOW fills 220 GB/s of an H100, with this one 1,800.
"""
ROW_SUM = r"""
extern "C" __global__ void row_sum(
    const double2* x, long long rows, long long pairs, double* out)
{
    double sum = 0;
    for (long long row = blockIdx.y; row < rows; row += gridDim.y) {
        const double2* line = x + 2 * row * pairs;  // every second row
        for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < pairs;
             i += (long long)gridDim.x * blockDim.x)
            sum += line[i].x + 1.0;  // every second column
    }
    __shared__ double part[32];
    for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
    if (!(threadIdx.x & 31)) part[threadIdx.x >> 5] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < (blockDim.x >> 5) ? part[threadIdx.x] : 0;
        for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
        if (!threadIdx.x) out[blockIdx.y * gridDim.x + blockIdx.x] = sum;
    }
}
"""
"""CuPy's own sum over a strided view runs at 33 GB/s; a contiguous copy of it reads twice."""


class Cancelled(Exception):
    """No client waits for this task any more."""


def long_task(kernel: Callable[..., Iterator[Any]], run: str, share: dict[str, Any]) -> Any:
    """Run a kernel to its end, and note the progress between steps.

    A kernel yields after each step (on a GPU: after each step was queued), and last of all its
    value; one that also takes its own time, without preparing and checking, yields both.  The
    task ends early, with `Cancelled`, once the scheduler has withdrawn it or the worker closes.
    """
    from distributed import get_worker

    worker = get_worker()
    board = worker.__dict__.setdefault(BOARD, {})
    key = worker.get_current_task()
    began = time.perf_counter()
    last: Any = None
    place = (run, share["number"])
    looked, reasons = -math.inf, set()
    try:
        for done, given in enumerate(kernel(board, **share), 1):
            board[place], last = done, given
            if share["gpu"] and time.perf_counter() - looked > LOOK_SECONDS:
                reasons.update(slowed())
                looked = time.perf_counter()
            task = worker.state.tasks.get(key)
            withdrawn = task is None or task.state not in ("executing", "long-running")
            # Dask waits half a minute for what still runs on a worker that closes.
            if withdrawn or worker.status.name in ("closing", "closed"):
                raise Cancelled
    finally:
        board.pop(place, None)
    value, seconds = last if isinstance(last, tuple) else (last, None)
    return {
        "address": worker.address,
        "value": float(value),
        "timed": seconds is not None,
        "seconds": time.perf_counter() - began if seconds is None else seconds,
        "slowed": ", ".join(sorted(reasons)),
    }


def progress_of(run: str, dask_worker: Any) -> int:
    """Return the number of steps of a run that this worker's long tasks have done."""
    board = dask_worker.__dict__.get(BOARD, {})
    return sum(done for place, done in list(board.items()) if place[0] == run)


def slowed() -> set[str]:
    """Return the driver's reasons why this task's GPU runs below its clocks."""
    try:
        import cupy
        import pynvml

        pynvml.nvmlInit()
        bus = cupy.cuda.runtime.deviceGetPCIBusId(cupy.cuda.runtime.getDevice())
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus)
        reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except Exception:  # whatever NVML or its binding lacks, the figures stand without it
        return set()
    names = {0x08: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
    return {name for bit, name in names.items() if reasons & bit}


def sum_on_cpu(
    board: dict[Any, Any], *, gpu: bool, rows: int, columns: int, step: int, number: int, seed: int
) -> Iterator[float]:
    """Make normal(10, 1) rows, add 1, take every second row and column, sum.

    ``step`` is the number of rows that are in memory at a time; it is even, so that "every second
    row" is the same in each step.
    """
    import numpy as np

    generator = np.random.Generator(np.random.SFC64([seed, number]))
    x = np.empty((min(step, rows), columns))
    total = 0.0
    for first in range(0, rows, step):
        block = x[: min(step, rows - first)]
        generator.standard_normal(out=block)
        block += 10
        block += 1
        total += float(block[::2, ::2].sum())
        yield total


def sum_on_gpu(
    board: dict[Any, Any], *, gpu: bool, rows: int, columns: int, step: int, number: int, seed: int
) -> Iterator[float]:
    """Do the same as `sum_on_cpu` on a GPU."""
    import cupy

    x = cupy.empty((min(step, rows), columns))
    fill = board.get("fill")
    if fill is None:
        # Its state is made once for each worker: 10 ms, a tenth of a short run.
        fill = board["fill"] = _normal_filler(seed + number)
    add_up = _strided_sum() if columns % 2 == 0 else _strided_sum_by_copy
    parts = cupy.zeros(-(-rows // step))
    clock = Clock(gpu=True)
    for place, first in enumerate(range(0, rows, step)):
        block = x[: min(step, rows - first)]
        fill(block)
        parts[place] = add_up(block)
        clock.step()
        yield math.nan  # still in the queue
    yield float(parts.sum())


def _normal_filler(seed: int) -> Callable[[Any], None]:
    """Return a function that fills an array with normal(10, 1) numbers, in one pass if it can."""
    import cupy

    try:
        from cupy_backends.cuda.libs import curand  # type: ignore[import-not-found]  # with CuPy

        generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_XORWOW)
        curand.setGeneratorOrdering(generator, DYNAMIC)
        curand.setPseudoRandomGeneratorSeed(generator, seed)
        curand.setStream(generator, cupy.cuda.get_current_stream().ptr)
    except (ImportError, AttributeError, RuntimeError):  # an older cuRAND lacks this ordering
        state = cupy.random.Generator(cupy.random.XORWOW(seed))

        def two_passes(block: Any) -> None:
            state.standard_normal(out=block)
            cupy.add(block, 10, out=block)

        return two_passes

    def one_pass(block: Any) -> None:
        # cuRAND makes normal numbers in pairs; a block of odd size has its last one made apart.
        even = block.size - block.size % 2
        curand.generateNormalDouble(generator, block.data.ptr, even, 10.0, 1.0)
        if even < block.size:
            last = cupy.empty(2)
            curand.generateNormalDouble(generator, last.data.ptr, 2, 10.0, 1.0)
            block.reshape(-1)[even:] = last[:1]

    return one_pass


def _strided_sum() -> Callable[[Any], Any]:
    """Return a function: add 1, sum every second row and column of a block of even width."""
    import cupy

    kernel = cupy.RawKernel(ROW_SUM, "row_sum")

    def add_up(block: Any) -> Any:
        rows, pairs = -(-block.shape[0] // 2), block.shape[1] // 2
        wide = max(1, min(32, pairs // 4096))
        high = max(1, min(rows, 4096 // wide))
        parts = cupy.empty(wide * high)
        kernel((wide, high), (256,), (block, rows, pairs, parts))
        return parts.sum()

    return add_up


def _strided_sum_by_copy(block: Any) -> Any:
    return (block[::2, ::2] + 1).sum()


def copy_steps(
    board: dict[Any, Any], *, gpu: bool, nbytes: int, steps: int, number: int
) -> Iterator[Any]:
    """Copy an array of random numbers to and fro; the value counts those that differ at the end."""
    np = _arrays(gpu)
    source = np.random.random(nbytes // 8)
    target = np.empty_like(source)
    clock = Clock(gpu)
    for _ in range(steps):
        np.copyto(target, source)
        source, target = target, source
        clock.step()
        yield math.nan
    seconds = clock.stop()
    yield float((source != target).sum()), seconds


def product_steps(
    board: dict[Any, Any], *, gpu: bool, size: int, dtype: str, steps: int, number: int
) -> Iterator[Any]:
    """Multiply two square matrices; the value is the relative error of the product.

    The reference is the product of both matrices with a vector, in float64.
    """
    np = _arrays(gpu)
    left, right = (np.random.random((size, size)).astype(dtype) - 0.5 for _ in range(2))
    product = np.matmul(left, right)
    clock = Clock(gpu)
    for _ in range(steps):
        np.matmul(left, right, out=product)
        clock.step()
        yield math.nan
    seconds = clock.stop()
    left, right, product = (each.astype("float64") for each in (left, right, product))
    vector = np.random.random(size)
    expected = left @ (right @ vector)
    yield float(np.linalg.norm(product @ vector - expected) / np.linalg.norm(expected)), seconds


def _arrays(gpu: bool) -> Any:
    import importlib

    return importlib.import_module("cupy" if gpu else "numpy")


class Clock:
    """Times steps, and keeps a GPU's queue short, so that a task can end soon."""

    def __init__(self, gpu: bool) -> None:
        self.stream: Any = None
        if gpu:
            import cupy

            self.stream = cupy.cuda.get_current_stream()
            self.stream.synchronize()
        self.queue: deque[Any] = deque()
        self.began = time.perf_counter()

    def step(self) -> None:
        """Note that a step was queued; waits for the one that was queued `AHEAD` before it."""
        if self.stream is not None:
            self.queue.append(self.stream.record())
            if len(self.queue) > AHEAD:
                self.queue.popleft().synchronize()

    def stop(self) -> float:
        """Return the seconds until all steps are done."""
        if self.stream is not None:
            self.stream.synchronize()
        return time.perf_counter() - self.began
