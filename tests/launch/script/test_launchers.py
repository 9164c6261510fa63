"""Launchers: numbers, commands, and the ranks that real shells run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed import Client, LocalCluster

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.variables import node_lists
from jupyter_gpucluster.core.cluster import Spec
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.script.job import HOST_READER, render
from jupyter_gpucluster.launch.script.launchers import find_dialect, lay_out, options_of
from jupyter_gpucluster.launch.script.worker_command import WORKER_STARTER
from jupyter_gpucluster.node import node_list, start_worker
from jupyter_gpucluster.profiles import Profile
from jupyter_gpucluster.profiles.sections import Launcher
from tests.integration.batch.real_site import free_ports
from tests.integration.batch.ssh_site import SshSite
from tests.launch.specs import DIRECTORY, ShellJob, spec_for
from tests.waiting import until, workers_of

GIB = 2**30
EIGHT_GPUS = {"nodes": 2, "gpus": 8, "cpus": 64, "memory": 256 * GIB}


class Job(ShellJob):
    """A job of a profile in a directory of its own."""

    def __init__(self, home: Path, python: str = "exit 0", **profile: Any) -> None:
        self.directory = ClusterDirectory(home / "abc123")
        self.directory.create()
        self.directory.renew_lease()
        self.bin = home / "bin"
        self.bin.mkdir()
        reads_hosts = f'case "$1" in */{HOST_READER} | -IS) exec {sys.executable} "$@" ;; esac'
        worker = self.put("python", f"#!/bin/bash\n{reads_hosts}\n{python}\n")
        (self.directory.jobs / HOST_READER).write_text(node_list.reader(node_lists()))
        starter = Path(start_worker.__file__).read_bytes()
        (self.directory.jobs / WORKER_STARTER).write_bytes(starter)
        self.nodes = home / "nodes"
        self.nodes.write_text("n1\nn2\n")
        parsed = Profile.model_validate({"title": "x", "backend": "pbs", **profile})
        self.spec = spec_for(parsed, self.directory, python=str(worker), scratch=home / "scratch")
        self.script = render(parsed, self.spec, self.directory)
        self.variables = {
            "PATH": f"{self.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PBS_NODEFILE": str(self.nodes),
        }

    def put(self, name: str, text: str) -> Path:
        """Put a program on the job's path."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path


def spec_of(**profile: Any) -> Spec:
    return spec_for(Profile.model_validate({"title": "x", "backend": "slurm", **profile}))


# Numbers.


