"""Find what is slow: a worker among equal ones, or a report beside an earlier one."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..core.errors import InvalidInput
from ..state.paths import data_directory
from .report import (
    DeviceResult,
    Link,
    Report,
    WorkerShare,
    columns,
    counted,
    read_report,
    write_report,
)

SLOW = 0.85
"""Workers with the same device differ by some 3 % (H100, one host); so much less is a fault."""
FALLEN = 0.9
"""Repeated runs differ by some 3 %; so much less than the baseline is a change."""
GB_S = "GB/s"
SLOW_LINK = 0.5
"""Within a node NVLink, PCIe and the way between sockets differ; so much less is a fault."""


def verdict(report: Report, baseline: Report | None = None) -> tuple[str, ...]:
    """Return a sentence for each fault; empty without faults."""
    found: list[str] = []
    for result in report.results:
        found += [
            f"{_who(share)} is throttled: {share.slowed}" for share in result.shares if share.slowed
        ]
        found += _stragglers(result)
        found += _slow_links(result.links)
        if baseline is not None:
            found += _fallen(report, result, baseline)
    return tuple(found)


def _stragglers(result: DeviceResult) -> Iterator[str]:
    if len(result.shares) < 2:
        return
    usual = statistics.median_high(share.rate for share in result.shares)  # of two the faster
    slow = [share for share in result.shares if share.rate < SLOW * usual]
    hosts = {share.host for share in result.shares}
    for host in sorted(hosts):
        here = [share for share in result.shares if share.host == host]
        bad = [share for share in here if share in slow]
        if len(bad) == len(here) > 1 and len(hosts) > 1:
            rate = statistics.median(share.rate for share in bad)
            yield f"all workers of {host} are slow: {_against(rate, usual, result.unit)}"
            continue
        for share in bad:
            yield f"{_who(share)} is slow: {_against(share.rate, usual, result.unit)}"


def _slow_links(links: Sequence[Link]) -> Iterator[str]:
    """Name slow links, among those within hosts and among those between hosts; a host, once."""
    for between in (False, True):
        like = [link for link in links if (link.giver_host != link.taker_host) is between]
        if len(like) < 2:
            continue
        # One host of three is at an end of two thirds of the links between hosts.
        rates = sorted(link.rate for link in like)
        usual = rates[int(0.75 * len(rates))] if between else statistics.median_high(rates)
        slow = [link for link in like if link.rate < SLOW_LINK * usual]
        rest = list(slow)
        for host in sorted({link.taker_host for link in slow}) if between else ():
            mine = [link for link in like if host in (link.giver_host, link.taker_host)]
            if 1 < len(mine) < len(like) and all(link in slow for link in mine):
                rate = statistics.median(link.rate for link in mine)
                yield f"every link of {host} to other hosts is slow: {_against(rate, usual, GB_S)}"
                rest = [link for link in rest if link not in mine]
        for link in rest:
            yield (
                f"the link from worker {link.giver} on {link.giver_host} to worker {link.taker} "
                f"on {link.taker_host} is slow: {_against(link.rate, usual, GB_S)}"
            )


def _fallen(report: Report, result: DeviceResult, baseline: Report) -> Iterator[str]:
    if baseline.workload != report.workload or baseline.mode != report.mode:
        yield f"the baseline is of {baseline.workload} ({baseline.mode}); nothing was compared"
        return
    before = next((r for r in baseline.results if r.device == result.device), None)
    if before is None:
        yield f"the baseline has no figure of {result.device}"
        return
    if set(before.names) != set(result.names):
        yield f"the baseline is of other devices: {', '.join(sorted(before.names))}"
    now, then = result.rate / report.workers, before.rate / baseline.workers
    if now < FALLEN * then:
        # Sizes that were left open follow the number of workers: alone that is no finding.
        size = "" if baseline.parameters == report.parameters else ", whose size was another"
        yield (
            f"{result.device}: {_against(now, then, result.unit)} for each worker, "
            f"by the baseline of {baseline.date[:10]}{size}"
        )
    known = {share.gpu_id: share.rate for share in before.shares if share.gpu_id}
    for share in result.shares:
        usual = known.get(share.gpu_id, 0.0)
        if share.rate < FALLEN * usual:
            yield f"{_who(share)} has become slow: {_against(share.rate, usual, result.unit)}"


def _against(rate: float, usual: float, unit: str) -> str:
    return f"{rate:.4g} instead of {usual:.4g} {unit} ({100 * rate / usual:.0f} %)"


def _who(share: WorkerShare) -> str:
    gpu = f", GPU {share.gpu_id[:8]}" if share.gpu_id else ""
    return f"worker {share.worker} on {share.host} ({share.device}{gpu})"


def baseline_file(report: Report) -> Path:
    """Return the file of the baseline of a workload, mode and kind of device.

    Rates are compared per worker, so it names no number.
    """
    names = "-".join(sorted(_devices(report)))
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{report.workload}-{report.mode}-{names}").strip("-")
    return Path(data_directory(), "gpucluster", "baselines", f"{name.lower()}.json")


def _devices(report: Report) -> set[str]:
    return {name for result in report.results for name in result.names}


def save_baseline(report: Report) -> Path:
    """Keep a report as the baseline of its kind; an earlier one is replaced."""
    path = baseline_file(report)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_report(report, path)
    return path


def find_baseline(report: Report) -> Report:
    """Return the baseline of a report's kind.

    Raises
    ------
    InvalidInput
        There is no baseline, or it cannot be read.
    """
    path = baseline_file(report)
    if not path.is_file():
        words = f"There is no baseline of {report.workload} ({report.mode}) on these devices."
        hint = "Keep one with --save-baseline, or name a report: --against FILE."
        raise InvalidInput(words, hint=hint)
    return read_report(path)


def compare(earlier: Report, later: Report) -> list[str]:
    """Return rows with the speed-up of rates and the efficiency per worker, and remarks below.

    Rates are compared device by device; where no device is in both, first with first.

    Raises
    ------
    InvalidInput
        The reports are of different workloads.
    """
    require_same_workload(earlier.workload, later.workload)
    before = {result.device: result for result in earlier.results}
    common = [(before[after.device], after) for after in later.results if after.device in before]
    more_workers = later.workers / earlier.workers
    cells = [["device", "earlier s", "later s", "speed-up", "efficiency"]]
    for first, second in common or [(earlier.results[0], later.results[0])]:
        same = first.device == second.device
        speed_up = second.rate / first.rate
        device = second.device if same else f"{first.device} -> {second.device}"
        seconds = [f"{each.wall_seconds:.3f}" for each in (first, second)]
        efficiency = f"{100 * speed_up / more_workers:.1f} %" if same else "-"
        cells.append([device, *seconds, f"{speed_up:.3f}", efficiency])
    return [
        f"{counted(earlier.workers, 'worker')} earlier, {later.workers} later",
        *columns(cells, text={0}),
        *(f"remark: {remark}" for remark in _remarks(earlier, later)),
    ]


def require_same_workload(earlier: str, later: str) -> None:
    """Refuse reports of different workloads."""
    if earlier != later:
        hint = "Give two reports of one workload."
        raise InvalidInput(f"{earlier} and {later} cannot be compared.", hint=hint)


def _remarks(earlier: Report, later: Report) -> Iterator[str]:
    if earlier.mode != later.mode:
        yield f"different ways of computing: {earlier.mode}, {later.mode}"
    if earlier.parameters != later.parameters:
        yield "different sizes: the speed-up is that of rates, not of seconds"
    if (before := _devices(earlier)) != (after := _devices(later)):
        yield f"different devices: {', '.join(sorted(before))}; {', '.join(sorted(after))}"
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
