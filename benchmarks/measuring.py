"""Helpers of the benchmarks: a place of their own, commands under a stopwatch, medians."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
MOCKED = "mocked"
"""Profile of CPU workers that dask-cuda takes for workers of GPUs; it needs dask-cuda only."""
MOCKED_PROFILE = """
title: Mocked GPUs
backend: local
workers:
  extra_args: [--worker-class, dask_cuda.utils_test.MockWorker]
"""


@contextlib.contextmanager
def own_place() -> Iterator[Path]:
    """Point Jupyter at a new folder, and end all clusters there afterwards."""
    with tempfile.TemporaryDirectory(prefix="gpc-bench-") as folder:
        # Heads that are killed leave their scratch directories: they go with the folder.
        scratch = Path(folder) / "tmp"
        scratch.mkdir()
        os.environ |= {
            "JUPYTER_DATA_DIR": folder,
            "PYTHONPATH": str(CHECKOUT),
            "TMPDIR": str(scratch),
        }
        try:
            yield Path(folder)
        finally:
            cli("stop", "--all", "--wait", check=False)


def mock_gpus(place: Path, count: int) -> None:
    """Pretend that this machine has GPUs: to try a script, not to measure anything."""
    profiles = place / "gpucluster" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / f"{MOCKED}.yaml").write_text(MOCKED_PROFILE)
    devices = [f"GPU-{number:08x}-2222-3333-4444-555555555555" for number in range(count)]
    os.environ |= {
        "CUDA_VISIBLE_DEVICES": ",".join(devices),
        "DASK_CUDA_TEST_SINGLE_GPU": "1",
        "DASK_CUDA_TEST_DISABLE_DEVICE_SPECIFIC": "1",
    }
    print("MOCKED GPUs: no figure below is one of a GPU")


def seconds(argv: Sequence[str | Path], *, check: bool = True) -> tuple[float, str]:
    """Run a command; return how long it took and what it printed."""
    began = time.perf_counter()
    told = subprocess.run(argv, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if check and told.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: exit code {told.returncode}\n{told.stderr}")
    return took, told.stdout


def cli(*words: str, check: bool = True) -> tuple[float, Any]:
    """Run a verb of the command line; return how long it took and its JSON, where it has any."""
    took, text = seconds([sys.executable, "-m", "jupyter_gpucluster", *words], check=check)
    return took, json.loads(text) if "--json" in words and text else None


def show(title: str, samples: Sequence[float]) -> float:
    """Print least, median and most of some seconds; return the median."""
    median = statistics.median(samples)
    print(f"{title:<44} {min(samples):6.3f} {median:6.3f} {max(samples):6.3f} s")
    return median


def verdict(title: str, value: float, target: float, unit: str) -> bool:
    """Print a figure beside its target, and tell whether it is met."""
    met = value <= target
    print(f"{title:<44} {value:6.3f} {unit} (target <= {target:g}): {'met' if met else 'MISSED'}")
    return met