@pytest.mark.parametrize(
    "profile, key, words",
    [
        ({"job": {"nodes": 2}}, "launcher", "2 nodes, but no launcher"),
        ({"launcher": {"ranks_per_node": 2}}, "launcher.ranks_per_node", "needs a launcher"),
        ({"job": {"nodes": 2, "gpus": 9}, "launcher": "srun"}, "job.gpus", "9 GPUs"),
        (
            {"job": {"gpus": 8}, "launcher": {"name": "mpirun", "ranks_per_node": 9}},
            "launcher.ranks_per_node",
            "9 ranks for 8 GPUs",
        ),
        (
            {"job": {"gpus": 8}, "launcher": {"name": "mpirun", "ranks_per_node": 3}},
            "launcher.ranks_per_node",
            "3 ranks for 8 GPUs",
        ),
        ({"job": {"gpus": 4}, "workers": {"per_job": 2}}, "workers.per_job", "2 workers for the 4"),
        (
            {"job": {"nodes": 2}, "launcher": "srun", "workers": {"per_job": 3}},
            "workers.per_job",
            "3 workers",
        ),
        ({"job": {"nodes": 4, "cpus": 2}, "launcher": "srun"}, "job.cpus", "2 CPU cores"),
        (
            {"launcher": {"name": "jsrun", "ranks_per_node": 2}},
            "job.cpus",
            "cores of each resource set",
        ),
        ({"launcher": {"name": "srun", "mpi": "openmpi"}}, "launcher.mpi", "not for srun"),
    ],
)
def test_numbers_that_do_not_add_up_are_refused_with_the_key_to_change(
    tmp_path: Path, profile: dict[str, Any], key: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        Job(tmp_path, **profile)
    assert caught.value.detail == key
    assert caught.value.hint


def test_the_workers_of_a_node_share_what_the_node_gives() -> None:
    spec = spec_of(job={"nodes": 2, "cpus": 16, "memory": 8 * GIB}, launcher="srun")
    assert (spec.worker.per_job, spec.worker.threads, spec.worker.memory_limit) == (2, 8, 4 * GIB)
    launcher = {"name": "srun", "ranks_per_node": 4}
    spec = spec_of(job={"nodes": 2, "cpus": 16, "memory": 8 * GIB}, launcher=launcher)
    assert (spec.worker.per_job, spec.worker.threads, spec.worker.memory_limit) == (8, 2, GIB)
    spec = spec_of(job=EIGHT_GPUS, launcher="srun")
    assert (spec.worker.per_job, spec.worker.threads, spec.worker.memory_limit) == (8, 1, 32 * GIB)


def test_ranks_are_asked_for_as_tasks() -> None:
    spec = spec_of(job=EIGHT_GPUS, launcher={"name": "srun", "ranks_per_node": 4})
    lines = find_backend("slurm").directives(spec.job, "m", "/o")
    for part in ("-N 2", "-n 8", "--ntasks-per-node=4", "--cpus-per-task=8", "--gpus-per-node=4"):
        assert f"#SBATCH {part}" in lines
    [select] = [x for x in find_backend("pbs").directives(spec.job, "m", "/o") if "select" in x]
    assert "select=2:ncpus=32:mpiprocs=4:" in select


# Commands.

COMMANDS = {
    "srun": "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --export=ALL --kill-on-bad-exit=1 "
    "--wait=30 --cpu-bind=none --cpus-per-task=32",
    "mpirun": "mpirun -np 2 --map-by ppr:1:node --bind-to none --hostfile",
    "mpiexec": "mpiexec -n 2 -ppn 1 -genvall -hostfile",
    "jsrun": "jsrun -n 2 -r 1 -a 1 -c 32 -g 4 --bind rs",
    "aprun": "aprun -n 2 -N 1 -cc none -d 32 -b",
    "ssh": "ssh -T -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=30",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_launcher_is_told_the_numbers_in_its_own_way(tmp_path: Path, name: str) -> None:
    assert f"{COMMANDS[name]} " in Job(tmp_path, job=EIGHT_GPUS, launcher=name).script


def test_resource_sets_are_one_for_each_gpu_where_the_profile_says_so(tmp_path: Path) -> None:
    launcher = {"name": "jsrun", "ranks_per_node": 4, "args": ["--smpiargs=off", "-c", "2"]}
    script = Job(tmp_path, job=EIGHT_GPUS, launcher=launcher).script
    assert "jsrun -n 8 -r 4 -a 1 -g 1 --bind rs --smpiargs=off -c 2 " in script


def test_the_launchers_of_an_mpi_are_told_apart(tmp_path: Path) -> None:
    launcher = {"name": "mpiexec", "mpi": "pals", "command": "/opt/cray/pals/mpiexec"}
    script = Job(tmp_path, job=EIGHT_GPUS, launcher=launcher).script
    assert "/opt/cray/pals/mpiexec -n 2 --ppn 1 --cpu-bind none --depth 32 /bin/bash" in script


def test_a_profile_s_own_arguments_replace_ours_and_mean_only_themselves(tmp_path: Path) -> None:
    args = ["--cpu-bind=cores", "-c", "7", "--comment=$(touch owned)"]
    script = Job(tmp_path, job=EIGHT_GPUS, launcher={"name": "srun", "args": args}).script
    [line] = [line for line in script.splitlines() if line.startswith("srun")]
    assert "--cpu-bind=none" not in line
    assert "--cpus-per-task" not in line
    assert "--cpu-bind=cores -c 7 '--comment=$(touch owned)' /bin/bash" in line


PAGE = (Path(__file__).parents[3] / "docs" / "launchers.md").read_text()


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
def test_an_example_of_the_page_on_launchers_makes_a_script(text: str) -> None:
    profile = Profile.model_validate(yaml.safe_load(text))
    script = render(profile, spec_for(profile), DIRECTORY)
    subprocess.run(["/bin/bash", "-n"], input=script, text=True, check=True)
    container = profile.environment.container
    assert (container.runtime if container else profile.launcher.name) in script or profile.groups


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"ssh"}))
def test_the_page_on_launchers_shows_what_is_generated(name: str) -> None:
    launcher = Launcher.model_validate({"name": name})
    layout = lay_out(launcher, nodes=4, gpus=16, cpus=256, workers=16)
    words = [name, *options_of(find_dialect(launcher), launcher, layout)]
    assert f"| `{name}` | `{' '.join(words)}" in PAGE


