"""One job over several nodes: real srun, real Open MPI and real ssh on a real Slurm."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.doctor.checkup import examine_profile
from jupyter_gpucluster.doctor.findings import Result
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.request import Request
from jupyter_gpucluster.launch.script.job import MARK
from tests.launch.script.test_launchers import NAMED, Job
from tests.waiting import until, workers_of

from .conftest import SECONDS, WriteProfile, wait_until
from .real_site import free_ports
from .slurm_site import SlurmSite
from .ssh_site import SshSite

TWO_NODES = """
job: {nodes: 2, cpus: 8, memory: 2000 MiB, walltime: "00:10:00", queue: cpu}
workers: {per_job: 4}
"""
FOUR = Target(4, 4)


@pytest.fixture(scope="module")
def ssh(site: SlurmSite) -> Iterator[SshSite]:
    base = Path(tempfile.mkdtemp(prefix="sshd-"))
    daemon = SshSite(base, site.nodes, free_ports(1)[0])
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.stop()
        shutil.rmtree(base, ignore_errors=True)


def launcher_of(name: str, ssh: SshSite) -> str:
    return {
        "srun": "launcher: srun\n",
        "ssh": f"launcher: {{name: ssh, args: [-F, {ssh.config}]}}\n",
        # Under Slurm it would start its daemons with srun; many sites' Open MPI knows no Slurm.
        "mpirun": "launcher:\n  name: mpirun\n  args: [--mca, plm, rsh, --mca, ras, ^slurm,"
        f" --mca, plm_rsh_agent, 'ssh -F {ssh.config}', --mca, oob_tcp_if_include, lo]\n"
        "environment:\n  variables: {OMPI_ALLOW_RUN_AS_ROOT: '1',"
        " OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1'}\n",
    }[name]


@pytest.mark.parametrize("name", ["srun", "mpirun", "ssh"])
def test_one_job_holds_workers_on_two_nodes_and_all_of_them_end_with_it(
    clusters: Clusters, site: SlurmSite, ssh: SshSite, write_profile: WriteProfile, name: str
) -> None:
    view = clusters.start(write_profile(name, TWO_NODES + launcher_of(name, ssh)), target=FOUR)
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    assert len(site.queue()) == 1
    with connect(view.name) as client:
        workers = workers_of(client).values()
        key = f"gpc-{view.id}-1_0"
        assert {w["name"] for w in workers} == {f"{key}-n{n}-{i}" for n in (0, 1) for i in (0, 1)}
        assert {(w["nthreads"], w["memory_limit"]) for w in workers} == {(2, 500 * 2**20)}
        assert client.submit(sum, range(5)).result() == 10
    site.run("scancel", site.queue()[0])
    wait_until(clusters, view.id, lambda _: len(clusters.jobs(view.id)) == 2)
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    assert [job.state for job in clusters.jobs(view.id)].count(JobState.CANCELLED) == 1
    until(lambda: not processes_with(f"{key}-n"))
    if name == "ssh":  # nobody but the workers themselves and their job's script can notice
        head = ClusterDirectory(Path(view.directory)).read_process()
        assert head is not None
        os.kill(head.pid, signal.SIGKILL)
    else:
        clusters.stop(view.id)
        assert clusters.wait_stopped(view.id, timeout=SECONDS).phase is Phase.STOPPED
    until(lambda: not processes_with(view.id))


def test_the_doctor_logs_in_to_the_nodes_of_a_job_as_the_launcher_does(
    clusters: Clusters, site: SlurmSite, ssh: SshSite, write_profile: WriteProfile
) -> None:
    profile = write_profile("ssh", TWO_NODES + launcher_of("ssh", ssh))
    request = Request(profile)
    report = examine_profile(clusters, request, job=True, wait=SECONDS)
    found = {finding.check: finding for finding in report.findings}
    assert report.result is not Result.FAILED
    assert found["ssh in the job"].found == "c1, c2 can be entered."
    assert found["ssh from here"].found == "c1, c2 can be entered."
    assert found["probe job"].found.startswith("2 of 2 ranks answered")
    until(lambda: site.queue() == [])


@pytest.mark.parametrize("ranks, seen", [(1, ["0,1,2,3"] * 2), (2, ["0,1", "2,3"] * 2)])
def test_ranks_see_the_gpus_of_their_node(site: SlurmSite, ranks: int, seen: list[str]) -> None:
    # Not below the test's own folder, whose name cannot stand in a directive.
    place = Path(tempfile.mkdtemp(prefix="ranks-"))
    try:
        job = Job(
            place,
            NAMED + '; echo "worker $name sees $CUDA_VISIBLE_DEVICES"',
            backend="slurm",
            job={"nodes": 2, "gpus": 8, "cpus": 8, "memory": 2**30, "queue": "gpu"},
            launcher={"name": "srun", "ranks_per_node": ranks},
        )
        script = place / "job.sh"
        script.write_text(job.script.replace(MARK, "gpc-abc123-1"))
        site.run("sbatch", "--wait", str(script))
        told = sorted(line for line in job.log().splitlines() if line.startswith("worker "))
        key = "worker gpc-abc123-1_0"
        assert told == [f"{key}-n{rank} sees {gpus}" for rank, gpus in enumerate(seen)]
    finally:
        shutil.rmtree(place)


def processes_with(text: str) -> list[str]:
    """Return the command lines of processes that name something."""
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if text in line]
