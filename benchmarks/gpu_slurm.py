"""Real cards as Slurm's GPU GRES: each worker, and a head that asks, has its own (needs root)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from measuring import CHECKOUT, cli, own_place

sys.path.insert(0, str(CHECKOUT))

from tests.integration.batch.real_site import free_ports, host_name, running
from tests.integration.batch.slurm_site import SlurmSite

PROFILES = {
    "one": "job: {gpus: 1, cpus: 4, memory: 16 GiB, walltime: '00:20:00', queue: gpu}\n",
    "all": "job: {gpus: GPUS, cpus: 8, memory: 32 GiB, walltime: '00:20:00', queue: gpu}\n",
    "ranks": "job: {gpus: GPUS, cpus: 8, memory: 32 GiB, walltime: '00:20:00', queue: gpu}\n"
    "launcher: {name: srun, ranks_per_node: GPUS}\n",
}
"""One GPU in each job of an array; all GPUs in one job; one job with a rank for each GPU."""
HEAD = "head: {placement: job, gpus: 1}\n" + PROFILES["one"]
"""A head in the job of the first worker, with a GPU beside the worker's."""


class SlurmOfCards(SlurmSite):
    """A Slurm of one node that has this machine's NVIDIA devices."""

    gpu_nodes = 1
    cpu_nodes = 0

    def __init__(self, base: Path, cards: int) -> None:
        super().__init__(base, gpu_nodes=1, cpu_nodes=0, gatherer=False)
        self.cards = cards

    def write_config(self) -> None:
        control, port = free_ports(2)
        lines = [f"{k}={v}" for k, v in (self.settings() | {"SlurmctldPort": control}).items()]
        lines += [
            f"NodeName=g1 NodeHostname={host_name()} NodeAddr=127.0.0.1 Port={port} "
            f"CPUs={os.cpu_count()} RealMemory=100000 Gres=gpu:{self.cards} State=UNKNOWN",
            "PartitionName=gpu Nodes=g1 MaxTime=01:00:00 State=UP Default=YES",
        ]
        (self.base / "etc/slurm.conf").write_text("\n".join(lines) + "\n")
        # Nothing here is done by control groups, but the plugin for v2 asks systemd for its own.
        (self.base / "etc/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.base / "etc/gres.conf").write_text(
            f"NodeName=g1 Name=gpu File=/dev/nvidia[0-{self.cards - 1}]\n"
        )


def devices_of(dask_worker: Any) -> dict[str, str]:
    """Return on a worker which devices it may use, and which one CuPy computes on."""
    import os

    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    return {
        "job": os.environ.get("SLURM_JOB_ID", ""),
        "allowed": os.environ.get("SLURM_JOB_GPUS", "") or os.environ.get("SLURM_STEP_GPUS", ""),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        "uuid": bytes(card["uuid"]).hex(),
    }


def device_of_the_head() -> str:
    """Return where the scheduler runs which card its GPU is, after it has computed there."""
    import cupy

    assert int(cupy.arange(10).sum()) == 45
    return bytes(cupy.cuda.runtime.getDeviceProperties(0)["uuid"]).hex()


def tried_head() -> dict[str, str]:
    """Start a cluster whose head has a GPU, and return the cards of head and worker."""
    from jupyter_gpucluster import connect

    _, view = cli("start", "head", "--gpus", "1", "--wait", "--json")
    with connect(view["name"], set_as_default=False) as client:
        client.wait_for_workers(1, timeout=120)
        (worker,) = client.run(devices_of).values()
        found = {"head": client.run_on_scheduler(device_of_the_head), "worker": worker["uuid"]}
    cli("stop", view["name"], "--wait")
    print("head: " + ", ".join(f"{who} {uuid}" for who, uuid in found.items()), flush=True)
    assert found["head"] != found["worker"], found
    return found


def tried(name: str, cards: int) -> dict[str, dict[str, str]]:
    """Start a cluster with a worker on each card, and return what each worker has."""
    from jupyter_gpucluster import connect
    from jupyter_gpucluster.benchmark import Options, run_benchmark

    _, view = cli("start", name, "--gpus", str(cards), "--wait", "--json")
    with connect(view["name"], set_as_default=False) as client:
        client.wait_for_workers(cards, timeout=120)
        found: dict[str, dict[str, str]] = client.run(devices_of)
        report = run_benchmark(client, Options(preset="thetagpu", mode="peak"))
    cli("stop", view["name"], "--wait")
    different = {worker["uuid"] for worker in found.values()}
    print(f"{name}: {len({w['job'] for w in found.values()})} job(s), {len(found)} workers")
    for worker in found.values():
        print("  " + ", ".join(f"{key} {value}" for key, value in worker.items()))
    print(
        f"  80 GB in {report.results[0].wall_seconds:.3f} s on {len(different)} cards", flush=True
    )
    assert len(found) == len(different) == cards, found
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    path = os.environ.get("PYTHONPATH", "")
    found: dict[str, Any] = {}
    with running(lambda base: SlurmOfCards(base, chosen.gpus)) as site, own_place() as place:
        os.environ["PYTHONPATH"] += os.pathsep + path
        os.environ |= site.environment
        profiles = place / "gpucluster" / "profiles"
        profiles.mkdir(parents=True)
        variables = json.dumps({"PYTHONPATH": os.environ["PYTHONPATH"]})
        for name, text in {**PROFILES, "head": HEAD}.items():
            (profiles / f"{name}.yaml").write_text(
                f"title: {name}\nbackend: slurm\nnetwork: {{interface: lo}}\n"
                f"environment: {{variables: {variables}}}\n"
                + text.replace("GPUS", str(chosen.gpus))
            )
        for name in PROFILES:
            found[name] = tried(name, chosen.gpus)
        if chosen.gpus > 1:
            found["head"] = tried_head()
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
    print("each worker, and the head that asks for one, has a card of its own")


if __name__ == "__main__":
    main()
