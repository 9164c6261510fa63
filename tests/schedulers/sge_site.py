"""A real Son of Grid Engine on this host, as Debian packages it: one host, no systemd."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from .slurm_site import NEUTRAL

ROOT = Path("/var/lib/gridengine")
SPOOL = Path("/var/spool/gridengine")
UP_SECONDS = 60.0


def host_name() -> str:
    """Return what Grid Engine calls this host."""
    return socket.gethostname().split(".")[0]


@dataclass
class SgeSite:
    """The machine's only Grid Engine; its cell lies where the package has put it."""

    base: Path
    """Folder for what configuration commands read."""
    environment: dict[str, str] = field(
        default_factory=lambda: {"SGE_ROOT": str(ROOT), "SGE_CELL": "default"}
    )

    def run(self, *argv: str, check: bool = True, as_user: str = "") -> str:
        """Run one of its commands and return what it prints."""
        prefix = ["runuser", "-u", as_user, "--"] if as_user else []
        result = subprocess.run(
            [*prefix, *argv],
            env=NEUTRAL | self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if check and result.returncode:
            raise RuntimeError(f"{argv}: {result.stdout}{result.stderr}")
        return result.stdout

    def given(self, text: str, name: str = "given") -> str:
        """Return the path of a file with this text, which commands take instead of an editor."""
        path = self.base / name
        path.write_text(text)
        return str(path)

    def start(self) -> None:
        """Start qmaster and execd, with one queue of eight slots; return when it takes jobs."""
        # There is one on a machine: tests of another checkout wait until it is free.
        self.lock = (ROOT / "tests.lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        common, host = ROOT / "default" / "common", host_name()
        names = {
            name
            for line in Path("/etc/hosts").read_text().splitlines()
            if line.startswith("127.0.0.1")
            for name in line.split()[1:]
        }
        # 127.0.0.1 reverse-resolves to localhost: say that both are one host.
        aliases = " ".join(["localhost", *sorted(names - {host, "localhost"})])
        for name, text in (("act_qmaster", host), ("host_aliases", f"{host} {aliases}")):
            (common / name).write_text(f"{text}\n")
            (common / name).chmod(0o644)
        self.start_qmaster()
        for option in ("-ah", "-as"):
            self.run("qconf", option, host, check=False)
        self.run("qconf", "-am", "root", check=False)
        self.configure(host)
        self.run("sge_execd")
        self.wait(lambda: "-" not in self.run("qhost", "-h", host, check=False).split()[-4:])

    def start_qmaster(self) -> None:
        """Start the master, or start it again."""
        self.run("sge_qmaster")
        self.wait(lambda: bool(self.run("qconf", "-sh", check=False)))

    def configure(self, host: str) -> None:
        """Make the queue, and have it looked at every second."""
        quick = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        self.edit("-ssconf", "-Msconf", quick)
        # Debian lets nobody below 1000 submit; the tests run as root.
        anybody = changed(self.run("qconf", "-sconf"), {"min_uid": "0", "min_gid": "0"})
        self.run("qconf", "-Mconf", self.given(anybody, "global"))
        nothing = (
            "load_scaling", "user_lists", "xuser_lists", "projects", "xprojects", "usage_scaling",
            "report_variables",
        )  # fmt: skip
        lines = [
            f"hostname {host}",
            "complex_values slots=8",
            *(f"{name} NONE" for name in nothing),
        ]
        self.put("-Ae", "-Me", "\n".join(lines) + "\n")
        self.put("-Ahgrp", "-Mhgrp", f"group_name @allhosts\nhostlist {host}\n")
        queue = self.run("qconf", "-sq", "all.q", check=False) or self.run("qconf", "-sq")
        changes = {
            "qname": "all.q", "hostlist": "@allhosts", "slots": "8", "shell": "/bin/bash",
            "load_thresholds": "NONE", "rerun": "FALSE", "pe_list": "NONE",
        }  # fmt: skip
        self.put("-Aq", "-Mq", changed(queue, changes))

    def edit(self, show: str, modify: str, changes: dict[str, str]) -> None:
        self.run("qconf", modify, self.given(changed(self.run("qconf", show), changes)))

    def put(self, add: str, modify: str, text: str) -> None:
        """Add an object, or change it where there is one already."""
        file = self.given(text)
        self.run("qconf", add, file, check=False)
        self.run("qconf", modify, file, check=False)

    def wait(self, reached: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + UP_SECONDS
        while not reached():
            if time.monotonic() > deadline:
                raise RuntimeError("Grid Engine did not come up")
            time.sleep(0.1)

    def queue(self) -> list[str]:
        """Return the ids of the jobs that wait or run, tasks as ``<job>.<task>``."""
        text = self.run("qstat", "-u", "*", "-g", "d", "-xml")
        root = ElementTree.fromstring(text)  # noqa: S314  # from a Grid Engine of our own
        jobs = [{part.tag: part.text or "" for part in job} for job in root.iter("job_list")]
        return [".".join(filter(None, (job["JB_job_number"], job.get("tasks")))) for job in jobs]

    def pids(self) -> list[int]:
        """Return the daemons' processes."""
        found = []
        for path in (SPOOL / "qmaster/qmaster.pid", *SPOOL.glob("execd/*/execd.pid")):
            with contextlib.suppress(ValueError, OSError):
                pid = int(path.read_text())
                if b"sge_" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return found

    def stop_qmaster(self) -> None:
        """Shut the master down, as an administrator does; the jobs go on."""
        pid = int((SPOOL / "qmaster/qmaster.pid").read_text())
        self.run("qconf", "-km")
        self.wait(lambda: not Path(f"/proc/{pid}").exists())

    def stop(self) -> None:
        """End all jobs and both daemons, by the process ids that they wrote."""
        pids = self.pids()
        if pids:
            self.run("qdel", "-f", "-u", "*", check=False)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.lock.close()


def changed(text: str, changes: dict[str, str]) -> str:
    """Return an object's description with other values; one may go on over several lines."""
    lines = text.replace("\\\n", " ").splitlines()
    kept = [line for line in lines if line.split() and line.split()[0] not in changes]
    return "\n".join([*kept, *(f"{name} {value}" for name, value in changes.items())]) + "\n"
