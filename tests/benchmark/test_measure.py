"""Runs on a real cluster of two workers in this process."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from jupyter_gpucluster.benchmark import BenchmarkFailed, Options, measure
from jupyter_gpucluster.benchmark import run_benchmark as run
from jupyter_gpucluster.benchmark.measure import Progress
from jupyter_gpucluster.benchmark.workloads import Crew, Workload, document_sum
from jupyter_gpucluster.core.errors import InvalidInput, UnsuitableEnvironment
from tests.waiting import until

if TYPE_CHECKING:
    from distributed import Client

TINY = Options(shape=(1_001, 999), chunks=(200, 250))
LONG = Options(shape=(60_000, 60_000), chunks=(1_000, 1_000))


def tasks_of(dask_scheduler: Any = None) -> int:
    return len(dask_scheduler.tasks)


@dataclass(frozen=True)
class AlteredOptions(Options):
    """The sum with something done to its lazy value."""

    change: Callable[[Any], Any] = lambda lazy: lazy

    def workload_for(self, crew: Crew) -> Workload:
        work = document_sum((400, 400), (100, 100), crew)
        return replace(work, build=lambda device: self.change(work.build(device)))


def test_a_run_reports_sizes_times_workers_and_versions(client: Client) -> None:
    import numpy

    report = run(client, TINY, start_seconds=1.5)
    assert (report.workload, report.mode, report.pieces) == ("sum", "documents", 24)
    assert report.nbytes == 1_001 * 999 * 8
    assert (report.workers, report.threads, report.start_seconds) == (2, 2, 1.5)
    assert report.expected == 11.0 * 501 * 500
    (result,) = report.results
    assert result.device == "cpu"
    assert sum(result.names.values()) == 2
    (timed,) = result.runs
    assert timed.create_seconds > 0
    assert timed.compute_seconds > 0
    assert abs(timed.value - report.expected) <= 5 * report.sigma
    until(lambda: not client.run_on_scheduler(tasks_of))
    assert report.versions["numpy"] == numpy.__version__
    assert ("cupy" in report.versions) == (importlib.util.find_spec("cupy") is not None)
    assert report.cpu_to_gpu is None


def test_repeats_are_all_kept_and_draw_new_numbers(client: Client) -> None:
    report = run(client, Options((400, 400), (100, 100), repeats=3))
    assert len({timed.value for timed in report.results[0].runs}) == 3


def test_a_run_can_be_kept_to_some_of_the_workers(client: Client) -> None:
    def busy(dask_worker: Any) -> bool:
        return bool(dask_worker.state.executed_count)

    report = run(client, Options((400, 400), (100, 100), workers=1))
    assert (report.workers, report.threads) == (1, 1)
    assert sum(client.run(busy).values()) == 1


@pytest.mark.parametrize(
    "options, chunks",
    [
        (Options((6_000, 6_000), (1_000, 1_000)), 36),
        (Options((10_000, 10_000), mode="peak"), None),  # long tasks, which report themselves
    ],
)
def test_progress_counts_chunks_up_to_all_of_them(
    client: Client, monkeypatch: pytest.MonkeyPatch, options: Options, chunks: int | None
) -> None:
    monkeypatch.setattr(measure, "PROGRESS_SECONDS", 0.02)
    steps: list[Progress] = []
    report = run(client, options, progress=steps.append)
    counts = [step.done for step in steps]
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
    assert counts[-1] == report.pieces == (chunks or report.pieces)
    about = {(step.device, step.run, step.runs, step.total) for step in steps}
    assert about == {("cpu", 1, 1, report.pieces)}


@pytest.mark.parametrize("mistake", [KeyboardInterrupt(), ZeroDivisionError("of the caller")])
def test_an_interrupt_or_error_of_the_caller_cancels_the_tasks_and_arrives_as_it_is(
    client: Client, monkeypatch: pytest.MonkeyPatch, mistake: BaseException
) -> None:
    monkeypatch.setattr(measure, "PROGRESS_SECONDS", 0.02)

    def stumble(step: Progress) -> None:
        raise mistake

    with pytest.raises(type(mistake)) as caught:
        run(client, LONG, progress=stumble)
    assert caught.value is mistake
    until(lambda: not client.run_on_scheduler(tasks_of))


def test_a_wrong_sum_fails_the_run(client: Client) -> None:
    with pytest.raises(BenchmarkFailed, match="Wrong result"):
        run(client, AlteredOptions(change=lambda lazy: lazy * 1.01))
    until(lambda: not client.run_on_scheduler(tasks_of))


@pytest.mark.parametrize(
    "error, message",
    [
        (MemoryError("no room"), "A worker ran out of memory"),
        (ValueError("odd"), "A task failed: ValueError: odd"),
        (TimeoutError("late"), "A task failed: TimeoutError: late"),
    ],
)
def test_a_task_that_fails_fails_the_run(client: Client, error: Exception, message: str) -> None:
    def fail(block: Any) -> Any:
        raise error

    with pytest.raises(BenchmarkFailed, match=message) as caught:
        run(client, AlteredOptions(change=lambda lazy: lazy.map_blocks(fail, dtype=float)))
    assert caught.value.hint


def load(message: str) -> Exception:
    """Load as the worker does, which tries it before it sends; then fail as a client does."""
    if LOADS:
        raise ImportError("no such library here")
    LOADS.append(message)
    return OutOfMemoryError(message)


LOADS: list[str] = []


class OutOfMemoryError(Exception):
    """Like CuPy's, in a client that lacks CuPy."""

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (str(self),)


