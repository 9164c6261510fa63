"""Clusters inside an allocation of a real Slurm: all of its nodes, and nothing beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from .slurm_site import SlurmSite

PROFILE = """\
title: This allocation
backend: local
launcher: srun
network: {interface: lo}
"""
NOTEBOOK = """
import json
import os

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.connection import connect

clusters = Clusters()
view = clusters.start("here")
view = clusters.wait_ready(view.id, timeout=90)
with connect(view.name) as client:
    nodes = client.run(lambda: os.environ["SLURMD_NODENAME"])
    threads = [worker["nthreads"] for worker in client.scheduler_info()["workers"].values()]
    done = client.submit(sum, [1, 2]).result()
clusters.stop(view.id)
clusters.wait_stopped(view.id, timeout=60)
told = {"nodes": sorted(nodes.values()), "threads": threads, "done": done}
print("TOLD", json.dumps({**told, "survival": view.survival, "asked": view.workers.asked}))
"""


def test_a_local_cluster_with_a_launcher_uses_all_nodes_of_its_allocation(
    home: Path, site: SlurmSite
) -> None:
    place = home / "data" / "gpucluster" / "profiles" / "here.yaml"
    place.parent.mkdir(parents=True)
    place.write_text(PROFILE)
    script = home / "notebook.py"
    script.write_text(textwrap.dedent(NOTEBOOK))
    argv = ["salloc", "-N2", "--ntasks-per-node=1", "-c2", "--mem=1500", "-p", "cpu", "-t", "5"]
    ran = subprocess.run(
        [*argv, sys.executable, str(script)],
        env={**os.environ, **site.environment, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    told = json.loads(ran.stdout.partition("TOLD ")[2])
    assert told["nodes"] == ["c1", "c2"]
    assert told["threads"] == [2, 2]
    assert (told["done"], told["asked"]) == (3, 2)
    assert "it ends with Slurm job" in told["survival"]
    assert site.queue() == []
