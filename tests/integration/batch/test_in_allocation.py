"""Clusters on the nodes of an allocation of a real Slurm, from inside it and by its number."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import ctime

import pytest

from jupyter_gpucluster.batch.queue import user_name
from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.job import JobState
from tests.batch.recorded import Recording
from tests.waiting import until

from .ordinary_user import Person, ordinary_user
from .real_site import NEUTRAL, free_ports
from .slurm_site import SlurmSite
from .ssh_site import SshSite

LIKE = """
title: A batch profile as large as the allocation
backend: slurm
launcher: srun
job: {nodes: 2, cpus: 4, memory: 3000 MiB, queue: cpu, walltime: 5 min}
"""
PROFILE = """\
title: This allocation
backend: local
launcher: srun
network: {interface: lo}
"""
BATCH = """\
title: Batch
backend: slurm
network: {interface: lo}
job: {queue: cpu, cpus: 1, memory: 1 GiB}
"""
SECONDS = 90.0
NEEDED = ("sed", "seq", "sh", "sleep", "sort", "ssh", "ssh-keygen", "stat", "sshd")
"""Commands that begin like those of batch systems and are none."""
NOTEBOOK = """
import json
import os

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.client.connect import connect

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
    assert "which runs in Slurm job" in told["survival"]
    site.wait(lambda: site.queue() == [])


@pytest.fixture
def person(site: SlurmSite) -> Iterator[Person]:
    """An ordinary user with a profile for allocations."""
    with ordinary_user(site.user, site.environment) as somebody:
        somebody.write_profile("here", PROFILE)
        yield somebody
        for view in somebody.clusters.live():
            somebody.clusters.stop(view.id)
            somebody.clusters.wait_stopped(view.id, timeout=60)
        site.run("scancel", *site.queue(), check=False)
        site.wait(lambda: site.queue() == [])


def run_as(site: SlurmSite, user: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody."""
    return subprocess.run(
        ["runuser", "-u", user, "--", *argv],
        env={**NEUTRAL, **site.environment},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def allocate(site: SlurmSite, user: str, *options: str) -> str:
    """Return the number of an allocation that nobody sits in."""
    argv = ["-N2", "-n2", "-c2", "--mem=1500", "-p", "cpu", *options]
    return granted(site, user, ["salloc", *argv])


def granted(site: SlurmSite, user: str, argv: Sequence[str]) -> str:
    """Return the number of an allocation that nobody sits in, by salloc's whole command."""
    said = run_as(site, user, [*argv, "--no-shell"]).stderr
    return said.partition("job allocation ")[2].split()[0]


def test_an_allocation_is_joined_by_its_number_and_outlives_the_cluster(
    site: SlurmSite, person: Person
) -> None:
    clusters = person.clusters
    person.write_profile("like", LIKE)
    words = shlex.split(clusters.script("like").interactive)
    number = granted(site, person.name, words)
    view = clusters.start("here", allocation=number)
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    assert (view.allocation, view.threads) == (f"Slurm job {number} (c[1-2])", 4)
    assert [clock.name for clock in view.clocks] == [f"end of Slurm job {number}"]
    person.work.begin(view.name)
    assert person.work.computes()
    person.work.end()
    second = f"{clusters.jobs(view.id)[0].id}-n1"
    words = ["sh", "-c", "echo $SLURM_JOB_ID $SLURMD_NODENAME ${PYTHONPATH:+set}; exit 7"]
    argv = clusters.entry(view.id, words, worker=second, terminal=False)
    entered = run_as(site, person.name, argv)
    assert (entered.returncode, entered.stdout) == (7, f"{number} c2 set\n"), entered.stderr
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=SECONDS)
    assert site.queue() == [number]
    assert site.run("squeue", "-h", "--steps", "-o", "%i").split() == []


def test_a_cluster_ends_with_the_allocation_that_it_joined_and_replaces_nothing(
    site: SlurmSite, person: Person
) -> None:
    clusters, number = person.clusters, allocate(site, person.name, "-t", "5")
    view = clusters.start("here", allocation=number)
    clusters.wait_ready(view.id, timeout=SECONDS)
    site.run("scancel", number)
    view = clusters.wait_stopped(view.id, timeout=SECONDS)
    assert view.phase is Phase.STOPPED
    assert view.reason.startswith(f"Slurm job {number}, whose nodes it used, has ended.")
    assert len(clusters.jobs(view.id)) == 1


