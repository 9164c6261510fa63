"""Readings of GPUs; NVML itself is a fake at the edge."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target, WorkerShape
from jupyter_gpucluster.core.job import Job, JobShape, JobState
from jupyter_gpucluster.core.summary import GpuReading, Summary
from jupyter_gpucluster.head import gpu_metrics, gpu_plugin

UUID = "GPU-fb052405-1d36-3dfa-e528-292494ea2a35"


class NVMLError(Exception):
    """The error of the binding."""


class Nvml:
    """One card with two slices, as NVML would show it."""

    NVMLError = NVMLError

    def __init__(self) -> None:
        self.sent = 0
        self.errors: list[int] = []
        self.keeps_errors = True

    nvmlEventTypeXidCriticalError = 8

    def nvmlEventSetCreate(self) -> str:
        return "events"

    def nvmlDeviceRegisterEvents(self, handle: str, kind: int, events: str) -> None:
        assert (handle, kind, events) == ("card", 8, "events")
        if not self.keeps_errors:
            raise NVMLError("Not Supported")

    def nvmlEventSetWait_v2(self, events: str, milliseconds: int) -> Any:
        assert milliseconds == 0
        if not self.errors:
            raise NVMLError("Timeout")
        return SimpleNamespace(eventData=self.errors.pop(0))

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        if index:
            raise NVMLError("Invalid Argument")
        return "card"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        return "slice" if uuid.startswith("MIG-") else "card"

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: str) -> str:
        return "card"

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
        return SimpleNamespace(used=10, total=100 if handle == "card" else 20)

    def nvmlDeviceGetUUID(self, handle: str) -> bytes:
        return UUID.encode() if handle == "card" else b"MIG-1"

    def nvmlDeviceGetName(self, handle: str) -> str:
        return "NVIDIA H100"

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return SimpleNamespace(gpu=73)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 74_555

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return 0x4 | 0x20  # a power cap, which is usual, and heat

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 46

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        raise NVMLError("Not Supported")

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[int]) -> list[Any]:
        self.sent += 1_000
        value = SimpleNamespace(ullVal=self.sent)
        return [SimpleNamespace(nvmlReturn=0, value=value) for _ in fields]


def a_reading(worker: str, **values: Any) -> GpuReading:
    return GpuReading(worker, host="node1", uuid=f"GPU-{worker}", **values)


def a_record(*jobs: Job, gpus_of_job: int = 4, nodes: int = 1) -> Record:
    spec = Spec("p", "P", "slurm", "python", job=JobShape(nodes=nodes, gpus=gpus_of_job))
    return Record("abc", "name", spec, Target(1, 1), created=0.0, jobs=jobs)


def test_a_reading_has_units_and_leaves_out_what_the_card_does_not_tell() -> None:
    told = gpu_plugin.Device(Nvml(), "0,1").reading()
    reading = gpu_metrics.reading_of("gpc-abc-1_0", told)
    assert (reading.uuid, reading.name, reading.utilization) == (UUID, "NVIDIA H100", 73)
    assert (reading.power, reading.power_limit, reading.temperature) == (74.555, None, 46)
    assert reading.slowed == ("heat",)
    assert reading.ecc_errors is None


def test_a_mig_slice_has_its_own_memory_and_the_cards_power() -> None:
    told = gpu_plugin.Device(Nvml(), "MIG-1").reading()
    assert (told["memory_total"], told["uuid"], told["mig"]) == (20, "MIG-1", "MIG-1")
    assert told["power"] == 74.555


def test_nvlink_rates_are_those_since_the_last_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((10.0, 12.0))
    monkeypatch.setattr(gpu_plugin, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    device = gpu_plugin.Device(Nvml(), UUID)
    assert device.link_rates() == (None, None)
    assert device.link_rates() == (512_000, 512_000)


@pytest.mark.parametrize(
    "error, words",
    [
        ("NVMLError_LibraryNotFound: NVML Shared Library Not Found", "no NVIDIA driver here"),
        ("NVMLError_LibRmVersionMismatch: RM has detected", "driver and NVML differ"),
        ("NVMLError_InvalidArgument: Invalid Argument", "not on this host"),
        ("NVMLError_GpuIsLost: GPU is lost", "fell off the bus"),
        ("No module named 'pynvml'", "nvidia-ml-py is not installed"),
        ("something else", "something else"),
    ],
)
def test_failures_of_nvml_say_what_to_do(error: str, words: str) -> None:
    assert words in gpu_plugin.explain(RuntimeError(error))


def test_two_workers_on_one_gpu_are_named() -> None:
    one = a_reading("gpc-a-1_0")
    assert gpu_metrics.identity_troubles([one, a_reading("gpc-a-1_1")]) == []
    (trouble,) = gpu_metrics.identity_troubles([one, replace(one, worker="gpc-a-1_1")])
    assert trouble.startswith("gpc-a-1_0 and gpc-a-1_1 share one GPU of node1")
    (trouble,) = gpu_metrics.identity_troubles([GpuReading("w", host="n", trouble="no driver")])
    assert trouble == "w on n: no driver."


def test_a_job_with_more_workers_than_gpus_is_named() -> None:
    workers = [a_reading(f"gpc-a-1_0-{number}") for number in range(4)]
    assert gpu_metrics.count_troubles(workers, 4) == []
    (trouble,) = gpu_metrics.count_troubles(workers, 2)
    assert trouble.startswith("gpc-a-1_0 has 4 GPU workers instead of 2")


def test_idle_gpus_are_reported_after_five_minutes_and_forgotten_with_the_first_work() -> None:
    idle = gpu_metrics.IdleGpus()
    resting = [a_reading("w", utilization=1)]
    idle.look(resting, 1_000)
    assert idle.words(8, 1.0, 1_100) == ""
    idle.look(resting, 2_200)
    assert idle.words(8, 2.7, 2_200) == "8 GPUs held, under 2 % for 20 min, 2.7 GPU-hours"
    idle.look([*resting, a_reading("v", utilization=90)], 2_300)
    assert idle.words(8, 2.7, 2_300) == ""
    idle.look([], 2_400)
    assert idle.since is None


def test_a_job_with_fewer_workers_than_gpus_is_named_once_it_has_been_so_for_a_while() -> None:
    running = Job("gpc-abc-1", 0, JobState.RUNNING, connected=True)
    record = a_record(running, running_elsewhere := replace(running, task=1))
    record = replace(record, spec=replace(record.spec, worker=WorkerShape(per_job=4)))
    missing = gpu_metrics.MissingWorkers()
    connected = {"gpc-abc-1_0": 3, "gpc-abc-1_1": 4}
    assert missing.look(record, connected, 1_000) == []
    (trouble,) = missing.look(record, connected, 1_150)
    assert trouble.startswith("gpc-abc-1_0 has 3 of its 4 GPU workers")
    assert missing.look(record, {**connected, "gpc-abc-1_0": 4}, 1_200) == []
    assert missing.look(record, connected, 1_210) == [], "a worker that restarts is soon back"
    leaving = replace(record, jobs=(replace(running, retiring_since=1.0), running_elsewhere))
    assert missing.look(leaving, connected, 2_000) == []


def test_a_slice_whose_limit_would_be_the_whole_cards_is_named() -> None:
    reading = a_reading("w", mig="MIG-1", memory_total=10 * 2**30)
    record = a_record()
    (trouble,) = gpu_metrics.slice_troubles([reading, a_reading("v")], record)
    assert trouble.startswith("w computes on a slice of 10 GiB")
    limited = replace(record.spec, worker=WorkerShape(device_memory_limit=2**33))
    assert gpu_metrics.slice_troubles([reading], replace(record, spec=limited)) == []


def test_errors_that_the_driver_reports_are_shown_with_their_meaning() -> None:
    device = gpu_plugin.Device(Nvml(), "0")
    assert device.reading()["xids"] == []
    device.nvml.errors = [79, 31, 79]
    device.reading()
    told = device.reading()
    reading = gpu_metrics.reading_of("gpc-a-1_0", {**told, "host": "node1"})
    assert reading.xids == (79, 31)
    first, second = gpu_metrics.xid_troubles([reading])
    assert first == (
        "gpc-a-1_0 on node1: the driver reports XID 79"
        " (the GPU fell off the bus; the node needs a restart)."
    )
    assert "not its own" in second


def test_a_driver_that_keeps_no_errors_is_read_without_them() -> None:
    nvml = Nvml()
    nvml.keeps_errors = False
    told = gpu_plugin.Device(nvml, "0").reading()
    assert (told["xids"], told["utilization"]) == ([], 73)


def test_readings_that_move_make_no_news_but_a_throttled_card_does() -> None:
    from jupyter_gpucluster.head.state_files import alike

    summary = Summary("i", "n", "p", Phase.RUNNING, 0.0, "", "", 1, 0.0)
    cool = replace(summary, gpus=(a_reading("w", utilization=5),))
    assert alike(cool, replace(summary, gpus=(a_reading("w", utilization=99),)))
    assert not alike(summary, cool)
    assert not alike(cool, replace(summary, gpus=(a_reading("w", slowed=("heat",)),)))


@pytest.mark.slow
async def test_workers_without_this_package_read_and_the_head_hears(tmp_path: Path) -> None:
    from distributed import Scheduler

    (tmp_path / "pynvml.py").write_text("raise ImportError(\"No module named 'pynvml'\")")
    (tmp_path / "jupyter_gpucluster.py").write_text("raise ImportError('not on this machine')")
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        await gpu_metrics.install(scheduler)
        argv = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.address]
        worker = subprocess.Popen(  # noqa: ASYNC220  # as in every test that starts workers
            [*argv, "--no-nanny", "--no-dashboard", "--name", "w"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
            stderr=subprocess.DEVNULL,
        )
        try:
            found = await first_readings(scheduler)
        finally:
            worker.terminate()
            worker.wait(20)
    (reading,) = found
    assert reading.worker == "w"
    assert reading.trouble == "nvidia-ml-py is not installed in the workers' environment"


async def first_readings(scheduler: Any) -> tuple[GpuReading, ...]:
    import asyncio

    deadline = time.monotonic() + 30
    while not (found := gpu_metrics.readings(scheduler)):
        assert time.monotonic() < deadline, "no reading came"
        await asyncio.sleep(0.05)
    return found
