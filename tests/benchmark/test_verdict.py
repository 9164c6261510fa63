"""Slow workers, hosts, links and falls below a baseline are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_gpucluster.benchmark import Options, kernels, run_benchmark, sending, table
from jupyter_gpucluster.benchmark.compare import find_baseline, save_baseline, verdict
from jupyter_gpucluster.benchmark.report import Link, Report, WorkerShare
from jupyter_gpucluster.core.errors import InvalidInput
from tests.benchmark.reports import DEEPOPS, a_report
from tests.waiting import workers_of

if TYPE_CHECKING:
    from distributed import Client


def of_shares(shares: Sequence[WorkerShare], rate: float = 100.0) -> Report:
    report = a_report(DEEPOPS, len(shares), {"gpu": 20.0})
    result = replace(report.results[0], shares=tuple(shares), rate=rate)
    return replace(report, results=(result,))


def a_share(number: int, rate: float, *, host: str = "node1", slowed: str = "") -> WorkerShare:
    return WorkerShare(f"gpc-{number}", host, "H100", 1.0, rate, f"{number:08x}", slowed)


def test_the_slow_worker_is_named_with_its_gpu_and_host() -> None:
    shares = [a_share(n, 500 if n == 3 else 1000) for n in range(4)]
    (finding,) = verdict(of_shares(shares))
    assert finding == (
        "worker gpc-3 on node1 (H100, GPU 00000003) is slow: 500 instead of 1000 GB/s (50 %)"
    )


def test_of_two_workers_the_slower_is_named() -> None:
    (finding,) = verdict(of_shares([a_share(0, 1000), a_share(1, 600)]))
    assert "gpc-1" in finding
    assert verdict(of_shares([a_share(n, 1000 + 10 * n) for n in range(8)])) == ()


def test_a_host_whose_workers_are_all_slow_is_named_once() -> None:
    shares = [a_share(n, 1000, host="node1") for n in range(4)]
    shares += [a_share(n, 700, host="node2") for n in range(4, 6)]
    (finding,) = verdict(of_shares(shares))
    assert finding.startswith("all workers of node2 are slow")


def a_link(giver: int, taker: int, rate: float = 20.0) -> Link:
    """Return a link between workers of which two are on each host."""
    return Link(f"gpc-{giver}", f"gpc-{taker}", f"node{giver // 2}", f"node{taker // 2}", rate)


def of_links(*slow: Link) -> Report:
    """Return a report of six workers on three hosts, some of whose links are slow."""
    odd = {(link.giver, link.taker): link for link in slow}
    links = [
        a_link(giver, taker, 150.0 if giver // 2 == taker // 2 else 20.0)
        for giver in range(6)
        for taker in range(6)
        if giver != taker
    ]
    report = of_shares([])
    found = tuple(odd.get((link.giver, link.taker), link) for link in links)
    return replace(report, results=(replace(report.results[0], links=found),))


def test_the_slow_link_is_named_with_both_of_its_ends() -> None:
    assert verdict(of_links()) == ()  # between hosts they may be slower than within one
    assert verdict(of_links(a_link(1, 4, 6.0), a_link(2, 3, 60.0))) == (
        "the link from worker gpc-2 on node1 to worker gpc-3 on node1 is slow: "
        "60 instead of 150 GB/s (40 %)",
        "the link from worker gpc-1 on node0 to worker gpc-4 on node2 is slow: "
        "6 instead of 20 GB/s (30 %)",
    )


def test_a_host_whose_links_to_others_are_all_slow_is_named_once() -> None:
    pairs = [(n, m) for n in range(6) for m in range(6) if (n // 2 == 2) != (m // 2 == 2)]
    assert verdict(of_links(*(a_link(giver, taker, 4.0) for giver, taker in pairs))) == (
        "every link of node2 to other hosts is slow: 4 instead of 20 GB/s (20 %)",
    )


def test_a_throttled_gpu_is_named_even_where_it_keeps_up() -> None:
    shares = [a_share(n, 1000, slowed="heat" if n == 1 else "") for n in range(4)]
    (finding,) = verdict(of_shares(shares))
    assert finding == "worker gpc-1 on node1 (H100, GPU 00000001) is throttled: heat"


def test_a_fall_below_the_baseline_is_reported_for_each_worker_and_each_gpu() -> None:
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


def test_a_baseline_of_other_devices_or_another_size_says_so() -> None:
    usual = of_shares([a_share(0, 1000)], rate=1000)
    fallen = of_shares([a_share(0, 800)], rate=800)
    other = replace(usual.results[0], names={"H100": 1})
    smaller = replace(usual, results=(other,), parameters={"shape": [5, 5]})
    devices, size, _ = verdict(fallen, smaller)
    assert devices == "the baseline is of other devices: H100"
    assert size.endswith(", whose size was another")
    assert "another" not in "".join(verdict(fallen, usual))


def test_a_baseline_is_found_again_by_workload_mode_and_device() -> None:
    usual = of_shares([a_share(0, 1000)])
    with pytest.raises(InvalidInput, match="no baseline of sum"):
        find_baseline(usual)
    assert save_baseline(usual).name == "sum-documents-tesla-p4.json"
    assert find_baseline(usual) == usual
    with pytest.raises(InvalidInput, match="no baseline"):
        find_baseline(replace(usual, mode="peak"))


def test_a_worker_that_is_really_slow_is_caught(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lame(board: dict[Any, Any], **share: Any) -> Any:
        import time

        from distributed import get_worker

        for given in kernels_there(board, **share):
            if isinstance(given, tuple) and get_worker().name == 1:
                time.sleep(0.001)
                given = given[0], 10 * given[1] + 60.0  # more than a busy machine costs the other
            yield given

    kernels_there = kernels.copy_steps
    monkeypatch.setattr(kernels, "copy_steps", lame)
    report = run_benchmark(client, Options(workload="copy"))
    (finding,) = verdict(report)
    assert finding.startswith("worker 1 on ")
    assert f"verdict: {finding}" in table(replace(report, verdict=(finding,)))


def test_a_link_that_is_really_slow_is_caught(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    import distributed.worker

    workers = workers_of(client).items()
    [slow] = [address for address, worker in workers if worker["name"] == 0]
    fetch = distributed.worker.get_data_from_worker

    async def over_a_slow_network(rpc: Any, keys: Any, worker: str, **named: Any) -> Any:
        await asyncio.sleep(0.1 if worker == slow else 0)
        return await fetch(rpc, keys, worker, **named)

    monkeypatch.setattr(distributed.worker, "get_data_from_worker", over_a_slow_network)
    monkeypatch.setattr(sending, "ROUNDS", 1)
    report = run_benchmark(client, Options(workload="shuffle"))
    (finding,) = verdict(report)
    assert finding.startswith("the link from worker 0 on ")
    assert " to worker 1 on " in finding
    text = "\n".join(table(report))
    assert "data over inproc" in text
    assert "each link: " in text
