"""The choice of workers and devices, and the remarks about them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from jupyter_gpucluster.benchmark.workers import WorkerFacts, choose_devices, crew, names, remarks
from jupyter_gpucluster.core.errors import InvalidInput, UnsuitableEnvironment

CPU = WorkerFacts(
    address="tcp://a:1",
    host="a",
    threads=4,
    memory_limit=16 * 10**9,
    processor="Xeon",
    versions={"python": "3.11.7", "numpy": "2.4.6"},
)
GPU = dataclasses.replace(CPU, threads=1, gpu="H100", gpu_id="a1", gpu_memory=80 * 10**9)


def worker(kind: WorkerFacts, **changes: Any) -> WorkerFacts:
    return dataclasses.replace(kind, **changes)


@pytest.mark.parametrize(
    "wanted, devices", [(None, ("gpu",)), ("gpu", ("gpu",)), ("both", ("gpu", "cpu"))]
)
def test_gpus_are_used_where_the_workers_have_them(
    wanted: str | None, devices: tuple[str, ...]
) -> None:
    assert choose_devices(wanted, [GPU, CPU]) == (devices, (GPU,))


def test_cpus_are_used_without_gpus_or_when_asked_for() -> None:
    assert choose_devices(None, [CPU, CPU]) == (("cpu",), (CPU, CPU))
    assert choose_devices("cpu", [GPU, CPU]) == (("cpu",), (GPU, CPU))


@pytest.mark.parametrize("wanted", ["gpu", "both"])
def test_gpus_that_no_worker_has_are_refused(wanted: str) -> None:
    with pytest.raises(InvalidInput, match="The workers have no GPU") as caught:
        choose_devices(wanted, [CPU])
    assert "--device cpu" in caught.value.hint


def test_gpus_without_cupy_differ_from_no_gpus() -> None:
    blind = worker(CPU, gpu_trouble="CuPy is not installed")
    with pytest.raises(UnsuitableEnvironment, match="CuPy is not installed") as caught:
        choose_devices("gpu", [blind])
    assert "cupy-cuda12x" in caught.value.hint
    devices, chosen = choose_devices(None, [blind])
    assert devices == ("cpu",)
    assert remarks([blind], chosen, devices) == [
        "CPUs were used, since the workers cannot use their GPUs: CuPy is not installed"
    ]


def test_memory_is_that_of_the_poorest_thread_on_any_device() -> None:
    assert crew([CPU, worker(CPU, memory_limit=0)], ("cpu",)).memory_per_thread == 4 * 10**9
    assert crew([GPU], ("gpu",)).memory_per_thread == 80 * 10**9
    both = crew([GPU, GPU], ("gpu", "cpu"))
    assert (both.memory_per_thread, both.workers, both.threads) == (16 * 10**9, 2, 2)
    assert crew([worker(CPU, memory_limit=0)], ("cpu",)).memory_per_thread == 0


def test_devices_are_counted_by_model() -> None:
    workers = [GPU, worker(GPU, gpu="A100"), GPU]
    assert names(workers, "gpu") == {"H100": 2, "A100": 1}
    assert names(workers, "cpu") == {"Xeon": 3}


def test_shared_and_missing_gpus_are_remarked() -> None:
    other = worker(GPU, gpu_id="b2")
    assert remarks([GPU, other], [GPU, other], ("gpu",)) == []
    assert remarks([GPU, GPU, CPU], [GPU, GPU], ("gpu",)) == [
        "only 2 of 3 workers have a GPU and took part",
        "1 of 2 workers share a GPU with another worker",
    ]


def test_gpus_that_no_worker_uses_are_remarked_for_each_host() -> None:
    first = worker(GPU, gpus_of_host=3)
    second = worker(first, gpu_id="b2")
    elsewhere = worker(GPU, host="b", gpu_id="c3", gpus_of_host=1)
    chosen = [first, second, elsewhere]
    assert remarks(chosen, chosen, ("gpu",)) == ["a has 3 GPUs, and its workers use 2 of them"]


def test_different_numpy_versions_are_remarked() -> None:
    old = worker(CPU, versions={"python": "3.11.7", "numpy": "1.26"})
    assert remarks([CPU, old], [CPU, old], ("cpu",)) == [
        "the workers do not all have the same NumPy version"
    ]
