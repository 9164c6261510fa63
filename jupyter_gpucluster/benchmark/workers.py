"""Facts about the workers, collected once before anything is timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import InvalidInput, UnsuitableEnvironment
from ..core.serialize import from_json
from .report import WorkerShare
from .workloads import BenchmarkFailed, Crew, Device

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class WorkerFacts:
    """One worker.  Memory is in bytes, 0 = unknown; a library that is not there has no version."""

    address: str
    host: str
    threads: int
    memory_limit: int
    processor: str
    versions: Mapping[str, str]
    name: str = ""
    gpu: str = ""
    """Name of the GPU that CuPy would use; empty without one."""
    gpu_id: str = ""
    gpu_memory: int = 0
    gpu_trouble: str = ""
    """The reason if the machine has a GPU that CuPy cannot use."""
    gpus_of_host: int = 0
    """The number of GPUs that the driver shows on the worker's machine."""


def ask_workers(client: Client, least: int, *, look_for_gpus: bool) -> list[WorkerFacts]:
    """Wait for workers and collect their facts; in order of host and address."""
    client.wait_for_workers(least)
    try:
        answers = client.run(_probe(), look_for_gpus)
    except OSError as error:
        raise BenchmarkFailed(
            "A worker went away before the run.", hint="Run again.", detail=str(error)
        ) from None
    facts = [from_json(WorkerFacts, {**answer, "address": a}) for a, answer in answers.items()]
    for worker in facts:
        if "numpy" not in worker.versions:
            words = f"The workers' Python {worker.versions['python']} lacks NumPy."
            hint = "Install numpy into the environment that the cluster was started with."
            raise UnsuitableEnvironment(words, hint=hint)
    return sorted(facts, key=lambda worker: (worker.host, worker.address))


def choose_devices(
    wanted: str | None, workers: Sequence[WorkerFacts]
) -> tuple[tuple[Device, ...], tuple[WorkerFacts, ...]]:
    """Return the devices to run on, in order, and the workers that take part."""
    with_gpu = tuple(worker for worker in workers if worker.gpu)
    if wanted == "cpu" or (wanted is None and not with_gpu):
        return ("cpu",), tuple(workers)
    if not with_gpu:
        if trouble := _gpu_trouble(workers):
            raise UnsuitableEnvironment(
                f"The workers cannot use their GPUs: {trouble}.",
                hint="Install CuPy for the machine's CUDA version (cupy-cuda12x or cupy-cuda13x) "
                "into the environment that the cluster was started with.",
            )
        hint = "Use --device cpu, or start the cluster from a profile with GPUs."
        raise InvalidInput("The workers have no GPU.", hint=hint)
    return ("gpu", "cpu") if wanted == "both" else ("gpu",), with_gpu


def crew(workers: Sequence[WorkerFacts], devices: Sequence[Device]) -> Crew:
    """Sum up the workers; memory per thread is that of the poorest worker."""
    memory = [
        (worker.gpu_memory if device == "gpu" else worker.memory_limit) // worker.threads
        for worker in workers
        for device in devices
    ]
    threads = sum(worker.threads for worker in workers)
    return Crew(tuple(devices), len(workers), threads, min(filter(None, memory), default=0))


def names(workers: Sequence[WorkerFacts], device: Device) -> dict[str, int]:
    """Count the devices by model."""
    return dict(Counter(worker.gpu if device == "gpu" else worker.processor for worker in workers))


def remarks(
    workers: Sequence[WorkerFacts], chosen: Sequence[WorkerFacts], devices: Sequence[Device]
) -> list[str]:
    """Return the reasons why the figures of these workers may surprise a reader."""
    found = []
    if "gpu" in devices:
        if len(chosen) < len(workers):
            found.append(f"only {len(chosen)} of {len(workers)} workers have a GPU and took part")
        shared = len(chosen) - len({worker.gpu_id for worker in chosen})
        if shared:
            found.append(f"{shared} of {len(chosen)} workers share a GPU with another worker")
        found += hidden_gpus(chosen)
    elif trouble := _gpu_trouble(chosen):
        found.append(f"CPUs were used, since the workers cannot use their GPUs: {trouble}")
    if len({worker.versions["numpy"] for worker in chosen}) > 1:
        found.append("the workers do not all have the same NumPy version")
    return found


def _gpu_trouble(workers: Sequence[WorkerFacts]) -> str:
    return next((worker.gpu_trouble for worker in workers if worker.gpu_trouble), "")


def worker_shares(
    workers: Sequence[WorkerFacts], tasks: Sequence[Mapping[str, Any]], amount: float
) -> tuple[WorkerShare, ...]:
    """Sum up the long tasks of each worker; ``amount`` is that of the whole run."""
    return tuple(
        WorkerShare(
            worker=worker.name or worker.address,
            host=worker.host,
            device=worker.gpu or worker.processor,
            gpu_id=worker.gpu_id,
            seconds=max(task["seconds"] for task in own),
            rate=sum(amount * task["part"] / task["seconds"] for task in own),
            slowed=", ".join(sorted({task["slowed"] for task in own} - {""})),
        )
        for worker in workers
        if (own := [task for task in tasks if task["address"] == worker.address])
    )


def hidden_gpus(workers: Sequence[WorkerFacts]) -> list[str]:
    """Name the hosts with GPUs that no worker uses."""
    found = []
    for host in sorted({worker.host for worker in workers}):
        here = [worker for worker in workers if worker.host == host]
        used = len({worker.gpu_id for worker in here})
        there = max(worker.gpus_of_host for worker in here)
        if used < there:
            found.append(f"{host} has {there} GPUs, and its workers use {used} of them")
    return found


def _probe() -> Callable[..., dict[str, Any]]:
    # A function within a function travels by value: the workers' environment lacks this package.
    def probe(look_for_gpus: bool, dask_worker: Any) -> dict[str, Any]:
        import importlib
        import os
        import platform
        import socket
        from contextlib import suppress
        from pathlib import Path

        def versions() -> dict[str, str]:
            found = {"python": platform.python_version()}
            for library in ("dask", "distributed", "numpy", *(["cupy"] if look_for_gpus else [])):
                with suppress(ImportError):
                    found[library] = str(importlib.import_module(library).__version__)
            return found

        def processor() -> str:
            with Path("/proc/cpuinfo").open(errors="replace") as lines:
                for line in lines:
                    if line.startswith("model name"):
                        return line.partition(":")[2].strip()
            return platform.machine()

        def gpus_of_host() -> int:
            from distributed.diagnostics import nvml

            return int(nvml.device_get_count())

        def machine_has_gpu() -> bool:
            hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1", "NoDevFiles")
            return not hidden and gpus_of_host() > 0

        def gpu() -> dict[str, Any]:
            try:
                import cupy
            except ImportError:
                return {"gpu_trouble": "CuPy is not installed"} if machine_has_gpu() else {}
            try:
                device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
            except RuntimeError as error:  # CuPy's CUDARuntimeError is one
                trouble = str(error) if machine_has_gpu() else ""
                return {"gpu_trouble": trouble}
            return {
                "gpus_of_host": gpus_of_host(),
                "gpu": bytes(device["name"]).decode(errors="replace"),
                "gpu_id": bytes(device["uuid"]).hex(),
                "gpu_memory": int(device["totalGlobalMem"]),
            }

        return {
            "host": socket.gethostname(),
            "name": str(dask_worker.name),
            "threads": dask_worker.state.nthreads,
            "memory_limit": dask_worker.memory_manager.memory_limit or 0,
            "processor": processor(),
            "versions": versions(),
            **(gpu() if look_for_gpus else {}),
        }

    return probe
