"""The other workloads: memory, arithmetic, factorisation, exchange."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from ..core.errors import InvalidInput
from . import kernels
from .latency import Latency
from .members import Member
from .options import require_count, require_device
from .peak import LongTasks
from .workloads import ITEM_BYTES, Crew, Device, Workload, random_state


@dataclass(frozen=True)
class Copy(Member):
    """Copy device memory to device memory; both reading and writing count."""

    size: int
    steps: int
    name: ClassVar[str] = "copy"

    @classmethod
    def of(cls, crew: Crew, gpu: bool, lanes: int) -> Copy:
        """Take what fills the device for half a second."""
        size, steps = (4 * 10**9, 300) if gpu else (64 * 10**6, 20)
        if crew.memory_per_thread:
            size = min(size, crew.memory_per_thread // 8)
        return cls(gpu, lanes, size // ITEM_BYTES * ITEM_BYTES, steps)

    @property
    def nbytes(self) -> int:  # type: ignore[override]  # a field there, reckoned here
        """Bytes read and written."""
        return 2 * self.size * self.steps * self.lanes

    @property
    def amount(self) -> float:
        """The same in GB."""
        return self.nbytes / 1e9

    @property
    def pieces(self) -> int:
        """Number of copies."""
        return self.steps * self.lanes

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes two runs the same work."""
        return {"bytes": self.size, "steps": self.steps}

    def build(self, device: Device) -> LongTasks:
        """Return one task for each lane."""
        fixed = {"gpu": self.gpu, "nbytes": self.size, "steps": self.steps}
        return LongTasks(kernels.copy_steps, _like(fixed), max)


@dataclass(frozen=True)
class Product(Member):
    """Multiply square matrices."""

    size: int
    steps: int
    dtype: str = "float64"
    name: ClassVar[str] = "matmul"
    unit: ClassVar[str] = "TFLOP/s"
    sigma = 1e-10

    @classmethod
    def of(cls, crew: Crew, gpu: bool, lanes: int) -> Product:
        """Take what fills the device for half a second."""
        return cls(gpu, lanes, *((8192, 20) if gpu else (768, 10)))

    @property
    def amount(self) -> float:
        """Floating-point operations, in millions of millions."""
        return 2 * self.size**3 * self.steps * self.lanes / 1e12

    @property
    def pieces(self) -> int:
        """Number of products."""
        return self.steps * self.lanes

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes two runs the same work."""
        return {"size": self.size, "steps": self.steps, "dtype": self.dtype}

    def build(self, device: Device) -> LongTasks:
        """Return one task for each lane."""
        fixed = {"gpu": self.gpu, "size": self.size, "dtype": self.dtype, "steps": self.steps}
        return LongTasks(kernels.product_steps, _like(fixed), max)


@dataclass(frozen=True)
class OfArray(Member):
    """A Dask graph over an array of normal(10, 1) numbers."""

    shape: tuple[int, int]
    chunks: tuple[int, int]

    @property
    def nbytes(self) -> int:  # type: ignore[override]  # a field there, reckoned here
        """Size of the array."""
        return math.prod(self.shape) * ITEM_BYTES

    @property
    def amount(self) -> float:
        """The same in GB."""
        return self.nbytes / 1e9

    @property
    def pieces(self) -> int:
        """Number of chunks."""
        return math.prod(-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes two runs the same work."""
        return {"shape": list(self.shape), "chunks": list(self.chunks)}

    def numbers(self, device: Device) -> Any:
        """Return the lazy array."""
        return random_state(device).normal(10, 1, size=self.shape, chunks=self.chunks)


@dataclass(frozen=True)
class Factors(OfArray):
    """Singular values and vectors of a tall and skinny array.

    The squares of the singular values must add up to those of the elements, and the columns of U
    have length 1.
    """

    name: ClassVar[str] = "svd"
    expected = 1.0
    sigma = 1e-9

    @classmethod
    def of(cls, crew: Crew, gpu: bool, lanes: int) -> Factors:
        """Take some chunks for each lane."""
        rows, columns, each = (100_000, 1_000, 8) if gpu else (5_000, 100, 4)
        return cls(gpu, lanes, (rows * each * lanes, columns), (rows, columns))

    def build(self, device: Device) -> Any:
        """Return the lazy mean of the two checks."""
        import dask.array as da
        import numpy as np

        x = self.numbers(device)
        u, s, _ = da.linalg.svd(x)
        value = ((s**2).sum() / (x**2).sum() + (u**2).sum() / self.shape[1]) / 2
        return value.map_blocks(float, dtype=np.float64, meta=np.zeros(()))


@dataclass(frozen=True)
class Exchange(OfArray):
    """Rearrange rows into columns: every worker sends to every other one."""

    name: ClassVar[str] = "shuffle"

    @classmethod
    def of(cls, crew: Crew, gpu: bool, lanes: int) -> Exchange:
        """Take four slabs of rows for each lane, and as many of columns."""
        slabs = 4 * lanes
        each = 1e9 if gpu else 16e6
        edge = int(math.sqrt(each * slabs / ITEM_BYTES)) // slabs * slabs
        return cls(gpu, lanes, (edge, edge), (edge // slabs, edge))

    @property
    def expected(self) -> float:  # type: ignore[override]  # a field there, reckoned here
        """The sum of all elements."""
        return 10.0 * math.prod(self.shape)

    @property
    def sigma(self) -> float:  # type: ignore[override]  # a field there, reckoned here
        """Standard deviation of the sum."""
        return math.sqrt(math.prod(self.shape))

    def build(self, device: Device) -> Any:
        """Return the lazy sum over the rearranged array."""
        import dask
        import numpy as np

        # Moving through disk, as Dask's other way does, would time the disk.
        with dask.config.set({"array.rechunk.method": "tasks"}):
            total = self.numbers(device).rechunk((self.shape[0], self.chunks[0])).sum()
        return total.map_blocks(float, dtype=np.float64, meta=np.zeros(()))


FAMILY: Mapping[str, Callable[[Crew, bool, int], Workload]] = MappingProxyType(
    {member.name: member.of for member in (Copy, Product, Factors, Exchange, Latency)}
)
WORKLOADS = ("sum", *FAMILY, "check-up")


@dataclass(frozen=True)
class FamilyOptions:
    """What a user chose for a workload of `FAMILY`; its size follows the workers."""

    name: str
    device: str | None = None
    repeats: int = 1
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.name not in FAMILY:
            raise InvalidInput(f"There is no workload {self.name!r}.", detail="workload")
        require_device(self.device)
        require_count("repeats", self.repeats)
        if self.workers is not None:
            require_count("workers", self.workers)

    def workload(self, crew: Crew) -> Workload:
        """Choose the size; with GPUs and processors both it could not be the same."""
        if len(crew.devices) > 1:
            raise InvalidInput(
                f"The workload {self.name} runs on one kind of device at a time.",
                hint="Use --device gpu or --device cpu.",
                detail="device",
            )
        gpu = "gpu" in crew.devices
        return FAMILY[self.name](crew, gpu, crew.workers if gpu else crew.threads)


def _like(fixed: dict[str, Any]) -> Callable[[int], list[dict[str, Any]]]:
    def shares(count: int) -> list[dict[str, Any]]:
        return [{**fixed, "number": number} for number in range(count)]

    return shares
