"""The choices of a user, published sizes, and the sizes that a user left open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..core.errors import InvalidInput
from .family import FAMILY, family_workload
from .workloads import (
    COPIES,
    ITEM_BYTES,
    Crew,
    Device,
    Size,
    Workload,
    count_chunks,
    document_sum,
    peak_sum,
    size_text,
)

MAXIMUM_CHUNKS = 100_000
"""The graph carries 2.5 kB of generator state for each chunk: 250 MB here."""

EDGES = (10_000, 5_000, 2_000, 1_000, 500, 200, 100)
"""Edges of default chunks; the largest that fits is taken."""

# Largest edge and chunks per thread of the small default: some seconds on any number of workers.
# A GPU needs the documents' large chunks; with both, the processors have to do the same work.
SMALL: Mapping[tuple[Device, ...], tuple[int, int]] = MappingProxyType(
    {("cpu",): (2_000, 8), ("gpu",): (10_000, 64), ("gpu", "cpu"): (5_000, 32)}
)


PRESETS: Mapping[str, tuple[Size, Size]] = MappingProxyType(
    {
        "deepops": ((500_000, 500_000), (10_000, 10_000)),
        "thetagpu": ((100_000, 100_000), (5_000, 5_000)),
    }
)
"""The sizes of published runs: rows and columns of the array and of a chunk."""

MODES = ("documents", "peak")

PEAK_GPU_BYTES = 400e9
"""Of the default in peak mode for each GPU: a third of a second on an H100."""


CHOICES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "workload": ("sum", *FAMILY),
        "preset": tuple(PRESETS),
        "mode": MODES,
        "device": ("gpu", "cpu", "both"),
    }
)


@dataclass(frozen=True)
class Options:
    """The choices of a user, before the workers are known.

    Parameters
    ----------
    shape, chunks
        Of the sum: rows and columns of the array and of a chunk; None = from the preset, or what
        suits the workers.
    preset
        Of the sum: a name in `PRESETS`.
    mode
        Of the sum: ``documents``: their generator and graph; ``peak``: as fast as the devices can.
        None = peak on GPUs alone, documents otherwise, and wherever chunks were given.
    device
        ``gpu``, ``cpu``, ``both``; None = GPUs where the workers have them.
    repeats
        Runs on each device.
    workers
        Number of workers to wait for and to run on; None = all there are.
    workload
        ``sum``, or a name in `family.FAMILY`, whose size follows the workers.
    """

    shape: Size | None = None
    chunks: Size | None = None
    preset: str | None = None
    mode: str | None = None
    device: str | None = None
    repeats: int = 1
    workers: int | None = None
    workload: str = "sum"

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in known:
                hint = f"Choose from: {', '.join(known)}."
                raise InvalidInput(f"Unknown {name}: {value}.", hint=hint, detail=name)
        for name in ("shape", "chunks", "preset", "mode"):
            if self.workload != "sum" and getattr(self, name) is not None:
                raise InvalidInput(
                    f"--{name} is for the sum; the size of {self.workload} follows the workers.",
                    detail=name,
                )
        if self.mode == "peak" and self.chunks is not None:
            hint = "Leave --chunks out, or take --mode documents."
            raise InvalidInput("Peak mode chooses its own chunks.", hint=hint, detail="chunks")
        if self.shape:
            self._require_fit(self.shape)

    def workload_for(self, crew: Crew) -> Workload:
        """Fill in what was left open; explicit sizes win over the preset's.

        The small default of the sum never fills memory: it needs room for the chunks in work only,
        so its chunks follow the workers' memory, and its shape the number of their threads.
        """
        if self.workload != "sum":
            return family_workload(self.workload, crew)
        preset_shape, preset_chunks = PRESETS[self.preset] if self.preset else (None, None)
        if (self.mode or self._usual_mode(crew)) == "peak":
            return peak_sum(self.shape or preset_shape or _peak_shape(crew), crew)
        chunks = self.chunks or preset_chunks or _small_chunks(crew)
        shape = self.shape or preset_shape or _small_shape(crew, chunks)
        self._require_fit(shape)
        chunks = (min(shape[0], chunks[0]), min(shape[1], chunks[1]))
        count = count_chunks(shape, chunks)
        if count > MAXIMUM_CHUNKS:
            words = f"{count} chunks are more than the {MAXIMUM_CHUNKS} that Dask can handle."
            hint = "Take larger --chunks or a smaller --shape."
            raise InvalidInput(words, hint=hint, detail="chunks")
        return document_sum(shape, chunks, crew)

    def _usual_mode(self, crew: Crew) -> str:
        # A preset names the documents' program: its shape, its chunks, its generator.
        own = self.chunks is None and self.preset is None
        return "peak" if crew.devices == ("gpu",) and own else "documents"

    def _require_fit(self, shape: Size) -> None:
        if self.chunks and (self.chunks[0] > shape[0] or self.chunks[1] > shape[1]):
            words = f"Chunks {size_text(self.chunks)} do not fit into shape {size_text(shape)}."
            hint = "Take smaller --chunks or a larger --shape."
            raise InvalidInput(words, hint=hint, detail="chunks")


def _small_chunks(crew: Crew) -> Size:
    largest, _ = SMALL[crew.devices]
    edges = [edge for edge in EDGES if edge <= largest]
    # A quarter of a thread's share: Dask's workers begin to spill at 60 %, and CuPy keeps a pool.
    room = crew.memory_per_thread / 4 if crew.memory_per_thread else math.inf
    edge = next((edge for edge in edges if COPIES * edge * edge * ITEM_BYTES <= room), edges[-1])
    return edge, edge


def _peak_shape(crew: Crew) -> Size:
    if "gpu" not in crew.devices:
        return _small_shape(crew, _small_chunks(crew))
    edge = round(math.sqrt(PEAK_GPU_BYTES * crew.workers / ITEM_BYTES), -3)
    return int(edge), int(edge)


def _small_shape(crew: Crew, chunks: Size) -> Size:
    _, per_thread = SMALL[crew.devices]
    count = math.ceil(math.sqrt(per_thread * crew.threads))
    return count * chunks[0], count * chunks[1]
