"""dask-cuda's workers as forks of the job server, on a machine whose GPUs are mocked."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from pathlib import Path

import pytest

from jupyter_gpucluster.cli import main
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from tests.waiting import workers_of

from .conftest import Start, WriteProfile
from .driving import client_of, command_of, ended, job_server_of, parent_of, until

MOCKED = """
environment:
  variables:
    DASK_CUDA_TEST_SINGLE_GPU: "1"
    DASK_CUDA_TEST_DISABLE_DEVICE_SPECIFIC: "1"
workers:
  device_memory_limit: null
  cpu_affinity: job
  extra_args: [--worker-class, dask_cuda.utils_test.MockWorker, --preload, {preload}]
"""
UNBOUND = """
import logging
import os
import sys
from types import ModuleType, SimpleNamespace as Answer

class Nvml(ModuleType):
    NVMLError = KeyError
    nvmlInit = staticmethod(lambda: None)
    nvmlDeviceGetHandleByUUID = staticmethod(lambda uuid: uuid)
    nvmlDeviceGetUUID = staticmethod(lambda card: card)
    nvmlDeviceGetName = staticmethod(lambda card: "NVIDIA H100")
    nvmlDeviceGetMemoryInfo = staticmethod(lambda card: Answer(used=2**30, total=80 * 2**30))
    nvmlDeviceGetUtilizationRates = staticmethod(lambda card: Answer(gpu=73))
    nvmlDeviceGetPowerUsage = staticmethod(lambda card: 74_555)
    nvmlDeviceGetTemperature = staticmethod(lambda card, sensor: 46)
    nvmlDeviceGetCurrentClocksEventReasons = staticmethod(lambda card: 0x20)

def dask_setup(worker):
    sys.modules["pynvml"] = Nvml("pynvml")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    logging.getLogger("distributed.worker").warning("Setting CPU affinity for GPU failed. See")
"""
"""A worker as dask-cuda makes it, with its message about the cores of another socket; and a driver
that reports a hot card."""
DEVICE = "GPU-11111111-2222-3333-4444-555555555555"

if importlib.util.find_spec("dask_cuda"):

    def test_a_gpu_worker_is_what_dask_cuda_starts_and_its_nanny_starts_it_again(
        clusters: Clusters,
        start: Start,
        write_profile: WriteProfile,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        preload = tmp_path / "unbound.py"
        preload.write_text(UNBOUND)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", DEVICE)
        view = start(write_profile("mocked", MOCKED.format(preload=preload)))
        [job] = clusters.jobs(view.id)
        server = job_server_of(view)
        with client_of(view) as client:
            [(address, pid)] = client.run(os.getpid).items()
            names = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
            told = client.run(lambda: tuple(os.environ[name] for name in names))
            assert told == {address: ("PCI_BUS_ID", DEVICE)}
            assert address.startswith("tls://")
            cores = client.run_on_scheduler(lambda: sorted(os.sched_getaffinity(0)))
            assert client.submit(lambda: sorted(os.sched_getaffinity(0))).result() == cores
            [worker] = workers_of(client).values()
            assert worker["name"] == job.key
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
        [gpu] = until(lambda: clusters.get(view.id).gpus)
        assert (gpu.worker, gpu.uuid, gpu.name) == (worker["name"], DEVICE, "NVIDIA H100")
        assert (gpu.utilization, gpu.power, gpu.temperature) == (73, 74.555, 46)
        assert gpu.slowed == ("heat",)
        capsys.readouterr()
        assert main(["show", view.name, "--json"]) == 0
        [reading] = json.loads(capsys.readouterr().out)["gpus"]
        assert (reading["memory_used"], reading["memory_total"]) == (2**30, 80 * 2**30)
        assert main(["show", view.name]) == 0
        shown = capsys.readouterr().out
        assert all(words in shown for words in ("73 %", "46", "heat", "GPU-hours"))
        log = ClusterDirectory(Path(view.directory)).logs / f"{job.mark}_{job.task}.log"
        assert "Start Nanny at" in log.read_text()
        until(lambda: "not bound to the cores" in clusters.why(view.id))
        [warned] = [e.message for e in clusters.events(view.id) if "cores" in e.message]
        assert warned.startswith(f"{job.mark}_{job.task}: ")
        clusters.stop(view.id)
        assert until(lambda: ended(clusters, view)).phase is Phase.STOPPED
