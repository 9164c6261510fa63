"""What the last lines of a GPU worker's log mean, where they hide it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import log_causes

ERROR_LINE = re.compile(
    r"(command not found|: not found$|No such file|Permission denied|No module named"
    r"|[A-Za-z.]*(Error|Exception)\b)"
)
"""A line of a log that names an error."""
LOG_END = 3
"""So many lines are shown of a log in which nothing is known."""
CAUSES = (
    # dask-cuda formats a UUID as a number where it wanted to warn that NVML does not know it.
    (
        r"%d format: a real number is required, not str",
        "CUDA_VISIBLE_DEVICES names a GPU that NVML does not know on this node: give whole UUIDs"
        " as `nvidia-smi -L` prints them, or leave it to the queueing system.",
    ),
    (
        r"Devices in CUDA_VISIBLE_DEVICES must be|nvmlDeviceGetHandleByIndex.*Not Found",
        "The job was given no GPU (CUDA_VISIBLE_DEVICES is empty or names none): ask for GPUs in"
        " the way that the site wants, see job.gpu_request and job.directives.",
    ),
    (
        r"LibRmVersionMismatch|Driver/library version mismatch",
        "Driver and NVML differ on this node, which was updated: it needs a restart.",
    ),
    (
        r"NVMLError_LibraryNotFound|NVML Shared Library Not Found|libnvidia-ml\.so",
        "There is no NVIDIA driver where the worker runs: the job's node has no GPU, or its"
        " container was started without GPUs.",
    ),
    (
        r"NVMLError_DriverNotLoaded",
        "The NVIDIA driver of this node is not loaded; tell the site.",
    ),
    (
        r"CUDA driver version is insufficient",
        "The node's driver is older than the CUDA of the workers' environment: take a package"
        " for an older CUDA, or ask the site for a newer driver.",
    ),
    (
        r"CUDA-capable device\(s\) is/are busy or unavailable",
        "Somebody else computes on the GPU, which admits one process only: ask for whole GPUs.",
    ),
    (
        r"invalid device ordinal",
        "The job sees fewer GPUs than workers were started: one worker for each GPU that"
        " CUDA_VISIBLE_DEVICES names is the most.",
    ),
    (
        r"RMM failure|rmm.*bad_alloc|std::bad_alloc: out_of_memory",
        "The GPU had less free memory than the pool takes: make workers.rmm_pool smaller (at most"
        " nine tenths of the card or slice), or see who else uses the GPU.",
    ),
    (
        r"No module named '?dask_cuda",
        "dask-cuda is not installed in the workers' environment: install dask-cuda[cu12] or"
        " dask-cuda[cu13] there.",
    ),
    (
        r"No module named '?rmm",
        "RMM is not installed in the workers' environment: install rmm-cu12 or rmm-cu13 there, or"
        " leave workers.rmm_pool and workers.rmm_async out.",
    ),
    (
        r"No module named '?cudf",
        "cuDF is not installed in the workers' environment: install it there, or leave"
        " workers.cudf_spill out.",
    ),
)
"""Signs in a log and what they mean; the first that is found counts."""


REMARKS = (
    (
        r"^Warning: \d+ cores for \d+ threads$",
        "The workers of a job are bound to fewer cores than they have threads: ask for cores"
        " (job.cpus), and let the launcher bind a rank to all of its own (jsrun --bind rs, srun"
        " --cpu-bind=none, mpirun --bind-to none, in launcher.args). Where a library binds them,"
        " set OMP_PROC_BIND to FALSE in environment.variables.",
    ),
    (
        r"Setting CPU affinity for GPU failed|Cannot get CPU affinity for device",
        "The worker is not bound to the cores next to its GPU, since its job has others: ask for"
        " whole nodes or for more cores (job.cpus).",
    ),
    (
        r"A CUDA context for device .* already exists",
        "A library used the GPUs before dask-cuda did, so memory may be taken from the first GPU"
        " instead of the worker's: import it in tasks, not when workers start (with RAPIDS"
        " libraries, set RAPIDS_NO_INITIALIZE in environment.variables).",
    ),
    (
        r"but instead the CUDA context is on device",
        "The worker computes on another GPU than its own, since a library used the GPUs before"
        " dask-cuda did: import it in tasks, not when workers start.",
    ),
    (
        r"(?i:nvml\w*.*insufficient|insufficient.*nvml)",
        "The driver does not let the worker read its GPU (NVML): there may be no readings, and"
        " idle GPUs are not noticed.",
    ),
    (
        r"When using NVLink we recommend setting a",
        "UCX over NVLink is slow without a pool of device memory: set workers.rmm_pool.",
    ),
)
"""Signs in the log of a worker that runs all the same, and what they mean."""


def remarks(log: str) -> list[str]:
    """Return what the log of a worker that runs warns of, in words."""
    return [words for sign, words in REMARKS if re.search(sign, log, re.MULTILINE)]


def diagnose(log: str) -> str:
    """Return what went wrong and the way out, empty where the log speaks for itself."""
    known = (*CAUSES, *log_causes.CAUSES)
    return next((words for sign, words in known if re.search(sign, log)), "")


def log_end(lines: Sequence[str]) -> str:
    """Return the last lines of a log as one sentence, empty where it has none."""
    shown = ("".join(c for c in line.strip() if c.isprintable())[:200] for line in lines)
    last = [line for line in shown if line][-LOG_END:]
    return f"Its log ends: {' | '.join(last)}" if last else ""
