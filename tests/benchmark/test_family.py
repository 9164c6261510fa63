"""The workloads beside the sum, on a real cluster of two workers in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_gpucluster.benchmark import Options, check_up_table, run_check_up, table
from jupyter_gpucluster.benchmark import run_benchmark as run
from jupyter_gpucluster.benchmark.family import FAMILY, copy_memory, exchange, factors, product
from jupyter_gpucluster.benchmark.workloads import BenchmarkFailed, Crew
from jupyter_gpucluster.core.errors import InvalidInput

if TYPE_CHECKING:
    from distributed import Client

CARDS = Crew(("gpu",), workers=4, threads=4, memory_per_thread=80 * 10**9)


@pytest.mark.parametrize("name", list(FAMILY))
def test_each_workload_runs_on_processors_and_says_so(client: Client, name: str) -> None:
    report = run(client, Options(workload=name))
    (result,) = report.results
    assert report.workload == name
    assert result.rate > 0
    assert "run on processors" in " ".join(report.warnings)
    text = "\n".join(table(report))
    assert result.unit in text
    assert ("round trip ms" in text) == (name == "latency")
    assert bool(result.shares) == (name in ("copy", "matmul"))


@pytest.mark.parametrize("name", list(FAMILY))
def test_sizes_follow_the_cards(name: str) -> None:
    work = Options(workload=name).workload_for(CARDS)
    assert work.amount > 0
    assert work.pieces > 0
    assert work.warnings == ()


def test_a_factorisation_and_an_exchange_fit_the_memory_of_a_card() -> None:
    for choose in (factors, exchange):
        work = choose(CARDS, True, 4)
        assert work.nbytes / 4 <= CARDS.memory_per_thread / 8
    small = replace(CARDS, memory_per_thread=8 * 10**9)
    assert copy_memory(small, True, 4).parameters["bytes"] == 10**9


def test_one_kind_of_device_at_a_time() -> None:
    with pytest.raises(InvalidInput, match="one kind of device"):
        Options(workload="copy").workload_for(replace(CARDS, devices=("gpu", "cpu")))
    with pytest.raises(InvalidInput, match="Unknown workload: cpoy"):
        Options(workload="cpoy")


@pytest.mark.parametrize("value", [1e-3, float("nan")])
def test_a_wrong_product_is_refused(value: float) -> None:
    with pytest.raises(BenchmarkFailed, match="Wrong result"):
        product(CARDS, True, 4).check(value)


def test_the_check_up_runs_everything_and_ends_with_a_verdict(client: Client) -> None:
    reports = run_check_up(client)
    assert [report.workload for report in reports] == ["sum", *FAMILY]
    lines = check_up_table(reports)
    assert lines[0].startswith("workload")
    assert lines[-1].startswith("verdict: ")
    assert "run on processors, smaller than on GPUs" in lines


def test_a_worker_that_dies_under_a_long_task_ends_the_run(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyter_gpucluster.benchmark import measure
    from jupyter_gpucluster.benchmark.measure import Progress

    monkeypatch.setattr(measure, "PROGRESS_SECONDS", 0.05)
    closed: list[str] = []

    def close_one(step: Progress) -> None:
        if not closed:
            closed.extend(list(client.nthreads())[:1])
            client.run_on_scheduler(remove, closed[0])

    async def remove(address: str, dask_scheduler: Any = None) -> None:
        await dask_scheduler.remove_worker(address, stimulus_id="test", close=False)

    with pytest.raises(BenchmarkFailed, match="A worker went away"):
        run(client, Options((400_000, 100_000), mode="peak"), progress=close_one)