# What ranks run.

LAUNCHER = """#!{python}
import os, subprocess, sys
start = sys.argv.index("/bin/bash")
print("told:", *sys.argv[1:start], flush=True)
ranks = []
for rank in range(4):
    told = {{"{rank}": str(rank), **({{"{slot}": str(rank % 2)}} if "{slot}" else {{}})}}
    ranks.append(subprocess.Popen(sys.argv[start:], env={{**os.environ, **told}}))
sys.exit(max(rank.wait() for rank in ranks))
"""
NAMED = 'all="$*"; name="${all##*--name }"; name="${name%% *}"'
TELL = (
    f'{NAMED}; echo "$HERE worker $name sees ${{CUDA_VISIBLE_DEVICES-nothing}} of $OMP_NUM_THREADS"'
)
RANKS_OF = {
    "srun": ("SLURM_PROCID", "SLURM_LOCALID"),
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "mpiexec": ("PMI_RANK", ""),
    "jsrun": ("PMIX_RANK", ""),
    "aprun": ("ALPS_APP_PE", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RANKS_OF)
def test_each_rank_has_its_own_name_and_its_own_gpus(tmp_path: Path, name: str) -> None:
    launcher = {"name": name, "ranks_per_node": 2}
    job = Job(tmp_path, TELL, job=EIGHT_GPUS, launcher=launcher)
    rank, slot = RANKS_OF[name]
    job.put(name, LAUNCHER.format(python=sys.executable, rank=rank, slot=slot))
    assert job.start(CUDA_VISIBLE_DEVICES="4,5,6,7").wait(30) == 0
    told = {line for line in job.log().splitlines() if " worker " in line}
    key = " worker gpc-abc123-1_0"
    assert told == {
        f"{key}-n{rank} sees {'4,5' if rank % 2 == 0 else '6,7'} of 8" for rank in range(4)
    }


@pytest.mark.slow
def test_a_launcher_that_pins_by_itself_is_believed(tmp_path: Path) -> None:
    job = Job(tmp_path, TELL, job=EIGHT_GPUS, launcher={"name": "srun", "ranks_per_node": 2})
    job.put("srun", LAUNCHER.format(python=sys.executable, rank="SLURM_PROCID", slot=""))
    assert job.start(CUDA_VISIBLE_DEVICES="GPU-a,GPU-b").wait(30) == 0
    assert job.log().count(" sees GPU-a,GPU-b of") == 4


@pytest.mark.slow
def test_a_node_with_another_number_of_gpus_is_named_in_the_log(tmp_path: Path) -> None:
    job = Job(tmp_path, TELL, job=EIGHT_GPUS, launcher={"name": "srun", "ranks_per_node": 2})
    job.put("srun", LAUNCHER.format(python=sys.executable, rank="SLURM_PROCID", slot=""))
    assert job.start(CUDA_VISIBLE_DEVICES="0,1,2").wait(30) == 1
    assert "Error: 2 ranks with 2 GPUs each, and 3 GPUs here" in job.log()


@pytest.mark.slow
def test_a_launcher_of_another_mpi_is_found_out(tmp_path: Path) -> None:
    job = Job(tmp_path, TELL, job={"nodes": 2}, launcher="mpirun")
    job.put("mpirun", LAUNCHER.format(python=sys.executable, rank="PMI_RANK", slot=""))
    assert job.start().wait(30) != 0
    assert "mpirun did not give this process its rank; see launcher.mpi" in job.log()


@pytest.mark.slow
def test_open_mpi_is_told_all_variables_and_the_hosts_with_their_slots(tmp_path: Path) -> None:
    launcher = {"name": "mpirun", "ranks_per_node": 2}
    environment = {"variables": {"SETTING": "a b"}, "prologue": ["export FROM_PROLOGUE=x"]}
    job = Job(tmp_path, job={"nodes": 2}, launcher=launcher, environment=environment)
    job.put(
        "mpirun", '#!/bin/bash\necho "$@"; while [ "$1" != --hostfile ]; do shift; done; cat "$2"'
    )
    job.start(CUDA_VISIBLE_DEVICES="0", SLURM_JOB_ID="7").wait(30)
    log = job.log()
    for name in ("SETTING", "FROM_PROLOGUE", "PATH", "OMP_NUM_THREADS", "GPUCLUSTER_JOB"):
        assert f"-x {name} " in log
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "PWD", "SHLVL"):
        assert f"-x {name} " not in log
    assert "n1 slots=2\nn2 slots=2" in log


