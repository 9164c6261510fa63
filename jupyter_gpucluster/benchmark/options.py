"""What a user may choose, where sizes left open come from, and how both read on a command line."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from ..errors import InvalidInput
from .workloads import COPIES, ITEM_BYTES, Crew, Device, Size, Sum, Workload

MAXIMUM_CHUNKS = 100_000
"""The graph carries 2.5 kB of generator state for each chunk: 250 MB here."""

EDGES = (10_000, 5_000, 2_000, 1_000, 500, 200, 100)
"""Edges of default chunks; the largest that fits is taken."""

# Largest edge and chunks per thread of the small default: some seconds on any number of workers.
# A GPU needs the documents' large chunks; with both, the processors have to do the same work.
SMALL: Mapping[tuple[Device, ...], tuple[int, int]] = MappingProxyType(
    {("cpu",): (2_000, 8), ("gpu",): (10_000, 64), ("gpu", "cpu"): (5_000, 32)}
)


@dataclass(frozen=True)
class Preset:
    """The size of a published run: rows and columns of the array and of a chunk."""

    shape: Size
    chunks: Size


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "deepops": Preset((500_000, 500_000), (10_000, 10_000)),
        "thetagpu": Preset((100_000, 100_000), (5_000, 5_000)),
    }
)


class Options(Protocol):
    """What a user chose for a workload, before the workers are known."""

    @property
    def device(self) -> str | None:
        """``gpu``, ``cpu``, ``both``; None = GPUs where the workers have them."""

    @property
    def repeats(self) -> int:
        """Runs on each device."""

    @property
    def workers(self) -> int | None:
        """How many workers to wait for and to run on; None = all there are."""

    def workload(self, crew: Crew) -> Workload:
        """Fill in what was left open."""


@dataclass(frozen=True)
class SumOptions:
    """What a user chose for `Sum`.

    Parameters
    ----------
    shape, chunks
        Rows and columns of the array and of a chunk; None = from the preset, or what suits the
        workers.
    preset
        A name in `PRESETS`.
    device
        ``gpu``, ``cpu``, ``both``; None = GPUs where the workers have them.
    repeats
        Runs on each device.
    workers
        How many workers to wait for and to run on; None = all there are.
    """

    shape: Size | None = None
    chunks: Size | None = None
    preset: str | None = None
    device: str | None = None
    repeats: int = 1
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.preset is not None and self.preset not in PRESETS:
            raise InvalidInput(
                f"Unknown preset: {self.preset}.",
                hint=f"Presets are {', '.join(PRESETS)}; without one the size fits the workers.",
                detail="preset",
            )
        if self.device not in (None, "gpu", "cpu", "both"):
            raise InvalidInput(
                f"Unknown device: {self.device}.",
                hint="Devices are gpu, cpu, both; without one GPUs are used where there are any.",
                detail="device",
            )
        for name, size in (("shape", self.shape), ("chunks", self.chunks)):
            if size is not None:
                _require_size(name, size)
        _require_count("repeats", self.repeats)
        if self.workers is not None:
            _require_count("workers", self.workers)
        if self.shape:
            self._require_fit(self.shape)

    def workload(self, crew: Crew) -> Sum:
        """Fill in what was left open; explicit sizes win over the preset's.

        The small default never fills memory: it needs room for the chunks in work only, so its
        chunks follow the workers' memory, and its shape the number of their threads.
        """
        preset = PRESETS[self.preset] if self.preset else None
        chunks = self.chunks or (preset.chunks if preset else _small_chunks(crew))
        shape = self.shape or (preset.shape if preset else _small_shape(crew, chunks))
        self._require_fit(shape)
        chosen = Sum(shape, (min(shape[0], chunks[0]), min(shape[1], chunks[1])))
        if chosen.pieces > MAXIMUM_CHUNKS:
            raise InvalidInput(
                f"{chosen.pieces} chunks are more than the {MAXIMUM_CHUNKS} that Dask can handle.",
                hint="Take larger --chunks or a smaller --shape.",
                detail="chunks",
            )
        return chosen

    def _require_fit(self, shape: Size) -> None:
        if self.chunks and (self.chunks[0] > shape[0] or self.chunks[1] > shape[1]):
            raise InvalidInput(
                f"Chunks {size_words(self.chunks)} do not fit into shape {size_words(shape)}.",
                hint="Take smaller --chunks or a larger --shape.",
                detail="chunks",
            )


def size_words(size: Sequence[int]) -> str:
    """Write a size as users give it: ``100x200``."""
    return "x".join(map(str, size))


def read_size(option: str) -> Callable[[str], Size]:
    """Return an argparse type: ``N`` (square) or ``NxM``; blanks and ``_`` may group digits."""

    def read(text: str) -> Size:
        match = re.fullmatch(r"([0-9]{1,12})(?:x([0-9]{1,12}))?", re.sub(r"[ _]", "", text.lower()))
        if not match or "0" in {part.lstrip("0") or "0" for part in match.groups() if part}:
            raise InvalidInput(
                f"{option} takes N or NxM, 1 or more, not {text!r}.",
                hint=f"For example {option} 20000 (square) or {option} 20000x10000.",
            )
        rows, columns = match.groups()
        return int(rows), int(columns or rows)

    return read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``bench sum`` takes beside the choice of a cluster."""
    size = parser.add_argument_group("size")
    size.add_argument(
        "--shape",
        metavar="N[xM]",
        type=read_size("--shape"),
        help="rows and columns of the array (default: some seconds of work for the workers)",
    )
    size.add_argument(
        "--chunks",
        metavar="N[xM]",
        type=read_size("--chunks"),
        help="rows and columns of a chunk (default: what fits into the workers' memory)",
    )
    size.add_argument(
        "--preset",
        metavar="NAME",
        help="a published size: "
        + ", ".join(
            f"{name} ({preset.shape[0]}x{preset.shape[1]})" for name, preset in PRESETS.items()
        ),
    )
    run = parser.add_argument_group("run")
    run.add_argument(
        "--device",
        metavar="gpu|cpu|both",
        help="what computes; both gives their ratio on the same workers "
        "(default: gpu where the workers have GPUs, else cpu)",
    )
    run.add_argument(
        "--repeats",
        metavar="N",
        type=_read_count("--repeats"),
        default=1,
        help="runs on each device; the fastest counts (default: 1)",
    )
    result = parser.add_argument_group("result")
    result.add_argument("--json", metavar="FILE", type=Path, help="write the report to FILE")
    result.add_argument(
        "--compare",
        metavar=("FILE", "FILE"),
        nargs="+",
        type=Path,
        help="compare this run with the report in FILE; two files are compared without a run",
    )


