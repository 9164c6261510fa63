"""The loop of a head: observe, let `reconcile.decide` decide, write the record, then act."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from distributed import Scheduler
from distributed.core import Status

from ..batch.cancel import heads_job_left, remove, unproved
from ..batch.queue import JOB_SERVER_SECONDS, JobServerRunner, Runner
from ..core.cluster import ENDED, Record, heads_job
from ..core.errors import StateError
from ..core.job import WAITING
from ..core.lease import LEASE_SECONDS
from ..core.summary import Event, Summary
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import write_private
from ..host.processes import is_alive, this_process
from ..host.startup_watch import SlowStarts
from . import dask_scheduler, gpu_metrics
from .adaptive import Adaptation, Retirement, leaving_order
from .half_open import guard_scheduler
from .memory import MemoryShares
from .own_job import HeldJobWatch, OwnJob
from .reconcile import groups, listing, model
from .reconcile.model import Observation, Reported, active
from .reconcile.observe import Watch
from .state_files import RETRY_SECONDS, StateFiles
from .submissions import Submissions, VainCancels
from .summary import summarise

logger = logging.getLogger("gpucluster.head")

FRESH_SECONDS = 60.0
"""For so long after a submission its user watches it start, or fail."""
FRESH_POLL = 0.2
T = TypeVar("T")


class Service:
    """One cluster's scheduler, and the loop that keeps the cluster at its target."""

    def __init__(
        self, directory: ClusterDirectory, record: Record, runner: Runner, workers: int = 0
    ) -> None:
        self.directory = directory
        self.own_job = OwnJob(directory, workers)
        self.held = HeldJobWatch(record.spec.allocation, directory.root)
        self.record = record
        self.seen = Observation()
        self.files = StateFiles(directory, summarise(record, self.seen, time.time()))
        self.queue = listing.open_queue(directory, record, runner)
        self.wake = asyncio.Event()
        self.reported = Reported()
        self.listed: float | None = None
        self.doubtful: set[str] = set()
        self.vain = VainCancels()
        self.restarts: set[asyncio.Task[None]] = set()
        self.finished = False
        self.gpus = gpu_metrics.GpuWatch()
        self.slow = SlowStarts(directory.logs)

    # Start and end.

    async def run(self, add_routes: Callable[[Scheduler, Service, str], None]) -> None:
        """Serve until the cluster has ended.

        Parameters
        ----------
        add_routes
            Adds the control routes to the scheduler's HTTP server: `http_api.install`.
        """
        spec = self.record.spec
        token = (self.directory.path / "token").read_text().strip()
        self.scheduler = dask_scheduler.make_scheduler(self.directory, spec)
        add_routes(self.scheduler, self, token)
        self.watch = Watch(self.scheduler, self.directory.logs, self.wake)
        self.scheduler.add_plugin(self.watch)
        self.retirement = Retirement(self.scheduler)
        self.adaptation = Adaptation(self.scheduler)
        self.memory = MemoryShares(self.scheduler, self.queue, lambda: self.record, self.wake)
        self.submissions = Submissions(
            self.directory, self.queue, self.memory, lambda: self.record, self.wake
        )
        await self.scheduler
        guard_scheduler(self.scheduler)
        if spec.job.gpus and not spec.simulated:
            await gpu_metrics.install(self.scheduler, bound=spec.worker.bound)
        self.own()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self.on_signal, number)
        self.removal = asyncio.create_task(self.files.wait_for_removal())
        self.removal.add_done_callback(lambda _: self.wake.set())
        try:
            while not self.finished:
                await self.turn()
        finally:
            self.removal.cancel()
            await self.scheduler.close(reason="gpucluster-stop")

    def own(self) -> None:
        """Put this process and its addresses on record; from here on it is the only writer."""
        # Clients would show it as a link, which without the token opens nowhere.
        self.scheduler.services.pop("dashboard", None)
        record = self.own_job.enter(self.record)
        identity = self.scheduler.identity()
        if (job := heads_job(record)) is not None:
            identity["gpucluster"] = {"job": job.id}  # by which a later run knows it for another's
        write_private(self.directory.scheduler_file, json.dumps(identity, default=str).encode())
        self.record = replace(
            record,
            head=this_process(),
            scheduler_address=self.scheduler.address,
            http_address=dask_scheduler.http_address(
                self.scheduler, in_job=bool(self.own_job.group)
            ),
        )
        # Whose record is damaged is stopped by this file.
        self.directory.write_process(this_process(), self.record.http_address)
        self.directory.append_event(Event(time.time(), "head", "Scheduler started"))

    def on_signal(self, number: int) -> None:
        """Stop like asked to: workers, scheduler, files, in this order."""
        name = signal.Signals(number).name
        reason = f"The scheduler process received {name}."
        if self.own_job.group:
            reason = f"The scheduler's job has to end ({name}): cancelled, requeued or preempted."
        self.stop(self.record.reason or reason)

    def set_record(self, **changes: Any) -> None:
        """Change the record between two turns."""
        self.record = replace(self.record, **changes)
        self.wake.set()

    def stop(self, reason: str) -> None:
        """Begin to stop; the first reason is the true one."""
        if self.record.stop_requested is None:
            self.set_record(stop_requested=time.time(), reason=reason)

    # One turn of the loop.

    async def turn(self) -> None:
        """Look once, decide once, write once, then act."""
        self.wake.clear()
        self.notice_removal()
        self.notice_shutdown()
        self.notice_owner()
        await self.end_silent_job_server()
        now = time.time()
        seen = await self.with_lease(self.observe(now))
        self.record, actions = groups.step(self.record, seen, now)
        self.files.events += [each.event for each in actions if isinstance(each, model.Note)]
        await self.write(seen, now)
        for action in actions:
            await self.with_lease(self.act(action))
        if not self.finished:
            with contextlib.suppress(TimeoutError):
                pause = min(self.pause(), self.reported.again or self.pause())
                if self.files.troubles:
                    pause = min(pause, RETRY_SECONDS)
                await asyncio.wait_for(self.wake.wait(), pause)

    async def with_lease(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for commands of a batch system, and renew the lease meanwhile.

        Each may take a minute, and up to twenty are run one after the other: workers would end
        themselves by the old lease, and a list would call the head unreachable.
        """
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({task}, timeout=LEASE_SECONDS))[0]:
                await self.files.renew_lease(time.time())
            return task.result()
        finally:
            task.cancel()

    def notice_removal(self) -> None:
        """End where no command could: without its directory the cluster cannot be found.

        Raises
        ------
        StateError
            The directory was removed.
        """
        if self.removal.done():
            raise StateError(f"The cluster's directory {self.directory.path} was removed.")

    async def end_silent_job_server(self) -> None:
        """Kill a job server that does not answer while the cluster stops; its jobs end with it."""
        runner = self.queue.runner
        if self.record.stop_requested is None or not isinstance(runner, JobServerRunner):
            return
        if runner.silent_seconds() > JOB_SERVER_SECONDS:
            logger.warning("%s; now it is killed: the cluster stops", runner.silence())
            await runner.replace()

    def notice_shutdown(self) -> None:
        """Stop with the scheduler: ``client.shutdown()`` closes it, and Dask's own time-outs do."""
        if self.scheduler.status is not Status.running:
            self.stop("Its scheduler was shut down, by a client or by Dask's own idle time-out.")

    def notice_owner(self) -> None:
        """Stop with the program that the cluster belongs to; on another host that is unknown."""
        owner = self.record.owner
        if owner is not None and is_alive(owner) is False:
            self.stop("The program that started it has gone.")

    def pause(self) -> float:
        """Return how long to wait for news before looking again."""
        backend = self.queue.backend
        connected = self.watch.workers()
        unsettled = self.record.stop_requested is not None or any(
            not job.is_over
            and not model.given_up_unlisted(job)  # it may never end
            and (job.retiring_since is not None or job.connected != (job.key in connected))
            for job in self.record.jobs
        )
        if unsettled:
            return backend.hurry_seconds
        fresh = any(
            not job.connected and time.time() - job.submitted < FRESH_SECONDS
            for job in active(self.record)
        )
        return max(FRESH_POLL, backend.hurry_seconds) if fresh else backend.poll_seconds

    def listing_period(self, connected: Mapping[str, int]) -> float:
        """Return the seconds between two listings; a job with a new doubt makes the next one soon.

        Parameters
        ----------
        connected
            The number of workers of each job.
        """
        if (shared := self.queue.shared) is None:
            return self.pause()
        doubtful = listing.doubtful(self.record, connected)
        if doubtful - self.doubtful:
            shared.note_change()
        self.doubtful = doubtful
        return listing.period(self.record, connected)

    async def observe(self, now: float) -> Observation:
        """Gather what is true now; the batch system is asked as often as it may be."""
        connected = self.watch.workers()
        waiting = not connected and any(job.state in WAITING for job in active(self.record))
        self.watch.look(now, waiting=waiting)
        others, before = self.own_job.others(self.record), self.reported
        period = self.listing_period(connected)
        news = await listing.ask(self.queue, self.directory, others, before, now, period)
        self.reported = reported = self.own_job.add_to(news, self.record)
        if self.record.stop_requested is None:
            if over := await self.held.look(reported.listing, now):
                self.stop(over)
        desired, alive = self.desire()
        backend = self.queue.backend
        if reported.listing is not None:
            self.listed = now
        return Observation(
            **vars(reported),
            answers=self.submissions.take_answers(),
            workers=self.watch.workers(),
            system=backend.title,
            desired=self.memory.admit(desired),
            most_tasks=backend.most_tasks,
            volunteers=tuple(leaving_order(self.scheduler, alive - desired)),
            retired=frozenset(self.retirement.retired),
            restarted=frozenset(self.watch.restarted),
            idle_since=self.watch.idle_since,
            used=self.watch.used,
            results=self.watch.results(),
            gpus_idle_since=self.gpus.idle.since,
            allocation_ends=self.held.ends,
            listed=self.listed,
            alone_since=self.watch.alone_since,
            held=self.memory.held,
            log_hint=self.watch.first_error,
            log_end=self.watch.log_end,
            explain=backend.explain,
            unsaved=self.files.refusal(),
            unproved=lambda ids: unproved(self.record, ids),
        )

    def desire(self) -> tuple[int, int]:
        """Return how many workers are wanted now, and how many the jobs have or will have."""
        alive = len(model.without_successor(groups.own_part(self.record)))
        target, each = self.record.target, self.record.spec.worker.per_job
        if target.adaptive:
            return self.adaptation.jobs_wanted(target, each, alive) * each, alive * each
        return target.maximum, alive * each

    async def write(self, seen: Observation, now: float) -> None:
        """Put what changed on disk, with what the head noticed of GPUs and of slow starts."""
        summary = replace(summarise(self.record, seen, now), **self.watch.figures())
        summary = self.gpus.add_to(summary, self.scheduler, groups.own_part(self.record), now)
        if unread := self.watch.unread():
            self.gpus.news += await self.files.read(self.watch.remarks, unread, otherwise=[])
        kind = "gpu" if self.record.spec.job.gpus else "cores"
        events = [Event(now, kind, trouble) for trouble in self.gpus.news]
        if late := self.slow.due(active(self.record), seen.workers, now):
            slow: list[tuple[str, str]] = []
            slow = await self.files.read(self.slow.look, late, now, otherwise=slow)
            events += [Event(now, "slow", words, key) for key, words in slow]
        self.files.events += events
        await self.files.write_events(now)
        summary = self.files.add_troubles(self.slow.add_to(summary))
        if await self.files.look_for_record(now):
            self.stop("Stopped by force.")
        # A request may change the record while a file is written: it is numbered and taken at once.
        fresh = self.files.is_news(self.record, summary)
        if fresh:
            self.record = replace(self.record, revision=self.record.revision + 1)
            summary = replace(summary, revision=self.record.revision)
        await self.files.write_record(self.record, fresh)
        self.files.summary, self.seen = summary, seen
        await self.files.write_summary(fresh, now)
        if bool(self.files.troubles) != (summary.unsaved_since is not None):
            self.wake.set()  # the next summary reports it

    def summary_now(self) -> Summary:
        """Return the last summary with the workers and the memory of this moment.

        A turn of the loop waits up to a minute for the batch system's answer.
        """
        summary, workers = self.files.summary, self.watch.workers()
        if summary.phase in ENDED:
            return summary
        if workers != self.seen.workers:
            seen = replace(self.seen, workers=workers)
            fresh = summarise(self.record, seen, time.time())
            summary = replace(summary, workers=fresh.workers, words=fresh.words)
        figures = {**self.watch.figures(), **self.watch.progress()}
        return self.files.add_troubles(replace(summary, **figures))

    async def act(self, action: model.Action) -> None:
        """Carry out one action that `decide.step` returned."""
        if isinstance(action, model.Submit) and "record" in self.files.troubles:
            # A job whose mark is not on disk could not be found again; it is submitted later.
            jobs = tuple(job for job in self.record.jobs if job.mark != action.mark)
            self.set_record(jobs=jobs)
        elif isinstance(action, model.Submit):
            self.submissions.start(action)
        elif isinstance(action, model.Retire):
            self.retirement.start(action.keys, self.wake)
        elif isinstance(action, model.Cancel):
            if ids := self.own_job.cancel(self.record, action.ids):
                again = self.vain.tries.keys() >= {*ids}
                result, title = await self.queue.cancel(ids, again=again), self.queue.backend.title
                self.files.events += self.vain.note(self.record, ids, result, title, time.time())
        elif isinstance(action, model.Finish):
            # A relay sees the end, too, and answers no more.
            if not self.record.spec.relayed and (ids := heads_job_left(self.record)):
                await remove(self.queue, ids)
            self.finished = True
