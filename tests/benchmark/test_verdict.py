"""What is slower than it should be is named: a worker, a host, all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_gpucluster.benchmark import (
    FamilyOptions,
    find_baseline,
    kernels,
    run_benchmark,
    save_baseline,
    table,
    verdict,
)
from jupyter_gpucluster.benchmark.report import Report, WorkerShare
from jupyter_gpucluster.errors import InvalidInput
from tests.benchmark.reports import DEEPOPS, a_report

if TYPE_CHECKING:
    from distributed import Client


def of_shares(shares: Sequence[WorkerShare], rate: float = 100.0) -> Report:
    report = a_report(DEEPOPS, len(shares), {"gpu": 20.0})
    result = replace(report.results[0], shares=tuple(shares), rate=rate)
    return replace(report, results=(result,))


def a_share(number: int, rate: float, *, host: str = "node1", slowed: str = "") -> WorkerShare:
    return WorkerShare(f"gpc-{number}", host, "H100", 1.0, rate, f"{number:08x}", slowed)


def test_workers_that_are_alike_give_no_findings() -> None:
    assert verdict(of_shares([a_share(n, 1000 + 10 * n) for n in range(8)])) == ()


def test_the_slow_worker_is_named_with_its_gpu_and_host() -> None:
    shares = [a_share(n, 500 if n == 3 else 1000) for n in range(4)]
    (finding,) = verdict(of_shares(shares))
    assert finding == (
        "worker gpc-3 on node1 (H100, GPU 00000003) is slow: 500 instead of 1000 GB/s (50 %)"
    )


def test_of_two_workers_the_slower_is_named() -> None:
    (finding,) = verdict(of_shares([a_share(0, 1000), a_share(1, 600)]))
    assert "gpc-1" in finding


def test_a_host_whose_workers_are_all_slow_is_named_once() -> None:
    shares = [a_share(n, 1000, host="node1") for n in range(4)]
    shares += [a_share(n, 700, host="node2") for n in range(4, 6)]
    (finding,) = verdict(of_shares(shares))
    assert finding.startswith("all workers of node2 are slow")


def test_a_throttled_gpu_is_named_even_where_it_keeps_up() -> None:
    shares = [a_share(n, 1000, slowed="heat" if n == 1 else "") for n in range(4)]
    (finding,) = verdict(of_shares(shares))
    assert finding == "worker gpc-1 on node1 (H100, GPU 00000001) is throttled: heat"


def test_a_fall_below_the_baseline_is_told_for_each_worker_and_each_gpu() -> None:
    usual = of_shares([a_share(n, 1000) for n in range(4)], rate=4000)
    fallen = of_shares([a_share(n, 800) for n in range(4)], rate=3200)
    findings = verdict(fallen, usual)
    assert findings[0].startswith("gpu: 800 instead of 1000 GB/s (80 %) for each worker")
    assert len(findings) == 5
    assert verdict(usual, usual) == ()
    half = of_shares([a_share(n, 1000) for n in range(2)], rate=2000)
    assert verdict(half, usual) == ()


def test_a_baseline_of_something_else_is_not_compared() -> None:
    usual = of_shares([a_share(0, 1000)])
    assert "nothing was compared" in verdict(usual, replace(usual, mode="peak"))[0]


def test_a_baseline_is_found_again_by_workload_mode_and_device(tmp_path: Path) -> None:
    usual = of_shares([a_share(0, 1000)])
    with pytest.raises(InvalidInput, match="no baseline of sum"):
        find_baseline(usual, tmp_path)
    assert save_baseline(usual, tmp_path).name == "sum-documents-tesla-p4.json"
    assert find_baseline(usual, tmp_path) == usual
    with pytest.raises(InvalidInput, match="no baseline"):
        find_baseline(replace(usual, mode="peak"), tmp_path)


def test_a_worker_that_is_really_slow_is_caught(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lame(board: dict[Any, Any], **share: Any) -> Any:
        import time

        from distributed import get_worker

        for given in kernels_there(board, **share):
            if isinstance(given, tuple) and get_worker().name == 1:
                time.sleep(0.001)
                given = given[0], 3 * given[1] + 0.5
            yield given

    kernels_there = kernels.copy_steps
    monkeypatch.setattr(kernels, "copy_steps", lame)
    report = run_benchmark(client, FamilyOptions("copy"))
    (finding,) = verdict(report)
    assert finding.startswith("worker 1 on ")
    assert f"verdict: {finding}" in table(replace(report, verdict=(finding,)))