def test_errors_of_libraries_that_the_client_lacks_are_reported(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    LOADS.clear()

    def fail(block: Any) -> Any:
        raise OutOfMemoryError("out of 80 GB")

    change = AlteredOptions(change=lambda lazy: lazy.map_blocks(fail, dtype=float, meta=0.0))
    with pytest.raises(BenchmarkFailed, match="A worker ran out of memory") as caught:
        run(client, change)
    assert "out of 80 GB" in caught.value.detail
    assert "Failed to deserialize" not in caplog.text


def test_a_cluster_that_goes_away_fails_the_run(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "PROGRESS_SECONDS", 0.02)

    def close(step: Progress) -> None:
        assert client.cluster is not None
        client.cluster.close()

    with pytest.raises(BenchmarkFailed, match="The cluster went away"):
        run(client, LONG, progress=close)


def test_an_asynchronous_client_is_refused() -> None:
    client: Any = SimpleNamespace(asynchronous=True)
    with pytest.raises(InvalidInput, match="asynchronous"):
        run(client, TINY)


def test_gpus_and_cpus_run_the_same_sum_through_cupy_and_numpy(
    client: Client, a_cupy: Path
) -> None:
    report = run(client, Options((401, 400), (100, 100), device="both"))
    import cupy.random

    assert [result.device for result in report.results] == ["gpu", "cpu"]
    assert len(cupy.random.made) == 20
    assert report.results[0].names == {"Fake GPU": 2}
    assert report.versions["cupy"] == "14.0.0"
    assert report.cpu_to_gpu is not None
    assert report.cpu_to_gpu > 0
    assert "1 of 2 workers share a GPU with another worker" in report.warnings
    assert "give --repeats 2 or more" in report.warnings[-1]


def test_a_library_that_the_scheduler_lacks_is_named(client: Client, a_cupy: Path) -> None:
    (a_cupy / "random.py").write_text("raise ImportError('libcurand is missing')")
    with pytest.raises(BenchmarkFailed, match="libcurand is missing"):
        run(client, Options((400, 400), (100, 100)))


def test_workers_without_numpy_are_refused(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(look_for_gpus: bool) -> dict[str, Any]:
        return {
            **{"host": "x", "processor": "x", "threads": 1, "memory_limit": 0},
            "versions": {"python": "3.11.7"},
        }

    monkeypatch.setattr("jupyter_gpucluster.benchmark.workers._probe", lambda: probe)
    with pytest.raises(UnsuitableEnvironment, match="lacks NumPy"):
        run(client, TINY)
