"""dask-cuda's workers as forks of the job server, on a machine whose GPUs are mocked."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.records import Phase
from jupyter_gpucluster.store import ClusterDirectory

from .conftest import Start, WriteProfile
from .driving import client_of, command_of, ended, job_server_of, parent_of, until

MOCKED = """
environment:
  variables: {DASK_CUDA_TEST_SINGLE_GPU: "1", DASK_CUDA_TEST_DISABLE_DEVICE_SPECIFIC: "1"}
workers:
  device_memory_limit: null
  extra_args: [--worker-class, dask_cuda.utils_test.MockWorker]
"""
DEVICE = "GPU-11111111-2222-3333-4444-555555555555"

if importlib.util.find_spec("dask_cuda"):

    def test_a_gpu_worker_is_what_dask_cuda_starts_and_its_nanny_starts_it_again(
        clusters: Clusters,
        start: Start,
        write_profile: WriteProfile,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", DEVICE)
        view = start(write_profile("mocked", MOCKED))
        [job] = clusters.jobs(view.id)
        server = job_server_of(view)
        with client_of(view) as client:
            [(address, pid)] = client.run(os.getpid).items()
            names = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
            told = client.run(lambda: tuple(os.environ[name] for name in names))
            assert told == {address: ("PCI_BUS_ID", DEVICE)}
            assert address.startswith("tls://")
            [worker] = client.scheduler_info(n_workers=-1)["workers"].values()
            assert worker["name"] == f"{job.mark}_{job.task}"
            nanny = parent_of(pid)
            # A fork has the words of what it was forked from, the worker is a new interpreter.
            assert (nanny, parent_of(nanny)) == (job.process[0], server)
            assert command_of(nanny) == command_of(server)
            assert b"multiprocessing" in command_of(pid)
            # What forks has one thread: another's locks would stay locked in the fork.
            assert len(list(Path(f"/proc/{server}/task").iterdir())) == 1
            os.kill(pid, signal.SIGKILL)
            again = until(lambda: {*client.run(os.getpid, on_error="ignore").values()} - {pid})
            assert [parent_of(process) for process in again] == [nanny]
        log = ClusterDirectory(Path(view.directory)).logs / f"{job.mark}_{job.task}.log"
        assert "Start Nanny at" in log.read_text()
        clusters.stop(view.id)
        assert until(lambda: ended(clusters, view)).phase is Phase.STOPPED
