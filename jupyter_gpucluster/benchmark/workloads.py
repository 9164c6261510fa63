"""A workload as data, the check of its value, and the sum in its two modes."""

from __future__ import annotations

import math
import pkgutil
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from ..core.errors import GpuClusterError
from . import kernels

if TYPE_CHECKING:
    import numpy

Device = Literal["gpu", "cpu"]
Size = tuple[int, int]

ITEM_BYTES = 8
"""All arrays are float64."""

COPIES = 2
"""A task holds its chunk and, beside it, the chunk plus one."""

CHUNKS_PER_THREAD: Mapping[Device, int] = MappingProxyType({"gpu": 32, "cpu": 4})
"""Below so many a thread idles or waits.  ThetaGPU's published runs lost all gain at 25 per GPU."""

GPU_STEP = 8e9
"""Bytes of a step on a GPU: 7 ms of an H100, so that Python keeps up; its generator fills fully."""
CPU_STEP = 2e6
"""Bytes of a step on a CPU: it stays in a core's second cache from one pass to the next."""
PART_OF_MEMORY = 0.5
"""At most so much of a worker's memory is taken for a step."""


class BenchmarkFailed(GpuClusterError):
    """The run did not end, or its result is wrong."""


@dataclass(frozen=True)
class Crew:
    """The workers as far as sizes depend on them.  Memory is in bytes, 0 = unknown."""

    devices: tuple[Device, ...]
    workers: int
    threads: int
    memory_per_thread: int


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One computation of one size, with all that measuring, checking and reporting need of it.

    Parameters
    ----------
    mode
        Distinguishes ways of computing the same formula.
    parameters
        The size, ready for JSON: two runs with the same parameters do the same work.
    nbytes
        Bytes of the array, or bytes moved.
    amount
        The rate is this amount divided by the seconds, in ``unit``.
    pieces
        Number of tasks without a predecessor, or of steps, which progress counts.
    build
        Return a lazy Dask collection whose value is a float, or a `LongTasks`, or a
        `sending.FromClient`.
    warnings
        Reasons why this size spoils the figures or may end the run.
    """

    name: str
    mode: str
    parameters: Mapping[str, Any]
    nbytes: int = 0
    amount: float
    unit: str = "GB/s"
    pieces: int
    expected: float
    sigma: float
    build: Callable[[Device], Any]
    warnings: tuple[str, ...] = ()

    def check(self, value: float) -> None:
        """Raise `BenchmarkFailed` unless the value lies within 5 standard deviations."""
        if not abs(value - self.expected) <= 5 * self.sigma:  # refuses NaN too
            raise BenchmarkFailed(
                f"Wrong result: {value:.9g} instead of {self.expected:.9g} "
                f"give or take {5 * self.sigma:.2g}.",
                hint="Run again; if it stays wrong, suspect the device or its libraries.",
                detail=f"{(value - self.expected) / self.sigma:+.1f} standard deviations",
            )


@dataclass(frozen=True)
class LongTasks:
    """One task for each worker thread, which runs in steps; see `kernels.long_task`."""

    kernel: Callable[..., Iterator[Any]]
    shares: Callable[[int], list[dict[str, Any]]]
    """Return the arguments of so many tasks; fewer if there is less work."""
    fold: Callable[[Sequence[float]], float]
    """Return the value of the whole from those of the tasks."""


def document_sum(shape: Size, chunks: Size, crew: Crew) -> Workload:
    """Make normal(10, 1) numbers, add 1, take every second row and column, sum."""

    def build(device: Device) -> Any:
        return as_float((random_numbers(device, shape, chunks) + 1)[::2, ::2].sum())

    warnings = []
    need = COPIES * chunk_bytes(shape, chunks)
    per_thread = count_chunks(shape, chunks) / crew.threads
    least = max(CHUNKS_PER_THREAD[device] for device in crew.devices)
    if per_thread < least:
        warnings.append(
            f"{per_thread:.3g} chunks for each worker thread are few ({least} or more are "
            "better): workers wait at the end; take a larger --shape or smaller --chunks"
        )
    if 0 < crew.memory_per_thread < need:
        warnings.append(
            f"a chunk needs {need / 1e9:.3g} GB while it is worked on, and a worker has "
            f"{crew.memory_per_thread / 1e9:.3g} GB for each thread: it may run out of "
            "memory; take smaller --chunks"
        )
    return _sum("documents", shape, chunks, build, warnings)


def peak_sum(shape: Size, crew: Crew) -> Workload:
    """Compute the same formula with long tasks, as fast as the devices can.

    ``chunks`` of its parameters is the size of one step: bounded by memory, and no more rows than
    each task gets.  The numbers are made in device memory with the mean in them; adding 1 and
    summing every second row and column reads them from there once.  The elements that the formula
    drops are made, but 1 is not added to them.
    """
    on_gpus = "gpu" in crew.devices
    wanted = GPU_STEP if on_gpus else CPU_STEP
    if crew.memory_per_thread:
        wanted = min(wanted, PART_OF_MEMORY * crew.memory_per_thread)
    most = even_shares(shape[0], crew.workers if on_gpus else crew.threads)[0]
    chunks = (min(_rows(wanted, shape[1]), most), shape[1])

    def build(device: Device) -> LongTasks:
        gpu = device == "gpu"
        step = chunks[0] if gpu else min(chunks[0], _rows(CPU_STEP, shape[1]))
        fixed = {"gpu": gpu, "columns": shape[1], "step": step, "seed": secrets.randbits(48)}

        def shares(count: int) -> list[dict[str, Any]]:
            return [
                {**fixed, "rows": rows, "number": number}
                for number, rows in enumerate(even_shares(shape[0], count))
            ]

        return LongTasks(kernels.sum_on_gpu if gpu else kernels.sum_on_cpu, shares, math.fsum)

    warnings = []
    if on_gpus and math.prod(shape) * ITEM_BYTES / crew.workers < 10 * GPU_STEP:
        warnings = ["so small a size shows the start of tasks rather than the GPUs' rate"]
    return _sum("peak", shape, chunks, build, warnings)


def _sum(
    mode: str, shape: Size, chunks: Size, build: Callable[[Device], Any], warnings: Sequence[str]
) -> Workload:
    summed = -(-shape[0] // 2) * -(-shape[1] // 2)  # of an odd length the larger half
    return Workload(
        name="sum",
        mode=mode,
        **size_of(shape, chunks),
        expected=11.0 * summed,
        sigma=math.sqrt(summed),
        build=build,
        warnings=tuple(warnings),
    )


def size_of(shape: Size, chunks: Size) -> dict[str, Any]:
    """Return the fields of a `Workload` on one array."""
    nbytes = math.prod(shape) * ITEM_BYTES
    return {
        "parameters": {"shape": list(shape), "chunks": list(chunks), "dtype": "float64"},
        "nbytes": nbytes,
        "amount": nbytes / 1e9,
        "pieces": count_chunks(shape, chunks),
    }


def _rows(nbytes: float, columns: int) -> int:
    """Return how many rows fit, an even number."""
    return max(2, int(nbytes / (columns * ITEM_BYTES)) // 2 * 2)


def even_shares(rows: int, count: int) -> list[int]:
    """Split rows among tasks: an even, non-zero number for each; only the last may be odd.

    >>> even_shares(11, 4)
    [4, 4, 3]
    """
    share = 2 * math.ceil(rows / 2 / count)
    return [min(share, rows - first) for first in range(0, rows, share)]


def count_chunks(shape: Size, chunks: Size) -> int:
    """Return the number of chunks."""
    return math.prod(-(-length // edge) for length, edge in zip(shape, chunks, strict=True))


def chunk_bytes(shape: Size, chunks: Size) -> int:
    """Return the bytes of the largest chunk."""
    return math.prod(map(min, shape, chunks)) * ITEM_BYTES


def size_text(size: Sequence[int]) -> str:
    """Write a size as users give it: ``100x200``."""
    return "x".join(map(str, size))


def random_numbers(device: Device, shape: Size, chunks: Size) -> Any:
    """Return a lazy array of normal(10, 1) numbers, whose chunks are arrays of the device."""
    import dask.array as da
    import numpy as np

    # Dask's own default generator depends on the user's `array.backend` setting.
    generator: Any = np.random.RandomState if device == "cpu" else _CupyRandomState()
    state = da.random.RandomState(RandomState=generator)
    return state.normal(10, 1, size=shape, chunks=chunks)


def as_float(total: Any) -> Any:
    """Return a lazy value that is a Python float wherever the chunks were."""
    import numpy as np

    return total.map_blocks(float, dtype=np.float64, meta=np.zeros(()))


class _CupyRandomState:
    """Stands for ``cupy.random.RandomState`` where neither CuPy nor a GPU may be at hand.

    Dask calls it here once, for an empty sample array; on its way to the scheduler it turns into
    CuPy's own class, so workers get the very graph that a client with CuPy would send.
    """

    def __call__(self, seed: Any) -> numpy.random.RandomState:
        import numpy as np

        return np.random.RandomState(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return pkgutil.resolve_name, ("cupy.random:RandomState",)
