"""The formula of `sum`, its size and its check."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from jupyter_gpucluster.benchmark.workloads import (
    BenchmarkFailed,
    Crew,
    _CupyRandomState,
    document_sum,
)
from tests.benchmark.reports import LAPTOP


@pytest.mark.parametrize(
    "shape, chunks, summed, pieces",
    [
        ((10, 10), (5, 5), 25, 4),
        ((11, 10), (4, 3), 30, 12),
        ((1, 1), (1, 1), 1, 1),
        ((7, 1), (2, 1), 4, 4),
    ],
)
def test_counts_are_right_for_odd_sizes(
    shape: tuple[int, int], chunks: tuple[int, int], summed: int, pieces: int
) -> None:
    work = document_sum(shape, chunks, LAPTOP)
    assert work.pieces == pieces
    assert (work.expected, work.sigma) == (11.0 * summed, math.sqrt(summed))


@pytest.mark.parametrize("shape", [(600, 400), (601, 399), (333, 1)])
def test_the_sum_is_right_whatever_the_chunks_are(shape: tuple[int, int]) -> None:
    for edge in (shape[0], 100, 37):
        work = document_sum(shape, (edge, min(edge, shape[1])), LAPTOP)
        value = work.build("cpu").compute(scheduler="synchronous")
        assert type(value) is float
        work.check(value)


def test_two_builds_draw_different_numbers() -> None:
    work = document_sum((100, 100), (50, 50), LAPTOP)
    assert len({work.build("cpu").name for _ in range(5)}) == 5


def test_numpy_is_used_on_cpus_whatever_dasks_default_is() -> None:
    import dask

    with dask.config.set({"array.backend": "cupy"}):
        document_sum((100, 100), (50, 50), LAPTOP).build("cpu")


def test_a_sum_of_something_else_does_not_pass() -> None:
    import dask.array as da

    work = document_sum((1_000, 1_000), (500, 500), LAPTOP)
    x = da.random.RandomState().normal(10, 1, size=(1_000, 1_000), chunks=500)
    for wrong in (x[::2, ::2], (x + 1)[::2], (x + 1)[::2, ::3], (x + 1.02)[::2, ::2]):
        with pytest.raises(BenchmarkFailed, match="Wrong result"):
            work.check(float(wrong.sum().compute(scheduler="synchronous")))


def test_the_check_draws_the_line_at_five_standard_deviations() -> None:
    work = document_sum((200, 200), (100, 100), LAPTOP)
    work.check(work.expected + 4.99 * work.sigma)
    work.check(work.expected - 4.99 * work.sigma)
    for value in (work.expected + 5.01 * work.sigma, 0.0, math.inf, math.nan):
        with pytest.raises(BenchmarkFailed, match="Wrong result") as caught:
            work.check(value)
        assert caught.value.hint
        assert caught.value.exit_code == 1


def warned(edge: int, chunk: int, crew: Crew) -> tuple[str, ...]:
    return document_sum((edge, edge), (chunk, chunk), crew).warnings


def test_few_chunks_and_tight_memory_are_warned_about() -> None:
    (few,) = warned(4_000, 2_000, Crew(("cpu",), workers=2, threads=2, memory_per_thread=0))
    assert "2 chunks for each worker thread are few (4 or more are better)" in few
    (tight,) = warned(4_000, 2_000, Crew(("cpu",), 1, 1, memory_per_thread=10**6))
    assert "0.064 GB" in tight
    assert "smaller --chunks" in tight
    assert warned(4_000, 2_000, Crew(("cpu",), 1, 1, memory_per_thread=10**9)) == ()


def test_the_sizes_that_lost_their_gain_in_the_published_gpu_runs_are_warned_about() -> None:
    for cards, warnings in ((8, 0), (16, 1)):
        crew = Crew(("gpu",), cards, cards, memory_per_thread=40 * 10**9)
        assert len(warned(100_000, 5_000, crew)) == warnings


def test_the_gpu_graph_is_made_without_cupy_and_asks_for_cupy_where_it_arrives(a_cupy: Any) -> None:
    generator = pickle.dumps(_CupyRandomState())
    assert "cupy" not in __import__("sys").modules
    import cupy.random

    assert pickle.loads(generator) is cupy.random.RandomState  # noqa: S301  # our own bytes
