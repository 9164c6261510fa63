"""What the GPUs of a cluster do: readings, identity, idleness, and GPU-hours."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # comes with distributed
from distributed import Scheduler

from ..records import GpuReading, Job, Record, Summary
from . import gpureader
from .scaling import job_of
from .situation import is_alive

IDLE_PERCENT = 2
"""A GPU under this utilisation does nothing: a mere CUDA context shows 0 to 1 %."""

FIELDS = {field.name for field in dataclasses.fields(GpuReading)}


async def install(scheduler: Scheduler) -> None:
    """Let every worker, now and later, read its GPU."""
    cloudpickle.register_pickle_by_value(gpureader)
    try:
        payload = cloudpickle.dumps(gpureader.GpuReader())
    finally:
        cloudpickle.unregister_pickle_by_value(gpureader)
    name = gpureader.GpuReader.name
    await scheduler.register_worker_plugin(None, plugin=payload, name=name, idempotent=True)


def readings(scheduler: Scheduler) -> tuple[GpuReading, ...]:
    """Return the last reading of each worker, in order of host and worker; some may lack one."""
    found = []
    for state in scheduler.workers.values():
        told = state.metrics.get(gpureader.METRIC)
        if isinstance(told, Mapping) and told:
            found.append(reading_of(str(state.name), told))
    return tuple(sorted(found, key=lambda reading: (reading.host, reading.worker)))


def reading_of(worker: str, told: Mapping[str, Any]) -> GpuReading:
    """Take what a worker told; it is another process, so what does not fit is left out."""
    values = {name: value for name, value in told.items() if name in FIELDS and value is not None}
    slowed = tuple(map(str, values.pop("slowed", ())))
    return GpuReading(**{**values, "worker": worker, "slowed": slowed})


def identity_troubles(found: Iterable[GpuReading]) -> list[str]:
    """Say which workers compute on the same GPU, and which have none."""
    holders: dict[tuple[str, str], list[str]] = {}
    troubles = []
    for reading in found:
        if reading.trouble:
            troubles.append(f"{reading.worker} on {reading.host}: {reading.trouble}.")
        elif reading.uuid:
            holders.setdefault((reading.host, reading.uuid), []).append(reading.worker)
    for (host, uuid), workers in holders.items():
        if len(workers) > 1:
            troubles.append(
                f"{' and '.join(sorted(workers))} share one GPU of {host} ({uuid}): start one "
                "dask-cuda process on each node, or give each its own CUDA_VISIBLE_DEVICES."
            )
    return troubles


def count_troubles(found: Iterable[GpuReading], expected: int) -> list[str]:
    """Say which jobs hold more workers than they were given GPUs."""
    counts = Counter(job_of(reading.worker) for reading in found)
    return [
        f"{job} has {count} GPU workers instead of {expected}: each task of the job may have "
        "started workers on all GPUs; start one dask-cuda process on each node."
        for job, count in sorted(counts.items())
        if count > expected
    ]


class IdleGpus:
    """Since when all GPUs that are held do nothing."""

    def __init__(self) -> None:
        self.since: float | None = None

    def look(self, found: Iterable[GpuReading], now: float) -> None:
        """Note the beginning or the end of idleness; without any reading nothing is known."""
        loads = [r.utilization for r in found if r.utilization is not None]
        idle = bool(loads) and max(loads) < IDLE_PERCENT
        self.since = (self.since if self.since is not None else now) if idle else None

    def words(self, count: int, hours: float, now: float) -> str:
        """Return e.g. ``8 GPUs held, under 2 % for 20 min, 2.7 GPU-hours``; empty for 5 minutes."""
        if self.since is None or now - self.since < 300 or not count:
            return ""
        minutes = int((now - self.since) / 60)
        gpus = "1 GPU" if count == 1 else f"{count} GPUs"
        return f"{gpus} held, under {IDLE_PERCENT} % for {minutes} min, {hours:.1f} GPU-hours"


def gpu_hours(record: Record, now: float) -> float:
    """Return what the cluster's jobs have held so far: GPUs times hours, running ones up to now."""
    return gpus_of_job(record) * sum(seconds(job, now) for job in record.jobs) / 3600


def gpus_of_job(record: Record) -> int:
    """Return how many GPUs one job holds on all its nodes."""
    return record.spec.job.gpus * max(1, record.spec.job.nodes)


def seconds(job: Job, now: float) -> float:
    """Return how long a job has held its devices."""
    if job.started is None:
        return 0.0
    end = job.ended if job.ended is not None else now if is_alive(job) else job.started
    return max(0.0, end - job.started)


class GpuWatch:
    """What the head remembers about GPUs from one look to the next."""

    def __init__(self) -> None:
        self.idle = IdleGpus()
        self.troubles: set[str] = set()
        self.news: list[str] = []

    def add_to(self, summary: Summary, scheduler: Scheduler, record: Record, now: float) -> Summary:
        """Put readings, GPU-hours and idleness into a summary; ``news`` holds new troubles."""
        self.news = []
        if not record.spec.job.gpus:
            return summary
        found = readings(scheduler)
        self.idle.look(found, now)
        troubles = [*identity_troubles(found), *count_troubles(found, record.spec.worker.per_job)]
        self.news = [trouble for trouble in troubles if trouble not in self.troubles]
        self.troubles.update(troubles)
        hours = gpu_hours(record, now)
        held = sum(is_alive(job) and job.started is not None for job in record.jobs)
        return dataclasses.replace(
            summary,
            gpus=found,
            gpu_hours=round(hours, 4),
            gpu_words=self.idle.words(held * gpus_of_job(record), hours, now),
        )
