"""What a workload computes, and which results it accepts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from ..core.errors import GpuClusterError

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


class BenchmarkFailed(GpuClusterError):
    """The run did not end, or its result is wrong."""


@dataclass(frozen=True)
class Crew:
    """The workers as far as sizes depend on them.  Memory is in bytes, 0 = unknown."""

    devices: tuple[Device, ...]
    workers: int
    threads: int
    memory_per_thread: int


class Workload(Protocol):
    """One computation of one size; what measuring, checking and reporting need of it.

    ``mode`` tells ways of computing the same formula apart.  ``nbytes`` is what a rate is
    reckoned with; ``pieces`` is the number of tasks without a predecessor, which progress counts.
    """

    name: ClassVar[str]
    mode: ClassVar[str]

    @property
    def nbytes(self) -> int: ...
    @property
    def amount(self) -> float:
        """What a run does, in the unit of its rate times a second."""

    @property
    def unit(self) -> str:
        """The unit of the rate: ``GB/s``, ``TFLOP/s``, ``tasks/s``."""

    @property
    def pieces(self) -> int: ...
    @property
    def expected(self) -> float: ...
    @property
    def sigma(self) -> float: ...
    @property
    def parameters(self) -> dict[str, Any]:
        """What makes two runs the same work; JSON-ready."""

    def build(self, device: Device) -> Any:
        """Return a lazy Dask collection whose value is a float, or what `sending` takes instead."""

    def check(self, value: float) -> None:
        """Raise `BenchmarkFailed` where the value cannot be right."""

    def warnings(self, crew: Crew) -> list[str]:
        """Say what in the size spoils the figures or may end the run."""


@dataclass(frozen=True)
class Sum:
    """Make normal(10, 1) numbers, add 1, take every second row and column, sum."""

    shape: Size
    chunks: Size

    name: ClassVar[str] = "sum"
    mode: ClassVar[str] = "documents"
    unit: ClassVar[str] = "GB/s"

    @property
    def nbytes(self) -> int:
        """Size of the whole array, which is made, added to and thrown away."""
        return self.shape[0] * self.shape[1] * ITEM_BYTES

    @property
    def amount(self) -> float:
        """The same in GB."""
        return self.nbytes / 1e9

    @property
    def pieces(self) -> int:
        """Number of chunks."""
        return math.prod(
            -(-length // edge) for length, edge in zip(self.shape, self.chunks, strict=True)
        )

    @property
    def chunk_bytes(self) -> int:
        """Size of the largest chunk."""
        return math.prod(map(min, self.shape, self.chunks)) * ITEM_BYTES

    @property
    def summed(self) -> int:
        """Number of elements that enter the sum; of an odd length the larger half."""
        return -(-self.shape[0] // 2) * -(-self.shape[1] // 2)

    @property
    def expected(self) -> float:
        """The value to expect: a mean of 10, and 1, for each element summed."""
        return 11.0 * self.summed

    @property
    def sigma(self) -> float:
        """Standard deviation of the sum of independent elements of variance 1."""
        return math.sqrt(self.summed)

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes two runs the same work."""
        return {"shape": list(self.shape), "chunks": list(self.chunks), "dtype": "float64"}

    def build(self, device: Device) -> Any:
        """Return the lazy sum; computed, it is a Python float wherever the chunks were."""
        import numpy as np

        x = random_state(device).normal(10, 1, size=self.shape, chunks=self.chunks)
        total = (x + 1)[::2, ::2].sum()
        return total.map_blocks(float, dtype=np.float64, meta=np.zeros(()))

    def check(self, value: float) -> None:
        """Raise `BenchmarkFailed` unless the value lies within 5 standard deviations."""
        require_near(value, self.expected, self.sigma)

    def warnings(self, crew: Crew) -> list[str]:
        """Say what in the size spoils the figures or may end the run."""
        found = []
        need = COPIES * self.chunk_bytes
        per_thread = self.pieces / crew.threads
        least = max(CHUNKS_PER_THREAD[device] for device in crew.devices)
        if per_thread < least:
            found.append(
                f"{per_thread:.3g} chunks for each worker thread are few ({least} or more are "
                "better): workers wait at the end; take a larger --shape or smaller --chunks"
            )
        if 0 < crew.memory_per_thread < need:
            found.append(
                f"a chunk needs {need / 1e9:.3g} GB while it is worked on, and a worker has "
                f"{crew.memory_per_thread / 1e9:.3g} GB for each thread: it may run out of "
                "memory; take smaller --chunks"
            )
        return found


def require_near(value: float, expected: float, sigma: float) -> None:
    """Raise `BenchmarkFailed` unless a value lies within 5 standard deviations."""
    if not abs(value - expected) <= 5 * sigma:  # refuses NaN too
        raise BenchmarkFailed(
            f"Wrong result: {value:.9g} instead of {expected:.9g} give or take {5 * sigma:.2g}.",
            hint="Run again; if it stays wrong, suspect the device or its libraries.",
            detail=f"{(value - expected) / sigma:+.1f} standard deviations",
        )


def random_state(device: Device) -> Any:
    """Return Dask's random state, whose chunks are arrays of the device."""
    import dask.array as da
    import numpy as np

    # Dask's own default generator depends on the user's `array.backend` setting.
    generator: Any = np.random.RandomState if device == "cpu" else _CupyRandomState()
    return da.random.RandomState(RandomState=generator)


class _Module:
    """A module that is imported where it is unpickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        import importlib

        return importlib.import_module, (self.name,)


class _CupyRandomState:
    """Stands for ``cupy.random.RandomState`` where neither CuPy nor a GPU may be at hand.

    Dask calls it here once, for an empty sample array; on its way to the scheduler it turns into
    CuPy's own class, so workers get the very graph that a client with CuPy would send.
    """

    def __call__(self, seed: Any) -> numpy.random.RandomState:
        import numpy as np

        return np.random.RandomState(seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (_Module("cupy.random"), "RandomState")
