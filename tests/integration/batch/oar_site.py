"""A real OAR on this host, as Debian packages it, with a PostgreSQL of its own."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .real_site import RealSite, end, free_ports, written

CONFIG = Path("/etc/oar/oar.conf")
JOBS_BASHRC = Path("/var/lib/oar/.batch_job_bashrc")
SERVER_PID = Path("/run/oar-server.pid")
SCHEMA = Path("/usr/lib/oar/database")
CORES = 8
GPUS = 2


@dataclass
class OarSite(RealSite):
    """The machine's only OAR: its commands read nothing but the package's configuration."""

    # Jobs are commands of their user's login shell, which those have not that may do nothing.
    user: ClassVar[str] = "postgres"

    @property
    def environment(self) -> dict[str, str]:
        return {}

    @property
    def postgres(self) -> str:
        """Folder of the newest PostgreSQL's programs."""
        return str(max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent))

    def start(self) -> None:
        """Start database, ssh daemon and server, with eight cores and two GPUs."""
        self.take_turns(JOBS_BASHRC.with_name("tests.lock"))
        self.database, server, ssh = free_ports(3)
        self.start_database()
        self.write_config(server, ssh)
        self.start_sshd(ssh)
        Path("/var/log/oar.log").touch()
        shutil.chown("/var/log/oar.log", "oar")
        self.run("oar-server")
        self.wait(lambda: bool(self.run("oarnotify", "-l", check=False)))
        for name in ("core", "gpu", "mem_core"):
            self.run("oarproperty", "-a", name)
        for core in range(CORES):
            values = {"core": core + 1, "gpu": core * GPUS // CORES + 1, "mem_core": 1024}
            given = [word for name, value in values.items() for word in ("-p", f"{name}={value}")]
            self.run("oarnodesetting", "-a", "-h", "127.0.0.1", *given)

    def start_database(self) -> None:
        """Make the database as the package's manual says; only processes of this host reach it."""
        data = self.base / "database"
        data.mkdir(mode=0o700)
        shutil.chown(data, "postgres", "postgres")
        made = (f"{self.postgres}/initdb", "-D", str(data), "-A", "trust", "--no-sync")
        self.run(*made, as_user="postgres")
        options = f"-p {self.database} -c listen_addresses=127.0.0.1 -c fsync=off "
        options += "-c unix_socket_directories= -c shared_buffers=16MB"
        control = (f"{self.postgres}/pg_ctl", "-s", "-w", "-D", str(data), "-l", f"{data}/log")
        self.run(*control, "-o", options, "start", as_user="postgres")
        self.sql("CREATE ROLE oar LOGIN", user="postgres")
        self.sql("CREATE DATABASE oar OWNER oar", user="postgres")
        files = ("pg_structure", "default_data", "pg_default_admission_rules")
        self.psql("oar", *(word for name in files for word in ("-f", f"{SCHEMA}/{name}.sql")))
        self.sql("CREATE ROLE oar_ro LOGIN", user="postgres")
        self.sql("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO oar_ro")
        self.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO oar_ro")

    def sql(self, command: str, user: str = "oar") -> None:
        self.psql(user, "-c", command)

    def psql(self, user: str, *argv: str) -> None:
        place = ("-h", "127.0.0.1", "-p", str(self.database), "-U", user)
        self.run("psql", "-q", *place, "postgres" if user == "postgres" else "oar", *argv)

    def write_config(self, server: int, ssh: int) -> None:
        """Change the package's configuration, and what the shells of jobs read."""
        text = put_aside(CONFIG).read_text()
        changes = {
            "DB_PORT": self.database,
            "SERVER_HOSTNAME": "127.0.0.1",
            "SERVER_PORT": server,
            "OPENSSH_CMD": f"/usr/bin/ssh -p {ssh} -e none -o UserKnownHostsFile=/dev/null",
            "PINGCHECKER_GENERIC_COMMAND": "/bin/true",
            "SCHEDULER_JOB_SECURITY_TIME": 1,
            "SCHEDULER_GANTT_HOLE_MINIMUM_TIME": 10,
            # Else a job waits ten seconds more where another one came just before.
            "SCHEDULER_MIN_TIME_BETWEEN_2_CALLS": 0,
        }
        # Neither cpusets, for want of systemd, nor another way to ping than the one above.
        dropped = ("JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD", "PINGCHECKER_SENTINELLE_")
        lines = [
            line
            for line in text.splitlines()
            if not line.startswith((*dropped, *(f"{name}=" for name in changes)))
        ]
        lines += [f'{name}="{value}"' for name, value in changes.items()]
        CONFIG.write_text("\n".join(lines) + "\n")
        put_aside(JOBS_BASHRC)
        # It sources the user's .bashrc, in which a bash script (pyenv's) would source it again.
        JOBS_BASHRC.write_text("")

    def start_sshd(self, port: int) -> None:
        """Start the daemon by which the server gets at its nodes."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        config = self.base / "sshd_config"
        config.write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey /etc/oar/oar_ssh_host_rsa_key\n"
            f"PidFile {self.base}/sshd.pid\nPasswordAuthentication no\nAllowUsers oar\n"
            "PermitUserEnvironment yes\nAcceptEnv OAR_*\n"
        )
        self.run("/usr/sbin/sshd", "-f", str(config), "-E", str(self.base / "sshd.log"))

    @contextlib.contextmanager
    def node_down(self, id: str) -> Iterator[None]:
        """Declare what a job runs on dead, as an administrator does who finds it so."""
        text = self.run("oarstat", "-J", "-f", "-j", id)
        [resource] = json.loads(text)[id]["assigned_resources"]
        self.run("oarnodesetting", "-r", str(resource), "-s", "Dead")
        try:
            yield
        finally:
            self.run("oarnodesetting", "-r", str(resource), "-s", "Alive")

    @contextlib.contextmanager
    def better_job(self, cores: int) -> Iterator[None]:
        """Have a job in the queue that is worth more than those of the type besteffort."""
        size = f"/nodes=1/core={cores},walltime=0:5:0"
        # oarsub takes the directory from that variable.
        argv = ("env", "PWD=/", "oarsub", "-d", "/tmp", "-l", size, "-O/dev/null", "-E/dev/null")
        said = self.run(*argv, "sleep 300", as_user=self.user)
        id = said.rpartition("OAR_JOB_ID=")[2].strip()
        try:
            yield
        finally:
            self.run("oardel", id)

    def queue(self) -> list[str]:
        text = self.run("oarstat", "-J", "--sql", "state NOT IN ('Terminated', 'Error')")
        return list(json.loads(text)) if text.strip() else []

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """Lock out the role with which jobs are listed; the server goes on."""
        self.sql("ALTER ROLE oar_ro NOLOGIN", user="postgres")
        try:
            yield
        finally:
            self.sql("ALTER ROLE oar_ro LOGIN", user="postgres")

    def stop(self) -> None:
        """End all jobs, then the daemons, the database last; put the configuration back."""
        if servers := written([SERVER_PID], "Almighty"):
            if jobs := self.queue():
                self.run("oardel", *jobs, check=False)
                with contextlib.suppress(RuntimeError):
                    self.wait(lambda: self.queue() == [], 20)
            end([*servers, *written([self.base / "sshd.pid"], "sshd")])
            SERVER_PID.unlink(missing_ok=True)
        end(written([self.base / "database/postmaster.pid"], "postgres"))
        for path in (CONFIG, JOBS_BASHRC):
            put_back(path)
        self.lock.close()


def put_aside(path: Path) -> Path:
    """Keep a file of the package until the end, also over a run that was cut short."""
    kept = path.with_name(f"{path.name}.kept")
    if not kept.exists():
        shutil.copy2(path, kept)
        shutil.chown(kept, path.owner(), path.group())
    return kept


def put_back(path: Path) -> None:
    kept = path.with_name(f"{path.name}.kept")
    if kept.exists():
        kept.replace(path)