@pytest.mark.slow
def test_a_job_with_fewer_hosts_than_nodes_ends_and_says_so(tmp_path: Path) -> None:
    job = Job(tmp_path, job={"nodes": 3}, launcher="ssh")
    assert job.start().wait(30) == 1
    assert "This job has the hosts ['n1', 'n2']; it requested 3." in job.log()


# ssh.


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[SshSite]:
    base = tmp_path / "sshd"
    base.mkdir()
    daemon = SshSite(base, ["n1", "n2"], free_ports(1)[0])
    daemon.start()
    yield daemon
    daemon.stop()


def ssh_job(home: Path, ssh: SshSite, worker: str) -> Job:
    launcher = {"name": "ssh", "args": ["-F", str(ssh.config)]}
    environment = {"variables": {"SETTING": "it's set"}, "prologue": ["HERE=prologue; export HERE"]}
    return Job(
        home, worker, job={"nodes": 2, "gpus": 4}, launcher=launcher, environment=environment
    )


STUBBORN = f"""
{NAMED}
echo "$HERE $SETTING worker $name runs as $$"
sleep 600 &
wait
"""


def runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_on_other_nodes_end_with_the_job_however_it_ends(
    tmp_path: Path, ssh: SshSite, how: signal.Signals
) -> None:
    job = ssh_job(tmp_path, ssh, STUBBORN)
    process = job.start()
    until(lambda: job.log().count(" runs as ") == 2)
    lines = [line for line in job.log().splitlines() if " runs as " in line]
    key = "prologue it's set worker gpc-abc123-1_0"
    assert {line.partition(" runs")[0] for line in lines} == {f"{key}-n0", f"{key}-n1"}
    pids = [int(line.split()[-1]) for line in lines]
    if how is signal.SIGKILL:  # all of the first node at once, as batch systems end a job
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    process.wait(30)
    until(lambda: not any(map(runs, pids)))


@pytest.mark.slow
def test_a_worker_that_ends_on_one_node_ends_the_job(tmp_path: Path, ssh: SshSite) -> None:
    fails = f'{NAMED}; case "$name" in *-n1) exit 7 ;; esac' + STUBBORN
    job = ssh_job(tmp_path, ssh, fails)
    assert job.start().wait(60) == 7
    assert job.directory.exit_codes() == {"gpc-abc123-1_0": 7}


def test_scripts_quote_whatever_the_profile_says(tmp_path: Path) -> None:
    args = ["-F", "it's $(touch owned)", "`touch owned`"]
    script = Job(tmp_path, job={"nodes": 2}, launcher={"name": "ssh", "args": args}).script
    assert shlex.join(args) in script


# Real workers, as many on each node as it has GPUs.

MOCKED = {
    "DASK_CUDA_TEST_SINGLE_GPU": "1",
    "DASK_CUDA_TEST_DISABLE_DEVICE_SPECIFIC": "1",
    "CUDA_VISIBLE_DEVICES": "0,1",
}
"""With these dask-cuda starts its multi-GPU workers on a machine that has none."""

if importlib.util.find_spec("dask_cuda"):

    @pytest.mark.slow
    def test_dask_cuda_starts_a_worker_for_each_gpu_of_each_node(
        tmp_path: Path, ssh: SshSite
    ) -> None:
        with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", protocol="tcp") as cluster:
            job = Job(
                tmp_path,
                f'exec {sys.executable} "$@"',
                job={"nodes": 2, "gpus": 4},
                launcher={"name": "ssh", "args": ["-F", str(ssh.config)]},
                network={"protocol": "tcp", "interface": "lo"},
                workers={
                    "extra_args": ["--worker-class", "dask_cuda.utils_test.MockWorker"],
                    "local_directory": str(tmp_path / "local"),
                    "device_memory_limit": None,
                },
                environment={"variables": MOCKED},
            )
            identity = {"address": cluster.scheduler_address, "type": "Scheduler"}
            job.directory.scheduler_file.write_text(json.dumps(identity))
            process = job.start()
            with Client(cluster) as client:
                client.wait_for_workers(4, timeout=60)
                told = client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
                names = {
                    worker["name"]: told[address] for address, worker in workers_of(client).items()
                }
            process.terminate()
            process.wait(60)
        key = "gpc-abc123-1_0"
        assert names == {
            f"{key}-n{node}-{gpu}": ("0,1", "1,0")[gpu] for node in (0, 1) for gpu in (0, 1)
        }
