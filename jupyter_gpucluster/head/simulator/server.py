"""The job server of a demo cluster: starts and ends processes as the simulated site says."""

from __future__ import annotations

import argparse
import os
import signal
import time
from typing import Any

from ...core.serialize import to_json
from ...host.processes import signal_group, start_time
from ..local_scheduler import GRACE_SECONDS, JobServer, Task, die_with
from . import site as site_rules
from .site import SiteJob, opened

LOOK_SECONDS = 0.2
"""Between two looks at the site while jobs wait or run."""


class DemoServer(JobServer):
    """Runs the jobs of one cluster; the site, which all clusters share, says when."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.me = (os.getpid(), start_time(os.getpid()) or 0)
        self.workers: dict[str, int] = {}

    def wait_seconds(self) -> float | None:
        waits = any(task.state != "ended" for task in self.tasks.values())
        return super().wait_seconds() or (LOOK_SECONDS if waits else None)

    # Requests.

    def check(self, arguments: argparse.Namespace) -> None:
        """Have the site take the jobs; it may refuse them."""
        script = arguments.script.read_text("utf-8")
        with opened(self.site) as site:
            site[0] = site_rules.submit(site[0], arguments.mark, arguments.count, script, self.me)
        self.workers[arguments.mark] = arguments.workers

    def status(self, arguments: argparse.Namespace) -> list[dict[str, Any]]:
        with opened(self.site) as site:
            site[0] = site_rules.forget(site[0], self.me, kept=site_rules.KEPT)
            found = site[0]
        return [self.told(job, found.pushed) for job in found.jobs if job.server == self.me]

    def told(self, job: SiteJob, pushed: float) -> dict[str, Any]:
        """Return a job as a status shows it, in times of the real clock."""
        task = self.tasks.get(job.id)
        waits, runs = job.state == "pending", task is not None and task.state == "running"
        times = {
            "started": job.started,
            "ended": job.ended,
            "ends": None if job.started is None else job.started + job.walltime,
            "expected_start": job.submitted + site_rules.QUEUES[job.queue].wait if waits else None,
        }
        return {
            **to_json(job),
            "id": job.id,
            "nodes": job.placed,
            "process": [task.pid, task.started_ticks] if task is not None and runs else [],
            **{name: None if time is None else time - pushed for name, time in times.items()},
        }

    def cancel(self, arguments: argparse.Namespace) -> list[str]:
        with opened(self.site) as site:
            site[0] = site_rules.cancel(site[0], arguments.ids)
        return [id for id in arguments.ids if id in self.tasks]

    def capacity(self, arguments: argparse.Namespace) -> dict[str, int]:
        free, total = site_rules.capacity(self.site)
        return {"free": free, "total": total}

    # Processes.

    def start_pending(self) -> None:
        if self.orphaned or all(task.state == "ended" for task in self.tasks.values()):
            return
        with opened(self.site) as site:
            jobs = {job.id: job for job in site[0].jobs}
        for task in list(self.tasks.values()):
            job = jobs.get(task.id)
            if task.state == "pending":
                self.follow_waiting(task, job)
            elif task.state == "running" and task.kill_at is None:
                self.follow_running(task, job)

    def follow_waiting(self, task: Task, job: SiteJob | None) -> None:
        """Start a job whose turn has come; one that was cancelled never starts."""
        if job is not None and job.state == "running":
            task.restarts = job.restarts
            self.start(task)
        elif job is None or job.state != "pending":
            self.end(task, None, "cancelled")

    def follow_running(self, task: Task, job: SiteJob | None) -> None:
        """End a job as the site ends it: a failed node gives no time to say goodbye."""
        if job is not None and job.outcome == "node_fail":
            task.kill_at = time.monotonic()
            signal_group(task.pid, signal.SIGKILL)
        elif job is None or job.state != "running":
            self.ask_to_end(task, GRACE_SECONDS)

    def end(self, task: Task, exit_code: int | None, reason: str) -> None:
        with opened(self.site) as site:
            site[0] = site_rules.finish(site[0], task.id, exit_code)
            job = site[0].find(task.id)
        if job is not None and job.state != "over" and not self.orphaned:
            task.state, task.kill_at, task.pid = "pending", None, 0
        else:
            super().end(task, exit_code, reason)

    def serve(self) -> None:
        super().serve()
        with opened(self.site) as site:
            site[0] = site_rules.forget(site[0], self.me)

    def work(self, task: Task) -> int:
        """Run all workers of a job, each a process; return how the first of them ended."""
        count = self.workers[task.mark]
        if count == 1:
            return super().work(task)
        job = os.getpid()
        for number in range(count):
            if os.fork() == 0:
                die_with(job)
                self.be_worker(task, f"{task.worker}-{number}")
        # A signal for the whole job is the workers' to answer; this process stays until they are
        # gone, since its end is the job's.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = 0
        while code == 0 and count:
            code, count = os.waitstatus_to_exitcode(os.wait()[1]), count - 1
        return code
