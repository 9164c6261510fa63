"""Reads a worker's GPU through NVML; travels by value, since workers lack this package."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

METRIC = "gpucluster_gpu"
"""Name of the worker metric that holds the last reading."""
PERIOD = 2.0
"""Seconds between two readings: a reading takes some milliseconds of a thread of its own."""
SLOWED = {0x08: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "power brake"}
"""Reasons for lower clocks that mean trouble; a power cap under full load does not."""
MOST_XIDS = 16
"""Different errors of one card that are kept."""
NVLINK_SENT, NVLINK_RECEIVED = 138, 139
"""NVML's fields of data bytes over all links, in KiB."""


class GpuReader(WorkerPlugin):
    """Reads while the worker lives; each heartbeat takes the last reading along."""

    name = "gpucluster-gpus"

    def __init__(self, *, bound: bool = True) -> None:
        self.bound = bound

    def setup(self, worker: Any) -> None:
        """Begin to read; without NVML the reading says why it is empty."""
        if not self.bound:
            # dask-cuda has bound this thread, and has no switch against that; threads for tasks
            # are made from here. The nanny still has the job's cores.
            os.sched_setaffinity(0, os.sched_getaffinity(os.getppid()))
        self.latest: dict[str, Any] = {}
        self.ended = threading.Event()
        worker.metrics[METRIC] = lambda _: self.latest
        self.thread = threading.Thread(target=self.read, name=self.name, daemon=True)
        self.thread.start()

    def teardown(self, worker: Any) -> None:
        """End the thread."""
        self.ended.set()

    def read(self) -> None:
        """Read again and again."""
        try:
            import pynvml

            pynvml.nvmlInit()
            device = Device(pynvml, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
        except Exception as error:  # no binding, no driver, no such device: the worker goes on
            self.latest = {"host": socket.gethostname(), "trouble": explain(error)}
            return
        while not self.ended.is_set():
            try:
                self.latest = device.reading()
            except Exception as error:  # a card that fell off the bus is told, not fatal
                self.latest = {**self.latest, "trouble": explain(error)}
            self.ended.wait(PERIOD)


def explain(error: BaseException) -> str:
    """Return a failure of NVML in words that say what to do."""
    text = f"{type(error).__name__}: {error}"
    for sign, words in (
        ("LibraryNotFound", "no NVIDIA driver here (libnvidia-ml is missing)"),
        ("DriverNotLoaded", "the NVIDIA driver is not loaded"),
        ("LibRmVersionMismatch", "driver and NVML differ: the host was updated, reboot it"),
        ("NoModuleNamed", "nvidia-ml-py is not installed in the workers' environment"),
        ("InvalidArgument", "CUDA_VISIBLE_DEVICES names a GPU that is not on this host"),
        ("NotFound", "CUDA_VISIBLE_DEVICES names a GPU that is not on this host"),
        ("GpuIsLost", "the GPU fell off the bus: the host needs a reboot"),
    ):
        if sign.lower() in text.lower().replace(" ", "").replace("_", ""):
            return words
    return text[:200]


class Device:
    """The GPU that this process computes on: the first that CUDA_VISIBLE_DEVICES names."""

    def __init__(self, nvml: Any, visible: str) -> None:
        first = visible.split(",")[0].strip()
        self.nvml = nvml
        self.slice = first if first.startswith("MIG-") else ""
        if first.startswith(("GPU-", "MIG-")):
            handle = nvml.nvmlDeviceGetHandleByUUID(first)
        else:
            handle = nvml.nvmlDeviceGetHandleByIndex(int(first or 0))
        self.memory_of = handle
        # Power, heat and clocks belong to the card, memory and identity to the slice.
        self.card = (
            nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle) if self.slice else handle
        )
        self.links: tuple[float, int, int] | None = None
        self.xids: list[int] = []
        self.errors = self.subscribe()

    def subscribe(self) -> Any:
        """Ask the driver to keep this card's errors for us; None where it cannot (WSL, vGPU)."""
        with contextlib.suppress(AttributeError, self.nvml.NVMLError):
            events = self.nvml.nvmlEventSetCreate()
            kind = self.nvml.nvmlEventTypeXidCriticalError
            self.nvml.nvmlDeviceRegisterEvents(self.card, kind, events)
            return events
        return None

    def errors_so_far(self) -> list[int]:
        """Return the numbers of all errors since the beginning; asking does not wait."""
        # A time-out: there is no other.
        with contextlib.suppress(AttributeError, self.nvml.NVMLError):
            for _ in range(MOST_XIDS if self.errors is not None else 0):
                number = int(self.nvml.nvmlEventSetWait_v2(self.errors, 0).eventData)
                if number not in self.xids and len(self.xids) < MOST_XIDS:
                    self.xids.append(number)
        return list(self.xids)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call NVML on the card; None where the card or the driver does not answer that."""
        with contextlib.suppress(AttributeError, self.nvml.NVMLError):
            return getattr(self.nvml, name)(self.card, *arguments)
        return None

    def reading(self) -> dict[str, Any]:
        """Return what the card does now; bytes, percent, watts, degrees Celsius, bytes a second."""
        memory = self.memory()
        load = self.ask("nvmlDeviceGetUtilizationRates")
        reasons = self.ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:  # its name before driver 535
            reasons = self.ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        sent, received = self.link_rates()
        return {
            "host": socket.gethostname(),
            "index": self.ask("nvmlDeviceGetIndex"),
            "uuid": text(self.nvml.nvmlDeviceGetUUID(self.memory_of)),
            "name": text(self.ask("nvmlDeviceGetName") or ""),
            "mig": self.slice,
            "utilization": None if load is None else load.gpu,
            "memory_used": int(memory.used),
            "memory_total": int(memory.total),
            "power": times(0.001, self.ask("nvmlDeviceGetPowerUsage")),
            "power_limit": times(0.001, self.ask("nvmlDeviceGetEnforcedPowerLimit")),
            "temperature": self.ask("nvmlDeviceGetTemperature", 0),
            "clock": self.ask("nvmlDeviceGetClockInfo", 1),
            "slowed": sorted({word for bit, word in SLOWED.items() if (reasons or 0) & bit}),
            "ecc_errors": self.ask("nvmlDeviceGetTotalEccErrors", 1, 0),
            "xids": self.errors_so_far(),
            "pcie_sent": times(1024, self.ask("nvmlDeviceGetPcieThroughput", 0)),
            "pcie_received": times(1024, self.ask("nvmlDeviceGetPcieThroughput", 1)),
            "nvlink_sent": sent,
            "nvlink_received": received,
            "time": time.time(),
        }

    def memory(self) -> Any:
        """Return used and total bytes, as nvidia-smi counts them: without the driver's own."""
        ask = self.nvml.nvmlDeviceGetMemoryInfo
        # Slices, and old bindings, know the old form only.
        with contextlib.suppress(AttributeError, self.nvml.NVMLError):
            return ask(self.memory_of, version=self.nvml.nvmlMemory_v2)
        return ask(self.memory_of)

    def link_rates(self) -> tuple[int | None, int | None]:
        """Return NVLink's rates since the last reading."""
        values = self.ask("nvmlDeviceGetFieldValues", [NVLINK_SENT, NVLINK_RECEIVED])
        if values is None or any(value.nvmlReturn for value in values):
            return None, None
        now = time.monotonic()
        sent, received = (1024 * int(value.value.ullVal) for value in values)
        before, self.links = self.links, (now, sent, received)
        if before is None:
            return None, None
        seconds = now - before[0]
        return int((sent - before[1]) / seconds), int((received - before[2]) / seconds)


def text(value: Any) -> str:
    """Return what NVML's binding gives as bytes or text, by its version."""
    return value.decode() if isinstance(value, bytes) else str(value)


def times(factor: float, value: int | None) -> float | None:
    """Return a value in another unit: milliwatts in watts, KiB in bytes."""
    return None if value is None else round(factor * value, 3)
