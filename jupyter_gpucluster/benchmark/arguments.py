"""How the benchmark's choices read on a command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from ..core.errors import InvalidInput
from .family import FamilyOptions
from .options import MODES, PRESETS, Options, SumOptions
from .workloads import Size


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
        "--mode",
        metavar="|".join(MODES),
        help="sum: documents = the published programs' own graph, generator and chunks; "
        "peak = as fast as the devices can (default: peak on GPUs, else documents)",
    )
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
    run.add_argument(
        "--scaling",
        metavar="strong|weak",
        help="run on 1, 2, 4 ... workers: strong = the same work, weak = as much for each worker",
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
    result.add_argument(
        "--plots", metavar="DIR", type=Path, help="draw the report into DIR, as PNG and SVG"
    )
    result.add_argument(
        "--save-baseline",
        action="store_true",
        help="keep the report as what is usual here, for --against",
    )
    result.add_argument(
        "--against",
        metavar="FILE",
        nargs="?",
        const="",
        help="say what is slower than in FILE, or than in the baseline that was kept",
    )


def options_from(args: argparse.Namespace) -> Options:
    """Turn what `add_arguments` read into options.

    ``args.workload`` and ``args.workers`` are used where there are any.

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
    if args.plots is not None and args.plots.exists() and not args.plots.is_dir():
        raise InvalidInput(f"--plots: {args.plots} is no folder.", hint="Name a folder.")
    if args.against and not Path(args.against).is_file():
        raise InvalidInput(f"--against: no such file: {args.against}.", hint="Give a report.")
    if args.scaling not in (None, "strong", "weak"):
        raise InvalidInput(
            f"--scaling takes strong or weak, not {args.scaling!r}.", detail="scaling"
        )
    workers = getattr(args, "workers", None)
    workload = getattr(args, "workload", "sum")
    if workload not in ("sum", "check-up"):
        _only_for_the_sum(args, workload)
        return FamilyOptions(workload, args.device, args.repeats, workers)
    return SumOptions(
        shape=args.shape,
        chunks=args.chunks,
        preset=args.preset,
        mode=args.mode,
        device=args.device,
        repeats=args.repeats,
        workers=workers,
    )


def _only_for_the_sum(args: argparse.Namespace, workload: str) -> None:
    for name in ("shape", "chunks", "preset", "mode"):
        if getattr(args, name) is not None:
            raise InvalidInput(
                f"--{name} is for the sum; the size of {workload} follows the workers.",
                detail=name,
            )


def _read_count(option: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,6}", text) or int(text) < 1:
            raise InvalidInput(f"{option} takes a whole number, 1 or more, not {text!r}.")
        return int(text)

    return read
