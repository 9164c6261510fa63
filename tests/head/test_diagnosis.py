"""Logs of GPU workers that failed, as dask-cuda and CUDA wrote them, and what they mean."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.head.diagnosis import CAUSES, diagnose

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
    "Somebody else computes": "cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or"
    " unavailable",
    "fewer GPUs than workers": "cudaErrorInvalidDevice: invalid device ordinal",
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
    assert len({diagnose(log) for log in LOGS.values()}) == len(CAUSES)


def test_a_log_that_speaks_for_itself_is_left_alone() -> None:
    assert diagnose("ValueError: my own program cannot do that\n") == ""
