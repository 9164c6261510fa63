"""A cluster inside an allocation, spread over its nodes by a real Open MPI and a real sshd."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.host.hardware import usable_cpus
from tests.integration.batch.real_site import free_ports
from tests.integration.batch.ssh_site import SshSite
from tests.waiting import workers_of

from .conftest import Start, WriteProfile
from .driving import client_of, until

SPREAD = """
launcher: {name: mpirun, command: mpirun.openmpi, args: [--bind-to, core]}
network: {interface: lo}
"""


@pytest.mark.skipif(usable_cpus() < 2, reason="one core is all there is")
@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="needs root: Open MPI")
def test_a_rank_has_its_whole_node_and_says_where_its_launcher_binds_it_to_less(
    clusters: Clusters,
    start: Start,
    write_profile: WriteProfile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text(f"{os.uname().nodename}\n")
    for name, value in {
        "COBALT_JOBID": "7",
        "COBALT_NODEFILE": str(nodes),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }.items():
        monkeypatch.setenv(name, value)
    view = start(write_profile("here", SPREAD))
    assert view.workers.ready == 1
    with client_of(view) as client:
        [worker] = workers_of(client).values()
        assert worker["nthreads"] == usable_cpus()
        [cores] = client.run(lambda: len(os.sched_getaffinity(0))).values()
    assert cores < usable_cpus()
    until(lambda: "bound to fewer cores" in clusters.why(view.id))


def test_ssh_starts_a_rank_on_each_node_of_the_node_file(
    clusters: Clusters,
    start: Start,
    write_profile: WriteProfile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "nodes").write_text("n1\nn2\n")
    monkeypatch.setenv("PBS_NODEFILE", str(tmp_path / "nodes"))
    monkeypatch.setenv("NCPUS", "1")
    base = tmp_path / "sshd"
    base.mkdir()
    daemon = SshSite(base, ["n1", "n2"], free_ports(1)[0])
    daemon.start()
    try:
        launcher = f"launcher: {{name: ssh, args: [-F, {daemon.config}]}}\n"
        view = start(write_profile("by-ssh", launcher + "network: {interface: lo}\n"), 2)
        with client_of(view) as client:
            workers = workers_of(client).values()
            assert sorted(worker["name"][-3:] for worker in workers) == ["-n0", "-n1"]
            assert [worker["nthreads"] for worker in workers] == [1, 1]
        clusters.stop(view.id)
        clusters.wait_stopped(view.id, timeout=60)
    finally:
        daemon.stop()
