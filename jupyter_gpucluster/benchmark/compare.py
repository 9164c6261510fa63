"""Two reports side by side: speed-up, and efficiency per worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..core.errors import InvalidInput
from .report import DeviceResult, Report, columns, counted


@dataclass(frozen=True)
class Row:
    """One device of the earlier report against one of the later.

    ``speed_up`` is the ratio of rates; ``efficiency`` divides it by the ratio of workers, and is
    None between different devices.
    """

    earlier: str
    later: str
    earlier_seconds: float
    later_seconds: float
    speed_up: float
    efficiency: float | None


@dataclass(frozen=True)
class Comparison:
    """The changes from an earlier report to a later one."""

    earlier_workers: int
    later_workers: int
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]

    def table(self) -> list[str]:
        """Return the rows as aligned columns, with remarks below."""
        cells = [["device", "earlier s", "later s", "speed-up", "efficiency"]]
        for row in self.rows:
            same = row.earlier == row.later
            cells.append(
                [
                    row.later if same else f"{row.earlier} -> {row.later}",
                    f"{row.earlier_seconds:.3f}",
                    f"{row.later_seconds:.3f}",
                    f"{row.speed_up:.3f}",
                    "-" if row.efficiency is None else f"{100 * row.efficiency:.1f} %",
                ]
            )
        return [
            f"{counted(self.earlier_workers, 'worker')} earlier, {self.later_workers} later",
            *columns(cells, text={0}),
            *(f"remark: {remark}" for remark in self.remarks),
        ]


def compare(earlier: Report, later: Report) -> Comparison:
    """Compare rates device by device; where no device is in both, first with first.

    Raises
    ------
    InvalidInput
        The reports are of different workloads.
    """
    require_same_workload(earlier.workload, later.workload)
    more_workers = later.workers / earlier.workers
    return Comparison(
        earlier.workers,
        later.workers,
        tuple(_row(before, after, more_workers) for before, after in _pairs(earlier, later)),
        tuple(_remarks(earlier, later)),
    )


def require_same_workload(earlier: str, later: str) -> None:
    """Refuse reports of different workloads."""
    if earlier != later:
        raise InvalidInput(
            f"{earlier} and {later} cannot be compared.",
            hint="Give two reports of one workload.",
        )


def _pairs(earlier: Report, later: Report) -> list[tuple[DeviceResult, DeviceResult]]:
    before = {result.device: result for result in earlier.results}
    common = [(before[after.device], after) for after in later.results if after.device in before]
    return common or [(earlier.results[0], later.results[0])]


def _row(before: DeviceResult, after: DeviceResult, more_workers: float) -> Row:
    speed_up = _rate(after) / _rate(before)
    return Row(
        before.device,
        after.device,
        before.wall_seconds,
        after.wall_seconds,
        speed_up,
        speed_up / more_workers if before.device == after.device else None,
    )


def _rate(result: DeviceResult) -> float:
    return result.rate or result.gigabytes_per_second  # older reports have the latter only


def _remarks(earlier: Report, later: Report) -> Iterator[str]:
    if earlier.mode != later.mode:
        yield f"different ways of computing: {earlier.mode}, {later.mode}"
    if earlier.parameters != later.parameters:
        yield "different sizes: the speed-up is that of rates, not of seconds"
    names = [
        {name for result in report.results for name in result.names} for report in (earlier, later)
    ]
    if names[0] != names[1]:
        yield f"different devices: {', '.join(sorted(names[0]))}; {', '.join(sorted(names[1]))}"
    if earlier.threads * later.workers != later.threads * earlier.workers:
        yield (
            f"different threads for each worker: {earlier.threads / earlier.workers:g}, "
            f"{later.threads / later.workers:g}; the efficiency does not allow for that"
        )
    if earlier.versions != later.versions:
        changed = sorted(
            name
            for name in earlier.versions.keys() | later.versions.keys()
            if earlier.versions.get(name) != later.versions.get(name)
        )
        yield f"different versions of: {', '.join(changed)}"
