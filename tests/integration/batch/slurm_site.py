"""A private Slurm of a few nodes on this host: real daemons, no systemd, loopback only."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from .real_site import RealSite, end, free_ports, host_name, written

GPUS = 4


@dataclass
class SlurmSite(RealSite):
    """Daemons under one directory; the environment points Slurm's commands at them."""

    gpu_nodes: int = 10
    cpu_nodes: int = 2
    cpus: int = 8
    """Cores that each node claims to have."""
    gatherer: bool = True
    """True if each job's memory is watched, every two seconds: too much work for hundreds."""

    @property
    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.base / "etc/slurm.conf")}

    @property
    def nodes(self) -> list[str]:
        """Names of all nodes."""
        gpu = [f"g{number}" for number in range(1, self.gpu_nodes + 1)]
        return gpu + [f"c{number}" for number in range(1, self.cpu_nodes + 1)]

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
        self.start_controller()
        for node in self.nodes:
            (self.base / "spool" / node).mkdir()
            self.run("slurmd", "-N", node)
        idle = ("sinfo", "-h", "-N", "-o", "%T")
        self.wait(lambda: set(self.run(*idle, check=False).split()) == {"idle"})

    def start_controller(self) -> None:
        self.run("slurmctld")

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
        self.run(*argv, as_user="munge")

    def settings(self) -> dict[str, object]:
        """Return what slurm.conf says, but for nodes and partitions."""
        base = self.base
        found: dict[str, object] = {
            "ClusterName": "testing",
            "SlurmctldHost": f"{host_name()}(127.0.0.1)",
            "SlurmUser": "slurm",
            "SlurmdUser": "root",
            "AuthType": "auth/munge",
            # cred_expire: a requeued job is held that long before it may start again.
            "AuthInfo": f"socket={base}/munge/sock,cred_expire=5",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU_Memory",
            "GresTypes": "gpu",
            "ReturnToService": 2,
            "SlurmctldPidFile": f"{base}/run/slurmctld.pid",
            "SlurmdPidFile": f"{base}/run/slurmd-%n.pid",
            "SlurmctldLogFile": f"{base}/log/slurmctld.log",
            "SlurmdLogFile": f"{base}/log/slurmd-%n.log",
            "SlurmdSpoolDir": f"{base}/spool/%n",
            "StateSaveLocation": f"{base}/state",
            "SlurmdParameters": "config_overrides",
            "SlurmdTimeout": 15,
            "KillWait": 2,
            "MinJobAge": 300,
            "SchedulerType": "sched/backfill",
            "SchedulerParameters": "bf_interval=1,sched_interval=2,sched_min_interval=0,"
            "batch_sched_delay=0",
            "PreemptType": "preempt/partition_prio",
            "PreemptMode": "REQUEUE",
            "AccountingStorageType": "accounting_storage/none",
        }
        if self.gatherer:
            found["JobAcctGatherType"] = "jobacct_gather/linux"
            found["JobAcctGatherFrequency"] = "task=2"
            found["JobAcctGatherParams"] = "OverMemoryKill"
        return found

    def write_config(self) -> None:
        """Write slurm.conf and gres.conf."""
        base, host = self.base, host_name()
        control, *ports = free_ports(1 + len(self.nodes))
        settings = self.settings() | {"SlurmctldPort": control}
        lines = [f"{name}={value}" for name, value in settings.items()]
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
        return self.run("squeue", "-h", "-r", "-o", "%i").split()

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """Take munged's socket away: no command can say who it is.

        A controller that does not answer is the same to us, but takes each command ten seconds.
        """
        sockets = self.base / "munge"
        (sockets / "sock").rename(sockets / "away")
        try:
            yield
        finally:
            (sockets / "away").rename(sockets / "sock")

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):
            if jobs := self.queue():
                self.run("scancel", *jobs, check=False)
                self.wait(lambda: self.queue() == [], 15)
        daemons = written(self.base.glob("run/*.pid"), "slurm")
        end([*daemons, *written(self.base.glob("munge/*.pid"), "munged")])
