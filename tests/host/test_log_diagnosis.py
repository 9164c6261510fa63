"""Logs of GPU workers that failed, as dask-cuda and CUDA wrote them, and what they mean."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.host.log_diagnosis import diagnose, explanations, remarks

LOGS = {
    "given no GPU": "ValueError: Devices in CUDA_VISIBLE_DEVICES must be comma-separated integers"
    " or strings beginning with 'GPU-' or 'MIG-' prefixes.",
    "does not know on this node": "TypeError: %d format: a real number is required, not str",
    "Driver and NVML differ": "pynvml.NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM"
    " version mismatch.",
    "no NVIDIA driver": "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
    "not loaded": "pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded",
    "older than the CUDA": "cudaErrorInsufficientDriver: CUDA driver version is insufficient for"
    " CUDA runtime version",
    "Another process uses the GPU": "cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are"
    " busy or unavailable",
    "fewer GPUs than it has workers": "cudaErrorInvalidDevice: invalid device ordinal",
    "make workers.rmm_pool smaller": "MemoryError: std::bad_alloc: out_of_memory: CUDA error",
    "dask-cuda is not installed": "/opt/env/bin/python: Error while finding module specification"
    " for 'dask_cuda.cli' (ModuleNotFoundError: No module named 'dask_cuda')",
    "RMM is not installed": "ModuleNotFoundError: No module named 'rmm'",
    "cuDF is not installed": "ModuleNotFoundError: No module named 'cudf'",
}


@pytest.mark.parametrize("words", LOGS)
def test_a_log_is_put_into_words(words: str) -> None:
    assert words in diagnose(f"Traceback (most recent call last):\n  ...\n{LOGS[words]}\n")


def test_each_cause_is_tried() -> None:
    assert len({diagnose(log) for log in LOGS.values()}) == len(explanations("gpu_causes"))


def test_a_log_that_speaks_for_itself_is_left_alone() -> None:
    assert diagnose("ValueError: my own program cannot do that\n") == ""


WARNINGS = {
    "bound to fewer cores": "Warning: 1 cores for 42 threads",
    "not bound to the cores": "distributed.worker - WARNING - Setting CPU affinity for GPU failed."
    " Please refer to the following link for troubleshooting information: https://docs",
    "A library used the GPUs before": "A CUDA context for device 0 (b'GPU-9baca7f5') already"
    " exists on process ID 1. This is often the result of a CUDA-enabled library calling a CUDA",
    "computes on another GPU": "Worker with process ID 1 should have a CUDA context assigned to"
    " device 1 (b'GPU-9b'), but instead the CUDA context is on device 0 (b'GPU-9a').",
    "(NVML)": "pynvml.NVMLError_NoPermission: Insufficient Permissions (nvmlDeviceGetHandle)",
    "A line of environment.prologue ended with exit code 3: module load cuda": "gpucluster:"
    " environment.prologue: exit code 3: module load cuda",
    "set workers.rmm_pool": "UserWarning: When using NVLink we recommend setting a `rmm_pool_size`",
}


@pytest.mark.parametrize("words", WARNINGS)
def test_a_warning_of_a_worker_that_runs_is_put_into_words(words: str) -> None:
    (told,) = remarks(f"Start worker at: tls://\n{WARNINGS[words]}\nRegistered to: tls://\n")
    assert words in told


def test_each_warning_is_tried_and_a_quiet_log_gives_none() -> None:
    assert len(WARNINGS) == len(explanations("remarks"))
    assert remarks("distributed.worker - INFO - Registered to: tls://10.0.0.1:1") == []
