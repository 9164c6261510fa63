"""Gather what is true now from the Dask scheduler in this process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from dask.typing import Key
from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin

from ...host.cluster_directory import tail
from ...host.log_diagnosis import first_error, log_end, remarks
from ..adaptive import job_of

LOG_START = 65536
"""Bytes of a log in which a worker's start has room."""
LOG_END = 16384
"""Bytes at the end of a log in which its last error has room."""
READ_SECONDS = 1.0
"""Longest wait for it."""
DONE = ("memory", "released", "erred", "forgotten")
"""Dask's states of tasks that have run."""
KEPT_SECONDS = 3600.0
NOT_A_USER = "fire-and-forget"
ITS_OWN_END = "worker-close-gracefully-"
"""Dask's name for the end of a worker at the lifetime of Dask's configuration."""


class Watch(SchedulerPlugin):
    """Hears of workers and restarts the moment they happen, and keeps track of idle time."""

    name = "gpucluster-watch"
    reader: threading.Thread | None = None

    def __init__(self, scheduler: Scheduler, logs: Path, wake: object) -> None:
        self.scheduler = scheduler
        self.logs = logs
        self.wake = wake
        self.restarted: set[str] = set()
        self.jobs: dict[str, str] = {}
        self.read: set[str] = set()
        self.transitions = scheduler.transition_counter
        self.tasks = 0
        """Return the number of tasks that workers have run, failed ones included."""
        self.idle_since: float | None = time.time()
        self.used: float | None = None
        self.tasks_before = 0
        self.alone_since: float | None = time.time()

    def set_wake(self) -> None:
        self.wake.set()  # type: ignore[attr-defined]  # an asyncio.Event; plugins are pickled by type

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """Hide the worker's own page, which answers nothing, from the dashboard's links.

        The next end of its job is a death again.
        """
        state = scheduler.workers[worker]
        state.services.pop("dashboard", None)
        self.jobs[worker] = job_of(str(state.name))
        self.restarted.discard(self.jobs[worker])
        self.set_wake()

    def remove_worker(
        self, scheduler: Scheduler, worker: str, *, stimulus_id: str = "", **kwargs: object
    ) -> None:
        """Look at once at what became of the worker's job; an end by its lifetime is no death."""
        job = self.jobs.pop(worker, "")
        if job and stimulus_id.startswith(ITS_OWN_END):
            self.restarted.add(job)
        self.set_wake()

    def log_event(self, topic: str, msg: object) -> None:
        """Note a worker that leaves at its lifetime, although no other could take its results.

        Its removal does not tell, since it was not retired.
        """
        if isinstance(msg, dict) and msg.get("action") == "could-not-retire" and topic in self.jobs:
            if str(msg.get("stimulus_id")).startswith(ITS_OWN_END):
                self.restarted.add(self.jobs[topic])

    def transition(
        self, key: Key, start: str, finish: str, *args: object, **kwargs: object
    ) -> None:
        """Count the tasks that workers have run."""
        if start == "processing" and finish in ("memory", "erred"):
            self.tasks += 1

    async def close(self) -> None:
        """Look at once where a client shuts the scheduler down."""
        self.set_wake()

    def restart(self, scheduler: Scheduler) -> None:
        """Remember whom ``client.restart()`` sends away: their end is not a death."""
        self.restarted.update(self.workers())

    def workers(self) -> Counter[str]:
        """Count the connected workers of each job."""
        return Counter(job_of(str(ws.name)) for ws in self.scheduler.workers.values())

    def results(self) -> Counter[str]:
        """Return the bytes of results in the memory of each job's workers."""
        held = Counter[str]()
        for ws in self.scheduler.workers.values():
            held[job_of(str(ws.name))] += ws.nbytes
        return held

    def clients(self) -> int:
        """Count the clients that are connected."""
        return sum(key != NOT_A_USER for key in self.scheduler.clients)

    def each_worker(self) -> list[dict[str, Any]]:
        """Return the state of each connected worker, by its names in REST."""
        return [
            {
                "name": str(ws.name),
                "job": job_of(str(ws.name)),
                "host": ws.host,
                "status": ws.status.name,
                "memory_used": ws.metrics.get("memory", 0),
                "memory_limit": ws.memory_limit or 0,
                "tasks": len(ws.processing),
                "silent": round(time.time() - ws.last_seen, 1),
            }
            for ws in self.scheduler.workers.values()
        ]

    def figures(self) -> dict[str, Any]:
        """Return clients, threads and memory as they are now, by their names in a summary."""
        workers = self.scheduler.workers.values()
        return {
            "clients": self.clients(),
            "threads": sum(ws.nthreads for ws in workers),
            "memory_used": sum(ws.metrics.get("memory", 0) for ws in workers),
            "memory_limit": sum(ws.memory_limit or 0 for ws in workers),
        }

    def progress(self) -> dict[str, Any]:
        """Return how far tasks and threads are at this moment, by their names in a summary.

        Dask forgets a group of tasks with its results, so this counts what clients still hold.
        """
        states = Counter[str]()
        for group in self.scheduler.task_groups.values():
            states.update(group.states)
        workers = self.scheduler.workers.values()
        threads = sum(ws.nthreads for ws in workers)
        working = sum(min(len(ws.processing), ws.nthreads) for ws in workers)
        return {
            "tasks": states.total(),
            "tasks_done": sum(states[state] for state in DONE),
            "busy": round(working / threads, 2) if threads else None,
        }

    def keep(self, now: float, timeout: float | None) -> None:
        """Count the cluster as used now; if it is idle, its time-out ends in an hour at least."""
        self.used = now
        if self.idle_since is not None:
            self.idle_since = now + max(0.0, KEPT_SECONDS - (timeout or KEPT_SECONDS))

    def look(self, now: float, *, waiting: bool) -> None:
        """Note since when nothing is computed, and since when no client is connected.

        A cluster whose jobs all wait in a queue holds nothing yet: neither clock ticks.  Work that
        came and went between two looks counts, else a user of short tasks would lose the cluster.
        """
        before, self.transitions = self.transitions, self.scheduler.transition_counter
        works = any(ws.processing for ws in self.scheduler.workers.values())
        works = works or bool(self.scheduler.queued or self.scheduler.unrunnable)
        if works or self.tasks != self.tasks_before:
            self.used, self.tasks_before = now, self.tasks
        busy = works or self.transitions != before
        self.idle_since = None if busy or waiting else self.idle_since or now
        self.alone_since = None if self.clients() or waiting else self.alone_since or now

    def unread(self) -> list[str]:
        """Return the jobs with connected workers into whose logs `remarks` has not looked."""
        return sorted(self.workers().keys() - self.read)

    def remarks(self, keys: list[str]) -> list[str]:
        """Return once for each job what its GPU workers' start warns of; reads files."""
        found: dict[str, list[str]] = {}
        for key in keys:
            with contextlib.suppress(OSError):  # a file server may show it later
                with (self.logs / f"{key}.log").open("rb") as stream:
                    start = stream.read(LOG_START).decode("utf-8", "replace")
                self.read.add(key)
                for words in remarks(start):
                    found.setdefault(words, []).append(key)
        return [f"{', '.join(keys)}: {words}" for words, keys in found.items()]

    def first_error(self, key: str) -> str:
        """Return the last line of a job's log that names an error, and what is behind it."""
        return first_error(self.log_of(key))

    def log_end(self, key: str) -> str:
        """Return the last lines of a job's log in one sentence, empty where it has none."""
        return log_end(self.log_of(key))

    def log_of(self, key: str) -> list[str]:
        """Return the end of what a job, its shell and its system said."""
        mark, _, task = key.rpartition("_")
        # What the system says of a job's end is not in the log that its script has opened.
        files = (f"{key}.log", f"{mark}.{task}.out", f"{mark}.out.{task}")
        lines = [line for name in files for line in self.last_lines(name)]
        # Where a job never came to open its log, its shell's words may be in a file of all tasks.
        return lines or self.last_lines(f"{mark}.out")

    def last_lines(self, name: str) -> list[str]:
        """Return the end of a file among the logs; nothing if there is none, or the disk hangs."""
        if self.reader is not None and self.reader.is_alive():
            return []
        lines: list[str] = []

        def read() -> None:
            lines.extend(tail(self.logs / name, LOG_END, most=LOG_END).splitlines())

        # On the loop, which Dask's scheduler must have again soon.
        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        self.reader.join(READ_SECONDS)
        return [] if self.reader.is_alive() else lines
