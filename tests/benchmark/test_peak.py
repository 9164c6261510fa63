"""The sum in peak mode: long tasks that tell how far they are, and that can be stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from jupyter_gpucluster.benchmark import Options, kernels, measure
from jupyter_gpucluster.benchmark import run_benchmark as run
from jupyter_gpucluster.benchmark.measure import Progress
from jupyter_gpucluster.benchmark.workloads import Crew, chunk_bytes, even_shares, peak_sum
from jupyter_gpucluster.core.errors import InvalidInput
from tests.waiting import until

if TYPE_CHECKING:
    from distributed import Client

PEAK = Options((1_001, 999), mode="peak")
LONG = Options((400_000, 100_000), mode="peak")
CARD = Crew(("gpu",), workers=4, threads=4, memory_per_thread=80 * 10**9)


def test_the_peak_sum_is_right_and_names_what_each_worker_did(client: Client) -> None:
    report = run(client, PEAK)
    assert (report.mode, report.workers) == ("peak", 2)
    (result,) = report.results
    assert len(result.shares) == 2
    assert {share.slowed for share in result.shares} == {""}
    assert all(share.rate > 0 and share.seconds > 0 for share in result.shares)


@given(rows=some.integers(1, 10_000), count=some.integers(1, 300))
def test_shares_cover_all_rows_and_begin_at_even_ones(rows: int, count: int) -> None:
    shares = even_shares(rows, count)
    assert sum(shares) == rows
    assert len(shares) <= count
    assert all(share % 2 == 0 for share in shares[:-1])
    assert min(shares) > 0


@pytest.mark.parametrize("size", [(1, 1), (7, 5), (8, 6), (301, 40)])
def test_steps_add_up_to_the_sum_of_every_second_row_and_column(size: tuple[int, int]) -> None:
    rows, columns = size
    steps = kernels.sum_on_cpu({}, gpu=False, rows=rows, columns=columns, step=2, number=0, seed=1)
    value = list(steps)[-1]
    peak_sum(size, CARD).check(value)


def test_a_step_fits_the_memory_of_a_gpu_and_is_even() -> None:
    shape = (500_000, 500_000)
    rows, columns = peak_sum(shape, CARD).parameters["chunks"]
    assert rows % 2 == 0
    assert 4e9 < chunk_bytes(shape, (rows, columns)) <= 8e9
    rows, columns = peak_sum(shape, Crew(("gpu",), 4, 4, 10**9)).parameters["chunks"]
    assert chunk_bytes(shape, (rows, columns)) <= 10**9 / 2


def test_gpus_alone_run_in_peak_mode_unless_chunks_say_otherwise() -> None:
    assert Options().workload_for(CARD).mode == "peak"
    assert Options(chunks=(1_000, 1_000)).workload_for(CARD).mode == "documents"
    both = Crew(("gpu", "cpu"), 4, 4, 10**9)
    assert Options().workload_for(both).mode == "documents"
    with pytest.raises(InvalidInput, match="chooses its own chunks"):
        Options(chunks=(10, 10), mode="peak")
    with pytest.raises(InvalidInput, match="Unknown mode"):
        Options(mode="fast")


@pytest.mark.slow
def test_no_worker_is_missed_while_the_client_refreshes_what_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dask
    from distributed import Client, LocalCluster

    monkeypatch.setattr(measure, "PROGRESS_SECONDS", 0.001)
    steps: list[Progress] = []
    # Every 2 s by itself; the refresh asks for no workers.
    often = {"distributed.client.scheduler-info-interval": "1ms"}
    with (
        dask.config.set(often),
        LocalCluster(
            2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as c,
        Client(c) as client,
    ):
        run(client, Options((4_000, 5_000), mode="peak"), progress=steps.append)
    assert len(steps) > 2


def test_an_interrupt_ends_long_tasks_between_two_steps(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "PROGRESS_SECONDS", 0.05)

    def interrupt(step: Progress) -> None:
        raise KeyboardInterrupt

    def busy(dask_worker: Any) -> int:
        return len(dask_worker.state.executing) + len(dask_worker.state.tasks)

    with pytest.raises(KeyboardInterrupt):
        run(client, LONG, progress=interrupt)
    until(lambda: not any(client.run(busy).values()))