def test_a_number_that_cannot_be_joined_is_refused_with_the_reason(
    site: SlurmSite, person: Person
) -> None:
    ended = allocate(site, person.name, "-t", "5")
    site.run("scancel", ended)
    site.wait(lambda: site.queue() == [])
    roots = allocate(site, "root", "-t", "5")
    argv = ["sbatch", "--parsable", "-p", "cpu", "-N2", "-c8", "--wrap=true"]
    waits = run_as(site, person.name, argv).stdout.strip()
    for number, words in (
        (ended, f"Slurm job {ended} has ended. It was cancelled"),
        (roots, f"Slurm job {roots} is root's, not yours."),
        (waits, f"Slurm job {waits} has not started."),
        ("999999", "Slurm has no waiting or running job 999999"),
    ):
        with pytest.raises(AssertionError, match=f"InvalidInput: {words}"):
            person.clusters.start("here", allocation=number)
    assert person.clusters.list(ended=True) == []


def test_a_shell_enters_the_task_of_an_array(site: SlurmSite, person: Person) -> None:
    clusters = person.clusters
    view = clusters.start(person.write_profile("batch", BATCH), target=Target(2, 2))
    until(lambda: [job.state for job in clusters.jobs(view.id)] == [JobState.RUNNING] * 2)
    second = clusters.jobs(view.id)[1].id
    words = ["sh", "-c", "echo $SLURM_JOB_ID $OMP_NUM_THREADS; exit 3"]
    entered = run_as(site, person.name, clusters.entry(view.id, words, job=second, terminal=False))
    [number] = site.run("squeue", "-h", "-j", second, "-o", "%A").split()
    assert (entered.returncode, entered.stdout) == (3, f"{number} 1\n"), entered.stderr


def test_the_nodes_of_a_pbs_job_are_joined_over_ssh(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = ("gpu01", "gpu02")
    told = Recording("pbs", "status_running_two_nodes__qstat_json.txt", "", ()).result.stdout
    told = told.replace("alice@", f"{user_name()}@").replace("Sat Nov 28 00:45:36 2026", ctime())
    (tmp_path / "told").write_text(
        told.replace('"ngpus":	2', '"ngpus":	0').replace("ngpus=1", "ngpus=0")
    )
    put_commands(tmp_path / "bin", {"qstat": f"cat {tmp_path}/told", "pbs_rstat": ""})
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    daemon = SshSite(tmp_path, hosts, free_ports(1)[0])
    try:
        daemon.start()
        place = home / "data/gpucluster/profiles/here.yaml"
        place.parent.mkdir(parents=True)
        launcher = f"launcher: {{name: ssh, args: [-F, {daemon.config}]}}"
        place.write_text(PROFILE.replace("launcher: srun", launcher))
        clusters = Clusters()
        view = clusters.start("here", allocation="39")
        view = clusters.wait_ready(view.id, timeout=SECONDS)
        assert view.allocation == "PBS job 39.login1 (gpu01,gpu02)"
        argv = clusters.entry(view.id, ["true"], worker=f"gpc-{view.id}-1_0-n1", terminal=False)
        assert argv[:2] == ["ssh", "gpu02"]
        with connect(view.name) as client:
            assert client.submit(sum, [1, 2]).result() == 3
            assert len(client.scheduler_info()["workers"]) == 2
        clusters.stop(view.id)
        clusters.wait_stopped(view.id, timeout=SECONDS)
    finally:
        daemon.stop()


def put_commands(place: Path, own: dict[str, str]) -> None:
    """Make a folder of commands: this machine's, but for those of batch systems, and others."""
    place.mkdir()
    for folder in ("/usr/bin", "/bin", "/usr/sbin"):
        for program in Path(folder).iterdir():
            if not program.name.startswith(("q", "s")) or program.name in NEEDED:
                with contextlib.suppress(FileExistsError):
                    (place / program.name).symlink_to(program)
    for name, text in own.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