def options_from(args: argparse.Namespace) -> SumOptions:
    """Turn what `add_arguments` read into options; ``args.workers`` is used where there is one.

    Raises
    ------
    InvalidInput
        A bad value, or a report that could not be written or read after the run.
    """
    if args.json is not None and (args.json.is_dir() or not args.json.parent.is_dir()):
        raise InvalidInput(
            f"--json: cannot write {args.json}.", hint="Give a file in a folder that exists."
        )
    if len(args.compare or ()) > 2:
        raise InvalidInput(
            "--compare takes one or two files.", hint="Give the earlier report first."
        )
    for path in args.compare or ():
        if not path.is_file():
            raise InvalidInput(f"--compare: no such file: {path}.", hint="Give a report of --json.")
    return SumOptions(
        shape=args.shape,
        chunks=args.chunks,
        preset=args.preset,
        device=args.device,
        repeats=args.repeats,
        workers=getattr(args, "workers", None),
    )


def _read_count(option: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) < 1:
            raise InvalidInput(f"{option} takes a whole number, 1 or more, not {text!r}.")
        return int(text)

    return read


def _small_chunks(crew: Crew) -> Size:
    largest, _ = SMALL[crew.devices]
    edges = [edge for edge in EDGES if edge <= largest]
    # A quarter of a thread's share: Dask's workers begin to spill at 60 %, and CuPy keeps a pool.
    room = crew.memory_per_thread / 4 if crew.memory_per_thread else math.inf
    fitting = [edge for edge in edges if COPIES * edge * edge * ITEM_BYTES <= room]
    edge = fitting[0] if fitting else edges[-1]
    return edge, edge


def _small_shape(crew: Crew, chunks: Size) -> Size:
    _, per_thread = SMALL[crew.devices]
    count = math.ceil(math.sqrt(per_thread * crew.threads))
    return count * chunks[0], count * chunks[1]


def _require_size(name: str, size: Sequence[int]) -> None:
    if len(size) != 2 or not all(type(length) is int and length > 0 for length in size):
        raise InvalidInput(
            f"{name} takes two whole numbers, 1 or more, not {size_words(size)}.",
            hint=f"For example {name}=(20000, 10000).",
            detail=name,
        )


def _require_count(name: str, count: int) -> None:
    if type(count) is not int or count < 1:
        raise InvalidInput(f"{name} takes a whole number, 1 or more, not {count}.", detail=name)
