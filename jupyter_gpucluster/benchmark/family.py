"""The workloads beside the sum: memory, arithmetic, factorisation, exchange, latency.

Each function chooses the size.  A lane is a GPU, or a thread of a CPU worker.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidInput
from . import kernels
from .sending import FromClient, Outcome
from .workloads import (
    ITEM_BYTES,
    Crew,
    Device,
    LongTasks,
    Size,
    Workload,
    as_float,
    random_numbers,
    size_of,
)

if TYPE_CHECKING:
    from distributed import Client

SHUFFLE = "shuffle"
"""The workload that also measures the links between workers."""


def copy_memory(crew: Crew, gpu: bool, lanes: int) -> Workload:
    """Copy device memory to device memory for half a second; reading and writing both count."""
    size, steps = (4 * 10**9, 300) if gpu else (64 * 10**6, 20)
    if crew.memory_per_thread:
        size = min(size, crew.memory_per_thread // 8)
    size = size // ITEM_BYTES * ITEM_BYTES
    nbytes = 2 * size * steps * lanes
    return _workload(
        "copy",
        gpu,
        parameters={"bytes": size, "steps": steps},
        nbytes=nbytes,
        amount=nbytes / 1e9,
        pieces=steps * lanes,
        build=_same_tasks(kernels.copy_steps, gpu=gpu, nbytes=size, steps=steps),
    )


def product(crew: Crew, gpu: bool, lanes: int) -> Workload:
    """Multiply square matrices for half a second."""
    size, steps = (8192, 20) if gpu else (768, 10)
    fixed = {"size": size, "dtype": "float64", "steps": steps}
    return _workload(
        "matmul",
        gpu,
        parameters=fixed,
        amount=2 * size**3 * steps * lanes / 1e12,
        unit="TFLOP/s",
        pieces=steps * lanes,
        sigma=1e-10,
        build=_same_tasks(kernels.product_steps, gpu=gpu, **fixed),
    )


def factors(crew: Crew, gpu: bool, lanes: int) -> Workload:
    """Find singular values and vectors of a tall and skinny array, some chunks for each lane.

    The squares of the singular values must add up to those of the elements, and the columns of U
    have length 1.
    """
    rows, columns, each = (100_000, 1_000, 8) if gpu else (5_000, 100, 4)
    shape, chunks = (rows * each * lanes, columns), (rows, columns)

    def build(device: Device) -> Any:
        import dask.array as da

        x = random_numbers(device, shape, chunks)
        u, s, _ = da.linalg.svd(x)
        return as_float(((s**2).sum() / (x**2).sum() + (u**2).sum() / columns) / 2)

    size = size_of(shape, chunks)
    return _workload("svd", gpu, **size, build=build, expected=1.0, sigma=1e-9)


def exchange(crew: Crew, gpu: bool, lanes: int) -> Workload:
    """Rearrange four slabs of rows for each lane into columns: all workers send to all others."""
    slabs = 4 * lanes
    edge = int(math.sqrt((1e9 if gpu else 16e6) * slabs / ITEM_BYTES)) // slabs * slabs
    return exchange_of((edge, edge), edge // slabs, gpu)


def exchange_of(shape: Size, slab: int, gpu: bool) -> Workload:
    """Rearrange slabs of so many rows into as many columns."""

    def build(device: Device) -> Any:
        import dask

        rows = random_numbers(device, shape, (slab, shape[1]))
        # Moving through disk, as Dask's other way does, would time the disk.
        with dask.config.set({"array.rechunk.method": "tasks"}):
            return as_float(rows.rechunk((shape[0], slab)).sum())

    elements = math.prod(shape)
    return _workload(
        SHUFFLE,
        gpu,
        **size_of(shape, (slab, shape[1])),
        build=build,
        expected=10.0 * elements,
        sigma=math.sqrt(elements),
    )


def latency(crew: Crew, gpu: bool, lanes: int) -> Workload:
    """Run tasks that do nothing for a second, then round trips of one of them."""
    tasks, trips = 2_000 if gpu else 400, 30

    def talk(client: Client, addresses: Sequence[str], show: Callable[[int], None]) -> Outcome:
        from distributed import wait

        def same(number: int) -> int:
            return number

        began = time.perf_counter()
        futures = client.map(same, range(tasks), pure=False, workers=list(addresses))
        # An interrupted `gather` leaves a traceback for each future (distributed 2026.8.0).
        wait(futures)
        value = float(sum(client.gather(futures)))
        seconds = time.perf_counter() - began
        show(tasks)
        times = []
        for number in range(trips):
            began = time.perf_counter()
            client.submit(same, number, pure=False, workers=list(addresses)).result()
            times.append(time.perf_counter() - began)
        middle = sorted(times)[trips // 2]
        return Outcome(value, seconds=seconds, figures={"round_trip_ms": 1000 * middle})

    return _workload(
        "latency",
        gpu,
        parameters={"tasks": tasks, "round_trips": trips},
        amount=float(tasks),
        unit="tasks/s",
        pieces=tasks + trips,
        expected=tasks * (tasks - 1) / 2,
        build=lambda device: FromClient(talk),
    )


FAMILY: Mapping[str, Callable[[Crew, bool, int], Workload]] = MappingProxyType(
    {"copy": copy_memory, "matmul": product, "svd": factors, SHUFFLE: exchange, "latency": latency}
)
WORKLOADS = ("sum", *FAMILY, "check-up")


def family_workload(name: str, crew: Crew) -> Workload:
    """Return a workload of `FAMILY`; with GPUs and processors both it would have two sizes."""
    if len(crew.devices) > 1:
        words = f"The workload {name} runs on one kind of device at a time."
        hint = "Use --device gpu or --device cpu."
        raise InvalidInput(words, hint=hint, detail="device")
    gpu = "gpu" in crew.devices
    return FAMILY[name](crew, gpu, crew.workers if gpu else crew.threads)


def _workload(
    name: str, gpu: bool, *, expected: float = 0.0, sigma: float = 0.1, **size: Any
) -> Workload:
    warnings = () if gpu else ("run on processors, smaller than on GPUs",)
    return Workload(
        name=name, mode="small", expected=expected, sigma=sigma, warnings=warnings, **size
    )


def _same_tasks(
    kernel: Callable[..., Iterator[Any]], **fixed: Any
) -> Callable[[Device], LongTasks]:
    """Return a builder of one task for each lane; the largest of their values counts."""

    def shares(count: int) -> list[dict[str, Any]]:
        return [{**fixed, "number": number} for number in range(count)]

    return lambda device: LongTasks(kernel, shares, max)
