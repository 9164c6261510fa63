"""A private Slurm of a few nodes on this host: real daemons, no systemd, loopback only."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

UP_SECONDS = 60.0
GPUS = 4
NEUTRAL = {"PATH": os.environ["PATH"], "HOME": "/root"}
"""Not the home of a test, whose processes are ended with it: daemons outlive tests."""
WATCHED = (
    "JobAcctGatherType=jobacct_gather/linux",
    "JobAcctGatherFrequency=task=2",
    "JobAcctGatherParams=OverMemoryKill",
)


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            found.append(int(listener.getsockname()[1]))
        return found


@dataclass
class SlurmSite:
    """Daemons under one directory; the environment points Slurm's commands at them."""

    base: Path
    gpu_nodes: int = 2
    cpu_nodes: int = 2
    cpus: int = 8
    """Cores that each node claims to have."""
    gatherer: bool = True
    """Whether each job's memory is watched, every two seconds: too much work for hundreds."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that Slurm's commands need."""
        return {"SLURM_CONF": str(self.base / "etc/slurm.conf")}

    @property
    def nodes(self) -> list[str]:
        """Names of all nodes."""
        gpu = [f"g{number}" for number in range(1, self.gpu_nodes + 1)]
        return gpu + [f"c{number}" for number in range(1, self.cpu_nodes + 1)]

    def run(self, *argv: str, check: bool = True) -> str:
        """Run one of Slurm's commands as root and return what it prints."""
        result = subprocess.run(
            argv,
            env=NEUTRAL | self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if check and result.returncode:
            raise RuntimeError(f"{argv}: {result.stderr}")
        return result.stdout

    def start(self) -> None:
        """Start munged, slurmctld and one slurmd for each node; return when all are idle."""
        for part in ("etc", "run", "log", "spool", "state", "dev", "munge"):
            (self.base / part).mkdir(parents=True)
        for part in ("run", "log", "state"):
            shutil.chown(self.base / part, "slurm")
        self.start_munged()
        for number in range(GPUS):
            # A character device, since Slurm sets CUDA_VISIBLE_DEVICES for nothing else.
            os.mknod(self.base / f"dev/nvidia{number}", 0o20666, os.makedev(1, 3))
        self.write_config()
        self.run("slurmctld")
        for node in self.nodes:
            (self.base / "spool" / node).mkdir()
            self.run("slurmd", "-N", node)
        deadline = time.monotonic() + UP_SECONDS
        while set(self.run("sinfo", "-h", "-N", "-o", "%T", check=False).split()) != {"idle"}:
            if time.monotonic() > deadline:
                raise RuntimeError(self.run("sinfo", "-N", "-l", check=False))
            time.sleep(0.1)

    def start_munged(self) -> None:
        """Start an authentication daemon of this site's own."""
        key, munge = self.base / "etc/munge.key", self.base / "munge"
        key.write_bytes(os.urandom(1024))
        for path in (key, munge):
            shutil.chown(path, "munge", "munge")
        key.chmod(0o400)
        munge.chmod(0o755)
        argv = ["munged", "--force", f"--key-file={key}", f"--socket={munge}/sock"]
        argv += [f"--pid-file={munge}/munged.pid", f"--log-file={munge}/munged.log"]
        argv += [f"--seed-file={munge}/seed"]
        subprocess.run(["runuser", "-u", "munge", "--", *argv], check=True, timeout=30, env=NEUTRAL)

    def write_config(self) -> None:
        """Write slurm.conf and gres.conf."""
        host = socket.gethostname().split(".")[0]
        control, *ports = free_ports(1 + len(self.nodes))
        base = self.base
        lines = [
            "ClusterName=testing",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={control}",
            "SlurmUser=slurm",
            "SlurmdUser=root",
            "AuthType=auth/munge",
            # cred_expire: a requeued job is held that long before it may start again.
            f"AuthInfo=socket={base}/munge/sock,cred_expire=5",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            *(WATCHED if self.gatherer else ("JobAcctGatherType=jobacct_gather/none",)),
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU_Memory",
            "GresTypes=gpu",
            "ReturnToService=2",
            f"SlurmctldPidFile={base}/run/slurmctld.pid",
            f"SlurmdPidFile={base}/run/slurmd-%n.pid",
            f"SlurmctldLogFile={base}/log/slurmctld.log",
            f"SlurmdLogFile={base}/log/slurmd-%n.log",
            f"SlurmdSpoolDir={base}/spool/%n",
            f"StateSaveLocation={base}/state",
            "SlurmdParameters=config_overrides",
            "SlurmdTimeout=15",
            "KillWait=2",
            "MinJobAge=300",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=0,"
            "batch_sched_delay=0",
            "PreemptType=preempt/partition_prio",
            "PreemptMode=REQUEUE",
            "AccountingStorageType=accounting_storage/none",
        ]
        for node, port in zip(self.nodes, ports, strict=True):
            gres = f" Gres=gpu:h100:{GPUS} Feature=h100" if node.startswith("g") else ""
            lines.append(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
                f"CPUs={self.cpus} RealMemory=16000{gres} State=UNKNOWN"
            )
        gpu = ",".join(node for node in self.nodes if node.startswith("g"))
        cpu = ",".join(node for node in self.nodes if node.startswith("c"))
        for name, nodes, longest, rest in (
            ("cpu", cpu, "00:30:00", "Default=YES PriorityTier=10 PreemptMode=OFF"),
            ("gpu", gpu, "00:30:00", "PriorityTier=10 PreemptMode=OFF"),
            ("short", gpu, "00:02:00", "PriorityTier=10 PreemptMode=OFF"),
            ("scavenge", gpu, "00:30:00", "PriorityTier=1 PreemptMode=REQUEUE"),
        ):
            lines.append(
                f"PartitionName={name} Nodes={nodes} MaxTime={longest} DefaultTime=00:05:00 "
                f"State=UP {rest}"
            )
        (base / "etc/slurm.conf").write_text("\n".join(lines) + "\n")
        (base / "etc/gres.conf").write_text(
            f"NodeName={gpu} Name=gpu Type=h100 File={base}/dev/nvidia[0-{GPUS - 1}]\n"
        )

    def queue(self) -> list[str]:
        """Return the ids of the jobs that wait or run, one for each array task."""
        return self.run("squeue", "-h", "-r", "-o", "%i").split()

    def pids(self) -> Iterator[int]:
        """Yield the daemons' processes."""
        for path in (*self.base.glob("run/*.pid"), *self.base.glob("munge/*.pid")):
            with contextlib.suppress(ValueError, OSError):
                yield int(path.read_text())

    def stop(self) -> None:
        """End all jobs and daemons, by the process ids that they wrote."""
        jobs = self.run("squeue", "-h", "-r", "-o", "%i", check=False).split()
        if jobs:
            self.run("scancel", *jobs, check=False)
            deadline = time.monotonic() + 15
            while self.run("squeue", "-h", "-o", "%i", check=False).split():
                if time.monotonic() > deadline:
                    break
                time.sleep(0.2)
        pids = list(self.pids())
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.1)
