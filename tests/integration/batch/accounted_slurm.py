"""A Slurm that remembers its jobs in a database and lets the kernel limit their memory."""

from __future__ import annotations

import errno
import functools
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .real_site import NEUTRAL, free_ports
from .slurm_site import SlurmSite

MEMORY = Path("/sys/fs/cgroup/memory")
"""Only with these older control groups can Slurm 22.05 limit memory without systemd."""


@dataclass
class AccountedSlurm(SlurmSite):
    """MariaDB and slurmdbd beside the usual daemons."""

    gpu_nodes: int = 1

    @property
    def limits_memory(self) -> bool:
        """True if the kernel ends jobs over their limit; else Slurm looks every two seconds."""
        return (MEMORY / "memory.limit_in_bytes").exists()

    def settings(self) -> dict[str, object]:
        self.port, self.sql_port = free_ports(2)
        self.gatherer = not self.limits_memory  # Slurm refuses both at a time
        found = super().settings() | {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePort": self.port,
            "AccountingStorageUser": "slurm",
            # Without it clients ask the machine's own munged, and hang where there is none.
            "AccountingStoragePass": f"{self.base}/munge/sock",
        }
        if self.limits_memory:
            found |= {"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup"}
            (self.base / "etc/cgroup.conf").write_text(
                f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={MEMORY.parent}\nCgroupAutomount=no\n"
                "ConstrainRAMSpace=yes\n"
            )
        return found

    def start_controller(self) -> None:
        self.start_database()
        self.start_slurmdbd()
        super().start_controller()

    def start_database(self) -> None:
        """Start a MariaDB that belongs to Slurm's user, and to nobody else."""
        folder = self.base / "mariadb"
        folder.mkdir(mode=0o700)
        shutil.chown(folder, "slurm")
        data = ("--no-defaults", "--user=slurm", f"--datadir={folder}/data")
        self.run("mariadb-install-db", *data, "--skip-test-db", "--skip-name-resolve")
        argv = ["mariadbd", *data, f"--socket={folder}/sock"]
        argv += [f"--pid-file={folder}/pid", "--bind-address=127.0.0.1"]
        argv += [f"--port={self.sql_port}", "--innodb-flush-log-at-trx-commit=0"]
        argv += ["--innodb-log-file-size=16M", "--skip-name-resolve"]
        with (self.base / "log/mariadb").open("w") as log:
            self.mariadb = subprocess.Popen(argv, env=NEUTRAL, cwd="/", stdout=log, stderr=log)
        client = ("mariadb", "--no-defaults", f"--socket={folder}/sock", "-e")
        self.wait(lambda: bool(self.run(*client, "SELECT 1", check=False)))
        self.run(
            *client,
            "CREATE DATABASE slurm_acct_db; CREATE USER jobs@127.0.0.1 IDENTIFIED BY 'jobs';"
            "GRANT ALL ON slurm_acct_db.* TO jobs@127.0.0.1",
        )

    def start_slurmdbd(self) -> None:
        config = self.base / "etc/slurmdbd.conf"
        settings = {
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.base}/munge/sock",
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "DbdPort": self.port,
            "SlurmUser": "slurm",
            "LogFile": f"{self.base}/log/slurmdbd.log",
            "PidFile": f"{self.base}/run/slurmdbd.pid",
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StoragePort": self.sql_port,
            "StorageUser": "jobs",
            "StoragePass": "jobs",
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        shutil.chown(config, "slurm")
        config.chmod(0o600)
        self.run("slurmdbd")
        added = ("sacctmgr", "-i", "add", "cluster", "testing")
        self.wait(lambda: "testing" in self.run(*added, check=False))

    def stop(self) -> None:
        super().stop()
        self.mariadb.terminate()
        self.mariadb.wait(30)
        # Groups are folders; those that hold others are refused, and gone after them.
        for group in sorted(MEMORY.parent.glob("*/slurm_*/**/"), reverse=True):
            self.wait(functools.partial(removed, group))


def removed(group: Path) -> bool:
    """Remove a control group; return False while its last process is still ending."""
    try:
        group.rmdir()
    except FileNotFoundError:
        # The job's own step daemon, which outlives the node's daemon, removes it, too.
        return True
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True
