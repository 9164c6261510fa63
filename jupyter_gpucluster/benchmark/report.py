"""The report of a run: the documents' lines, a table, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import InvalidInput
from ..core.serialize import copied, from_json, to_json
from .workloads import Workload, size_text

SCHEMA = 1
"""Version of the JSON form; keys are added, not renamed, within one version."""


@dataclass(frozen=True)
class WorkerShare:
    """One worker's part of a run: seconds, rate in the report's unit, what slowed its GPU."""

    worker: str
    host: str
    device: str
    seconds: float
    rate: float
    gpu_id: str = ""
    slowed: str = ""


@dataclass(frozen=True)
class Link:
    """The rate of data from one worker's device memory to another's, in GB/s."""

    giver: str
    taker: str
    giver_host: str
    taker_host: str
    rate: float


@dataclass(frozen=True)
class Run:
    """One run in seconds: making the graph, computing it; and the value."""

    create_seconds: float
    compute_seconds: float
    value: float
    shares: tuple[WorkerShare, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def wall_seconds(self) -> float:
        """Create and compute, what the documents call wall time."""
        return self.create_seconds + self.compute_seconds


@dataclass(frozen=True)
class DeviceResult:
    """The runs on one device; seconds and rate are those of the fastest."""

    device: str
    names: Mapping[str, int]
    runs: tuple[Run, ...]
    create_seconds: float
    compute_seconds: float
    wall_seconds: float
    rate: float
    """Amount over wall time, in ``unit``."""
    unit: str = "GB/s"
    shares: tuple[WorkerShare, ...] = ()
    """Each worker's part of the fastest run, if it is known."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Other figures of the fastest run, such as ``round_trip_ms``."""
    ceiling: float | None = None
    """The most that the same devices can reach, as measured beside it, in ``unit``."""
    links: tuple[Link, ...] = ()
    """From worker to worker, where the workload measures that."""


@dataclass(frozen=True)
class Report:
    """One report; ``nbytes`` is the array's size, ``cpu_to_gpu`` how many times faster GPUs are."""

    workload: str
    mode: str
    date: str
    host: str
    parameters: Mapping[str, Any]
    nbytes: int
    pieces: int
    expected: float
    sigma: float
    workers: int
    threads: int
    hosts: tuple[str, ...]
    start_seconds: float | None
    results: tuple[DeviceResult, ...]
    cpu_to_gpu: float | None
    versions: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    """Sentences about slow workers, links and devices."""
    protocol: str = ""
    """The protocol between workers: ``tls``, ``tcp``, ``ucx``; empty in older reports."""
    schema: int = field(default=SCHEMA)


def device_result(
    device: str, names: Mapping[str, int], work: Workload, runs: Sequence[Run]
) -> DeviceResult:
    """Sum up the runs on one device."""
    fastest = min(runs, key=lambda run: run.wall_seconds)
    return copied(
        DeviceResult,
        fastest,
        device=device,
        names=names,
        runs=tuple(runs),
        rate=work.amount / fastest.wall_seconds,
        unit=work.unit,
    )


def document_lines(report: Report) -> list[str]:
    """Return the lines that the documents' programs print, for each device.

    Their first line says that the workers are those of a running scheduler, which they always
    are here.  Below 0.01 TB the array's size is given in GB, where theirs would read ``0.00 TB``.
    """
    lines = ["Using Distributed Dask"]
    for result in report.results:
        gpu = result.device == "gpu"
        memory = "GPU memory with CuPY" if gpu else "CPU memory"
        lines += [
            f"Allocating and initializing arrays using {memory}",
            f"Array size: {_array_size(report.nbytes)}.  Computing parallel sum . . .",
            "Processing complete.",
            f"Wall time create data + computation time: {result.wall_seconds:10.8f} seconds",
            "with gpus" if gpu else "without gpus",
            f"elapsed time: {result.compute_seconds:.6f}",
        ]
    return lines


