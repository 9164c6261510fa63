"""The parallel sum as a good engineer would write it: long tasks, one generator for each worker."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from . import kernels
from .workloads import ITEM_BYTES, Crew, Device, Sum

GPU_STEP = 8e9
"""Bytes of a step on a GPU: 7 ms of an H100, so that Python keeps up; its generator fills fully."""
CPU_STEP = 2e6
"""Bytes of a step on a CPU: it stays in a core's second cache from one pass to the next."""
PART_OF_MEMORY = 0.5
"""At most so much of a worker's memory is taken for a step."""


@dataclass(frozen=True)
class LongTasks:
    """One task for each worker thread, which runs in steps; `kernels.long_task` says how."""

    kernel: Callable[..., Iterator[Any]]
    shares: Callable[[int], list[dict[str, Any]]]
    """The arguments of so many tasks; fewer where there is less work."""
    fold: Callable[[Sequence[float]], float]
    """The value of the whole from those of the tasks."""


@dataclass(frozen=True)
class PeakSum(Sum):
    """The same formula; ``chunks`` is what one step holds, ``shares`` the number of tasks.

    The numbers are made in device memory with the mean in them; adding 1 and summing every second
    row and column reads them from there once.  The elements that the formula drops are made, but
    1 is not added to them.
    """

    mode: ClassVar[str] = "peak"

    def build(self, device: Device) -> LongTasks:
        """Return the tasks: each takes rows that follow each other."""
        gpu = device == "gpu"
        step = self.chunks[0] if gpu else min(self.chunks[0], _rows(CPU_STEP, self.shape[1]))
        seed = _fresh_seed()

        def shares(count: int) -> list[dict[str, Any]]:
            return [
                {
                    "gpu": gpu,
                    "rows": rows,
                    "columns": self.shape[1],
                    "step": step,
                    "number": number,
                    "seed": seed,
                }
                for number, rows in enumerate(even_shares(self.shape[0], count))
            ]

        return LongTasks(kernels.sum_steps, shares, math.fsum)

    def warnings(self, crew: Crew) -> list[str]:
        """Say what in the size spoils the figures."""
        if self.nbytes / crew.workers < 10 * GPU_STEP and "gpu" in crew.devices:
            return ["so small a size shows the start of tasks rather than the GPUs' rate"]
        return []


def peak_sum(shape: tuple[int, int], crew: Crew, devices: Sequence[Device]) -> PeakSum:
    """Choose the rows of a step: by memory, and no more than each task gets."""
    wanted = GPU_STEP if "gpu" in devices else CPU_STEP
    if crew.memory_per_thread:
        wanted = min(wanted, PART_OF_MEMORY * crew.memory_per_thread)
    tasks = crew.workers if "gpu" in devices else crew.threads
    most = even_shares(shape[0], tasks)[0]
    return PeakSum(shape, (min(_rows(wanted, shape[1]), most), shape[1]))


def _rows(nbytes: float, columns: int) -> int:
    """Return how many rows fit, an even number."""
    return max(2, int(nbytes / (columns * ITEM_BYTES)) // 2 * 2)


def even_shares(rows: int, count: int) -> list[int]:
    """Split rows among tasks, an even number for each but the last; no task gets none.

    >>> even_shares(11, 4)
    [4, 4, 3]
    """
    share = 2 * math.ceil(rows / 2 / count)
    return [min(share, rows - first) for first in range(0, rows, share)]


def _fresh_seed() -> int:
    import secrets

    return secrets.randbits(48)
