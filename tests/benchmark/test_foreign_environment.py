"""Workers whose environment lacks this package can run the benchmark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from jupyter_gpucluster.benchmark import Options, run_benchmark
from tests.waiting import until


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.slow
def test_scheduler_and_workers_need_dask_and_numpy_only(tmp_path: Path) -> None:
    from distributed import Client

    (tmp_path / "jupyter_gpucluster.py").write_text("raise ImportError('not on this machine')")
    scheduler_file = tmp_path / "scheduler.json"
    with ExitStack() as stack:
        for role in ("scheduler", "worker"):
            arguments = ["--scheduler-file", os.fspath(scheduler_file), "--no-dashboard"]
            if role == "scheduler":
                arguments += ["--host", "127.0.0.1", "--port", "0"]
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{role}", *arguments],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": os.fspath(tmp_path)},
                stderr=subprocess.DEVNULL,
            )
            stack.enter_context(ended(process))
            if role == "scheduler":
                until(scheduler_file.exists)
        with Client(scheduler_file=os.fspath(scheduler_file)) as client:
            report = run_benchmark(client, Options((400, 400), (100, 100)))
    assert report.workers == 1
