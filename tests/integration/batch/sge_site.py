"""A real Son of Grid Engine on this host, as Debian packages it: one host, no systemd."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from .real_site import RealSite, below, end, host_name, lives, written

ROOT = Path("/var/lib/gridengine")
SPOOL = Path("/var/spool/gridengine")
MASTER_PID = SPOOL / "qmaster/qmaster.pid"


@dataclass
class SgeSite(RealSite):
    """The machine's only Grid Engine; its cell lies where the package has put it."""

    @property
    def environment(self) -> dict[str, str]:
        return {"SGE_ROOT": str(ROOT), "SGE_CELL": "default"}

    def given(self, text: str, name: str = "given") -> str:
        """Return the path of a file with this text, which commands take instead of an editor."""
        path = self.base / name
        path.write_text(text)
        return str(path)

    def start(self) -> None:
        """Start qmaster and execd, with one queue of eight slots; return when it takes jobs."""
        self.take_turns(ROOT / "tests.lock")
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
        self.start_execd()

    def start_execd(self) -> None:
        """Start the node's daemon; return when the node can take jobs."""
        self.run("sge_execd")
        told = ("qhost", "-h", host_name())
        self.wait(lambda: "-" not in self.run(*told, check=False).split()[-4:])

    def start_qmaster(self) -> None:
        """Start the master, or start it again."""
        self.run("sge_qmaster")
        self.wait(lambda: bool(self.run("qconf", "-sh", check=False)))

    def configure(self, host: str) -> None:
        """Make the queue, and have it looked at every second."""
        quick = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        self.edit("-ssconf", "-Msconf", quick)
        changes = {
            # A master that was started again sends jobs only to hosts that have told their load.
            "load_report_time": "0:0:2",
            # Else nobody learns for 15 seconds why a job ended.
            "reporting_params": "accounting=true reporting=false flush_time=00:00:01",
        }  # fmt: skip
        usual = changed(self.run("qconf", "-sconf"), changes)
        self.run("qconf", "-Mconf", self.given(usual, "global"))
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
            "subordinate_list": "NONE",
        }  # fmt: skip
        self.put("-Aq", "-Mq", changed(queue, changes))
        better = {"qname": "better.q", "subordinate_list": "all.q=1"}
        self.put("-Aq", "-Mq", changed(changed(queue, changes), better))
        # What a run that was interrupted has left in the spool: jobs, and states of queues.
        self.run("qdel", "-f", "-u", "*", check=False)
        for clear in ("-e", "-c", "-us"):
            self.run("qmod", clear, "*", check=False)

    def edit(self, show: str, modify: str, changes: dict[str, str]) -> None:
        self.run("qconf", modify, self.given(changed(self.run("qconf", show), changes)))

    def put(self, add: str, modify: str, text: str) -> None:
        """Add an object, or change it where there is one already."""
        file = self.given(text)
        self.run("qconf", add, file, check=False)
        self.run("qconf", modify, file, check=False)

    def queue(self) -> list[str]:
        # A test may put a file in place that would hide jobs.
        text = self.run(*"qstat -s prs -q * -u * -g d -xml".split())
        root = ElementTree.fromstring(text)  # noqa: S314  # from a Grid Engine of our own
        jobs = [{part.tag: part.text or "" for part in job} for job in root.iter("job_list")]
        return [".".join(filter(None, (job["JB_job_number"], job.get("tasks")))) for job in jobs]

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """Shut the master down, as an administrator does; no job may run meanwhile."""
        master = written([MASTER_PID], "sge_")
        self.run("qconf", "-km")
        self.wait(lambda: not any(map(lives, master)))
        try:
            yield
        finally:
            # It would try half a minute later to register again.
            end(written(SPOOL.glob("execd/*/execd.pid"), "sge_"))
            self.start_qmaster()
            self.start_execd()

    @contextlib.contextmanager
    def better_job(self) -> Iterator[None]:
        """Run a job for whose sake those of the other queue are suspended."""
        argv = ("qsub", "-terse", "-b", "y", "-cwd", "-q", "better.q", "-o", "/dev/null", "-j", "y")
        id = self.run(*argv, "sleep", "60", as_user=self.user).strip()
        try:
            yield
        finally:
            self.run("qdel", id)

    @contextlib.contextmanager
    def node_down(self) -> Iterator[None]:
        """Kill the node's daemon and all that runs below it."""
        [execd] = written(SPOOL.glob("execd/*/execd.pid"), "sge_")
        for pid in (execd, *below(execd)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            yield
        finally:
            self.start_execd()

    def stop(self) -> None:
        if pids := written((MASTER_PID, *SPOOL.glob("execd/*/execd.pid")), "sge_"):
            self.run("qdel", "-f", "-u", "*", check=False)
        # A master whose nodes leave before it takes ten seconds to end.
        for pid in pids:
            end([pid])
        self.lock.close()


def changed(text: str, changes: dict[str, str]) -> str:
    """Return an object's description with other values; one may go on over several lines."""
    lines = text.replace("\\\n", " ").splitlines()
    kept = [line for line in lines if line.split() and line.split()[0] not in changes]
    return "\n".join([*kept, *(f"{name} {value}" for name, value in changes.items())]) + "\n"
