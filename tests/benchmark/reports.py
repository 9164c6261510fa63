"""Reports with figures that were published, for tests of what is made of them."""

from __future__ import annotations

from jupyter_gpucluster.benchmark.report import Report, Run, device_result
from jupyter_gpucluster.benchmark.workloads import Crew, Device, Workload, document_sum

LAPTOP = Crew(devices=("cpu",), workers=2, threads=2, memory_per_thread=8 * 10**9)
DEEPOPS = document_sum((500_000, 500_000), (10_000, 10_000), LAPTOP)
THETAGPU = document_sum((100_000, 100_000), (5_000, 5_000), LAPTOP)


def a_report(
    work: Workload,
    workers: int,
    seconds: dict[Device, float],
    *,
    versions: dict[str, str] | None = None,
    warnings: tuple[str, ...] = (),
) -> Report:
    """Make a report of one run on each device that took so many seconds of wall time."""
    results = tuple(
        device_result(
            device,
            {"Tesla P4" if device == "gpu" else "Xeon": workers},
            work,
            [Run(0.5, wall - 0.5, work.expected + work.sigma)],
        )
        for device, wall in seconds.items()
    )
    both = "gpu" in seconds and "cpu" in seconds
    return Report(
        workload="sum",
        mode="documents",
        date="2026-01-02T03:04:05+00:00",
        host="login1",
        parameters=work.parameters,
        nbytes=work.nbytes,
        pieces=work.pieces,
        expected=work.expected,
        sigma=work.sigma,
        workers=workers,
        threads=workers,
        hosts=("node1",),
        start_seconds=1.25,
        results=results,
        cpu_to_gpu=seconds["cpu"] / seconds["gpu"] if both else None,
        versions=versions or {"python": "3.11.7", "dask": "2026.8.0"},
        warnings=warnings,
    )
