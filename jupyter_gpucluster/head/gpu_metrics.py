"""The GPUs of a cluster: readings, identity, idleness, and GPU-hours."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # comes with distributed
from distributed import Scheduler

from ..core.cluster import Record
from ..core.job import JobState
from ..core.summary import GpuReading, Summary
from . import gpu_plugin
from .adaptive import job_of
from .reconcile.model import active, gpu_hours

IDLE_PERCENT = 2
"""A GPU under this utilisation does nothing: a mere CUDA context shows 0 to 1 %."""

MISSING_SECONDS = 120.0
"""A worker of a running job that is away for longer has not merely restarted."""
XIDS = {
    13: "an error of the program on the GPU",
    31: "the program used memory that is not its own",
    43: "the program's work on the GPU was ended",
    45: "the program's work on the GPU was ended",
    48: "memory error that could not be corrected; report it to the site",
    63: "a row of memory is to be replaced; the node needs a restart",
    64: "a row of memory could not be replaced; report it to the site",
    74: "NVLink error; report it to the site",
    79: "the GPU fell off the bus; the node needs a restart",
    94: "memory error in one program; start it again",
    95: "memory error in all programs of the GPU; report it to the site",
    119: "the GPU's own processor does not answer; the node needs a restart",
}
"""Meanings of the driver's error numbers: https://docs.nvidia.com/deploy/xid-errors/."""

FIELDS = {field.name for field in dataclasses.fields(GpuReading)}


async def install(scheduler: Scheduler, *, bound: bool = True) -> None:
    """Let every worker, now and later, read its GPU; unbound ones use all cores of their job."""
    cloudpickle.register_pickle_by_value(gpu_plugin)
    try:
        payload = cloudpickle.dumps(gpu_plugin.GpuReader(bound=bound))
    finally:
        cloudpickle.unregister_pickle_by_value(gpu_plugin)
    name = gpu_plugin.GpuReader.name
    await scheduler.register_worker_plugin(None, plugin=payload, name=name, idempotent=True)


def readings(scheduler: Scheduler) -> tuple[GpuReading, ...]:
    """Return the last reading of each worker, in order of host and worker; some may lack one."""
    found = [
        reading_of(str(state.name), told)
        for state in scheduler.workers.values()
        if isinstance(told := state.metrics.get(gpu_plugin.METRIC), Mapping) and told
    ]
    return tuple(sorted(found, key=lambda reading: (reading.host, reading.worker)))


def reading_of(worker: str, told: Mapping[str, Any]) -> GpuReading:
    """Take what a worker told; it is another process, so what does not fit is left out."""
    values = {name: value for name, value in told.items() if name in FIELDS and value is not None}
    slowed = tuple(map(str, values.pop("slowed", ())))
    xids = tuple(map(int, values.pop("xids", ())))
    return GpuReading(**{**values, "worker": worker, "slowed": slowed, "xids": xids})


def identity_troubles(found: Iterable[GpuReading]) -> list[str]:
    """Name the workers that compute on the same GPU, and those without one."""
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
    """Name the jobs that hold more workers than they were given GPUs."""
    counts = Counter(job_of(reading.worker) for reading in found)
    return [
        f"{job} has {count} GPU workers instead of {expected}: each task of the job may have "
        "started workers on all GPUs; start one dask-cuda process on each node."
        for job, count in sorted(counts.items())
        if count > expected
    ]


class IdleGpus:
    """Since when all GPUs that are held do nothing."""

    since: float | None = None

    def look(self, found: Iterable[GpuReading], now: float) -> None:
        """Note the beginning or the end of idleness; without any reading nothing is known."""
        loads = [r.utilization for r in found if r.utilization is not None]
        idle = bool(loads) and max(loads) < IDLE_PERCENT
        self.since = (self.since if self.since is not None else now) if idle else None

    def words(self, count: int, hours: float, now: float) -> str:
        """Return e.g. ``8 GPUs held, under 2 % for 20 min, 2.7 GPU-hours``; empty for 5 minutes."""
        minutes = 0 if self.since is None else int((now - self.since) / 60)
        if minutes < 5 or not count:
            return ""
        gpus = "1 GPU" if count == 1 else f"{count} GPUs"
        return f"{gpus} held, under {IDLE_PERCENT} % for {minutes} min, {hours:.1f} GPU-hours"


class MissingWorkers:
    """Jobs with fewer workers than GPUs, and since when: one that restarts is soon back."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}

    def look(self, record: Record, connected: Mapping[str, int], now: float) -> list[str]:
        """Return what to say about jobs that have been short of workers for a while."""
        expected = record.spec.worker.per_job
        short = {
            job.key: count
            for job in active(record)
            if job.connected and job.state is JobState.RUNNING
            if 0 < (count := connected.get(job.key, 0)) < expected
        }
        self.since = {key: self.since.get(key, now) for key in short}
        return [
            f"{key} has {count} of its {expected} GPU workers: its job was given fewer GPUs than "
            "job.gpus says, or sees one alone (--gpus-per-task, --gpu-bind), or a worker could not "
            "start; see its log."
            for key, count in sorted(short.items())
            if now - self.since[key] >= MISSING_SECONDS
        ]


def slice_troubles(found: Iterable[GpuReading], record: Record) -> list[str]:
    """Name the workers on slices of a GPU that would not move data to main memory in time."""
    if record.spec.worker.device_memory_limit is not None:
        return []
    return [
        f"{reading.worker} computes on a slice of {reading.memory_total / 2**30:.0f} GiB, but "
        "dask-cuda takes its limit from the whole card's memory: set workers.device_memory_limit."
        for reading in found
        if reading.mig and reading.memory_total
    ]


def xid_troubles(found: Iterable[GpuReading]) -> list[str]:
    """Name the errors that the driver has reported, and their usual origin."""
    return [
        f"{reading.worker} on {reading.host}: the driver reports XID {number}"
        f" ({XIDS.get(number, 'see the documentation of the NVIDIA driver')})."
        for reading in found
        for number in reading.xids
    ]


class GpuWatch:
    """The head's memory about GPUs from one look to the next."""

    def __init__(self) -> None:
        self.idle = IdleGpus()
        self.missing = MissingWorkers()
        self.troubles: set[str] = set()
        self.news: list[str] = []

    def add_to(self, summary: Summary, scheduler: Scheduler, record: Record, now: float) -> Summary:
        """Put readings, GPU-hours and idleness into a summary; ``news`` holds new troubles."""
        self.news = []
        if not record.spec.job.gpus:
            return summary
        found = readings(scheduler)
        self.idle.look(found, now)
        connected = Counter(job_of(str(state.name)) for state in scheduler.workers.values())
        troubles = [
            *identity_troubles(found),
            *count_troubles(found, record.spec.worker.per_job),
            *slice_troubles(found, record),
            *xid_troubles(found),
            *self.missing.look(record, connected, now),
        ]
        self.news = [trouble for trouble in troubles if trouble not in self.troubles]
        self.troubles.update(troubles)
        hours = gpu_hours(record, now)
        held = sum(not job.is_over and job.started is not None for job in record.jobs)
        return dataclasses.replace(
            summary,
            gpus=found,
            gpu_hours=round(hours, 4),
            gpu_words=self.idle.words(held * record.spec.job.gpus, hours, now),
        )