def table(report: Report) -> list[str]:
    """Return the figures as aligned columns, under a heading and with the warnings below."""
    start = "" if report.start_seconds is None else f"; cluster start {report.start_seconds:.2f} s"
    protocol = f", data over {report.protocol}" if report.protocol else ""
    unit = report.results[0].unit
    rows = [["device", "create s", "compute s", "wall s", unit, "runs", "computed by"]]
    rows += [
        [
            result.device,
            f"{result.create_seconds:.3f}",
            f"{result.compute_seconds:.3f}",
            f"{result.wall_seconds:.3f}",
            _rate(result),
            str(len(result.runs)),
            ", ".join(f"{count} x {name}" for name, count in result.names.items()),
        ]
        for result in report.results
    ]
    lines = [
        f"{report.workload} ({report.mode}): {_size(report)}",
        f"{counted(report.workers, 'worker')}, {counted(report.threads, 'thread')}, "
        f"{counted(len(report.hosts), 'host')}{protocol}{start}",
        *columns(rows, text={0, 6}),
    ]
    lines += _extras(report)
    if report.cpu_to_gpu is not None:
        lines.append(f"GPUs are {report.cpu_to_gpu:.1f} times as fast as the same workers' CPUs")
    runs = [run for result in report.results for run in result.runs]
    off = ", ".join(f"{(run.value - report.expected) / report.sigma:+.2f}" for run in runs)
    lines.append(f"value within 5 standard deviations of what is expected: {off}")
    lines.append(", ".join(f"{name} {version}" for name, version in report.versions.items()))
    lines += [f"warning: {warning}" for warning in report.warnings]
    lines += [f"verdict: {finding}" for finding in report.verdict]
    return lines


def _size(report: Report) -> str:
    known = report.parameters
    if "chunks" not in known:
        return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in known.items())
    shape, chunks = size_text(known["shape"]), size_text(known["chunks"])
    return f"{shape} in {report.pieces} chunks of {chunks}, {report.nbytes / 1e9:.4g} GB"


def _rate(result: DeviceResult) -> str:
    return f"{result.rate:.2f}" if result.rate < 1000 else f"{result.rate:.0f}"


def _extras(report: Report) -> Iterator[str]:
    for result in report.results:
        if result.ceiling:
            share = 100 * result.rate / result.ceiling
            yield f"{share:.0f} % of what the devices' memory allows ({result.ceiling:.0f} here)"
        for name, value in result.figures.items():
            yield f"{name.replace('_', ' ')}: {value:.3g}"
        if result.links:
            worst, *_, best = sorted((*result.links, *result.links), key=lambda link: link.rate)
            yield (
                f"each link: {worst.rate:.3g} ({worst.giver} to {worst.taker}) to "
                f"{best.rate:.3g} GB/s ({best.giver} to {best.taker})"
            )
        if len(result.shares) > 1:
            slow, *_, fast = sorted(result.shares, key=lambda share: share.rate)
            yield (
                f"each worker alone: {slow.rate:.4g} ({slow.worker}) to "
                f"{fast.rate:.4g} {result.unit} ({fast.worker})"
            )


def columns(rows: Sequence[Sequence[str]], *, text: set[int]) -> list[str]:
    """Align cells: columns in ``text`` to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in text else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def counted(count: int, noun: str) -> str:
    """Return e.g. ``1 worker``, ``2 workers``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def write_report(report: Report, path: Path) -> None:
    """Write the JSON form; `read_report` reads it."""
    write_reports(report.workload, [report], path)


def write_reports(kind: str, reports: Sequence[Report], path: Path) -> None:
    """Write several reports as one document: ``schema``, ``kind``, ``reports``; one as it is."""
    series = {"schema": SCHEMA, "kind": kind, "reports": to_json(list(reports))}
    document = to_json(reports[0]) if kind == reports[0].workload else series
    try:
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        hint = "Give another file with --json."
        raise InvalidInput(f"Cannot write {path}: {error.strerror}.", hint=hint) from None


def read_report(path: Path) -> Report:
    """Read a file of `write_report`.

    Raises
    ------
    InvalidInput
        The file cannot be read, is no report, or comes from a newer version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] > SCHEMA:
            words = f"{path} was written by a newer version (schema {data['schema']})."
            raise InvalidInput(words, hint="Upgrade jupyter-gpucluster.")
        report = from_json(Report, data)
        if report.workers < 1 or not report.results:
            raise ValueError("it measured nothing")
        return report
    except OSError as error:
        raise InvalidInput(f"Cannot read {path}: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError):
        hint = "Write one with bench sum --json FILE."
        raise InvalidInput(f"{path} is not a benchmark report.", hint=hint) from None


def _array_size(nbytes: int) -> str:
    return f"{nbytes / 1e12:.2f} TB" if nbytes >= 1e10 else f"{nbytes / 1e9:.2f} GB"
