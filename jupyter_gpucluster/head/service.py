"""The loop of a head: observe, let `reconcile.decide` decide, write the record, then act."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import signal
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

import dask
from distributed import Scheduler
from distributed.core import Status
from distributed.security import Security

from ..batch.cancel import heads_job_left, remove, unproved_by_hand
from ..batch.queue import JOB_SERVER_SECONDS, JobServerRunner, Runner, submit_line
from ..core.cluster import (
    ASKED,
    ENDED,
    Phase,
    Record,
    Spec,
    Target,
    heads_job,
    protocol_of,
    spec_of_group,
)
from ..core.errors import (
    BackendUnavailable,
    ClusterConflict,
    GpuClusterError,
    LimitReached,
    StateError,
)
from ..core.job import WAITING, Submission
from ..core.summary import Event, GpuReading, Summary
from ..host.cluster_directory import LEASE_SECONDS, ClusterDirectory
from ..host.memory_shares import check_memory
from ..host.private_files import write_private
from ..host.processes import is_alive as process_lives
from ..host.processes import this_process
from ..host.startup_watch import SlowStarts
from . import dask_config, gpu_metrics, http_api, own_job
from .adaptive import Adaptation, Retirement, leaving_order
from .allocation_watch import HeldJobWatch
from .memory import MemoryShares, ending_bytes
from .reconcile import groups, listing
from .reconcile.model import (
    Action,
    Answer,
    Cancel,
    Finish,
    Note,
    Observation,
    Retire,
    Submit,
    given_up_unlisted,
    lasting,
    staying,
)
from .reconcile.observe import Watch
from .removal import RemovalWatch
from .summary import summarise
from .unsaved import Unsaved
from .vain_cancels import VainCancels

logger = logging.getLogger("gpucluster.head")

KEPT_SUMMARY_SECONDS = 10.0
MOVING_SUMMARY_SECONDS = 1.5
"""The same while what the GPUs do changes: under the period of their readings."""
FRESH_SECONDS = 60.0
"""For so long after a submission its user watches it start, or fail."""
FRESH_POLL = 0.2
DISK_SECONDS = 2.0
"""How long an answer waits for the disk at most."""
RETRY_SECONDS = 5.0
"""When a failed write is tried again."""
T = TypeVar("T")
KEPT_EVENTS = 1000
"""How many lines of the timeline wait for room at most."""
SILENT_SECONDS = 1.0
"""A job server that owes an answer for so long is not busy, but stopped."""


class Service:
    """One cluster's scheduler, and everything that keeps the cluster at its target."""

    def __init__(
        self, directory: ClusterDirectory, record: Record, runner: Runner, workers: int = 0
    ) -> None:
        self.directory = directory
        self.own_job = own_job.OwnJob(directory, workers)
        self.held = HeldJobWatch(record.spec.allocation)
        self.record = record
        self.numbered: Record | None = None
        self.saved: Record | None = None
        self.events: list[Event] = []
        self.queue = listing.open_queue(directory, record, runner)
        self.wake = asyncio.Event()
        self.news = asyncio.Condition()
        self.answers: list[Answer] = []
        self.submitting: set[asyncio.Task[None]] = set()
        self.told = listing.Told()
        self.unsaved = Unsaved()
        self.vain = VainCancels()
        self.written = 0.0
        self.shown_gpus: tuple[GpuReading, ...] = ()
        self.leased = 0.0
        self.finished = False
        self.dashboard: bool | None = None
        self.gpus = gpu_metrics.GpuWatch()
        self.slow = SlowStarts(directory.logs)

    # Start and end.

    async def run(self) -> None:
        """Serve until the cluster has ended."""
        spec = self.record.spec
        token = (self.directory.path / "token").read_text().strip()
        with dask.config.set(
            {
                **dask_config.SCHEDULER,
                # The scheduler makes a directory there, too, and would leave it.
                "temporary-directory": spec.scratch,
                **(own_job.settings(self.directory) if spec.in_job else {}),
            }
        ):
            options: dict[str, Any] = {"security": self.security()} if spec.encrypted else {}
            self.scheduler = Scheduler(
                host=spec.host or None,
                interface=spec.scheduler_interface or None if not spec.host else None,
                port=0,
                protocol=protocol_of(spec),
                dashboard=False,
                # In a job it is asked from other hosts, over TLS.
                dashboard_address=own_job.listen_on(spec) if spec.in_job else "127.0.0.1:0",
                **options,
            )
        http_api.install(self.scheduler, self, token)
        self.watch = Watch(self.scheduler, self.directory.logs, self.wake)
        self.scheduler.add_plugin(self.watch)
        self.retirement = Retirement(self.scheduler)
        self.adaptation = self.adapt_to(self.record.target)
        self.memory = MemoryShares(self.scheduler, self.queue, lambda: self.record, self.wake)
        await self.scheduler
        if self.record.spec.job.gpus and not self.record.spec.simulated:
            await gpu_metrics.install(self.scheduler, bound=self.record.spec.worker.bound)
        self.own()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.on_signal, number)
        loop = asyncio.get_running_loop()
        self.removal = RemovalWatch(
            self.directory.path, lambda: loop.call_soon_threadsafe(self.wake.set)
        )
        try:
            while not self.finished:
                await self.turn()
        finally:
            self.removal.close()
            await self.scheduler.close(reason="gpucluster-stop")

    def adapt_to(self, target: Target) -> Adaptation:
        """Return the adaptive logic for a target."""
        return Adaptation(self.scheduler, target, self.record.spec.worker.per_job)

    def security(self) -> Security:
        """Return what the scheduler shows and demands."""
        tls = self.directory.tls
        return Security(
            require_encryption=True,
            tls_ca_file=str(tls / "ca.pem"),
            tls_scheduler_cert=str(tls / "scheduler-cert.pem"),
            tls_scheduler_key=str(tls / "scheduler-key.pem"),
            # The scheduler also calls workers, as a client of theirs.
            tls_client_cert=str(tls / "scheduler-cert.pem"),
            tls_client_key=str(tls / "scheduler-key.pem"),
        )

    def own(self) -> None:
        """Put this process and its addresses on record; from here on it is the only writer."""
        # Clients would show it as a link, which without the token opens nowhere.
        self.scheduler.services.pop("dashboard", None)
        record = self.own_job.enter(self.record)
        identity = self.scheduler.identity()
        if (job := heads_job(record)) is not None:
            identity["gpucluster"] = {"job": job.id}  # by which a later run knows it for another's
        write_private(self.directory.scheduler_file, json.dumps(identity, default=str).encode())
        server: Any = self.scheduler.http_server  # distributed adds address and port
        address, http = self.scheduler.address, f"{server.address}:{server.port}"
        self.record = replace(
            record,
            head=this_process(),
            scheduler_address=address,
            http_address=own_job.http_address(address, server.port) if self.own_job.group else http,
        )
        # Whose record is damaged is stopped by this file.
        self.directory.write_process(this_process(), self.record.http_address)
        self.directory.append_event(Event(time.time(), "head", "The head runs"))
        self.seen = Observation()
        self.listed: float | None = None
        self.summary = summarise(self.record, self.seen, time.time())

    def on_signal(self, number: int) -> None:
        """Stop like asked to: workers, scheduler, files, in this order."""
        name = signal.Signals(number).name
        reason = f"The head received {name}."
        if self.own_job.group:
            reason = f"The head's job was told to end ({name}): cancelled, requeued or preempted."
        self.set_record(
            stop_requested=self.record.stop_requested or time.time(),
            reason=self.record.reason or reason,
        )

    def set_record(self, **changes: Any) -> None:
        """Change the record between two turns."""
        self.record = replace(self.record, **changes)
        self.wake.set()

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
        await self.write(seen, actions, now)
        for action in actions:
            await self.with_lease(self.act(action))
        if not self.finished:
            with contextlib.suppress(TimeoutError):
                pause = min(self.pause(), self.told.again or self.pause())
                if self.unsaved.troubles:
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
                self.leased = time.time()
                await self.save("lease", lambda _: self.directory.renew_lease(), None)
            return task.result()
        finally:
            task.cancel()

    def notice_removal(self) -> None:
        """End where no command could: without its directory nobody finds the cluster.

        Raises
        ------
        StateError
            The directory was removed.
        """
        if self.removal.removed:
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
        if self.scheduler.status is not Status.running and self.record.stop_requested is None:
            self.set_record(
                stop_requested=time.time(),
                reason="Its scheduler was shut down, by a client or by Dask's own idle time-out.",
            )

    def notice_owner(self) -> None:
        """Stop with the program that the cluster belongs to; on another host nobody can tell."""
        owner = self.record.owner
        if owner is None or self.record.stop_requested is not None:
            return
        if process_lives(owner) is False:
            reason = "The program that started it has gone."
            self.set_record(stop_requested=time.time(), reason=reason)

    def pause(self) -> float:
        """Return how long to wait for news before looking again."""
        backend = self.queue.backend
        connected = self.watch.workers()
        unsettled = self.record.stop_requested is not None or any(
            not job.is_over
            and not given_up_unlisted(job)  # nobody knows whether it ever ends
            and (job.leaving is not None or job.connected != (job.key in connected))
            for job in self.record.jobs
        )
        if unsettled:
            return backend.hurry_seconds
        fresh = any(
            not job.connected and time.time() - job.submitted < FRESH_SECONDS
            for job in staying(self.record)
        )
        return max(FRESH_POLL, backend.hurry_seconds) if fresh else backend.poll_seconds

    async def observe(self, now: float) -> Observation:
        """Gather what is true now; the queueing system is asked as often as it may be."""
        connected = self.watch.workers()
        waiting = not connected and any(job.state in WAITING for job in staying(self.record))
        self.watch.look(now, waiting=waiting)
        others = self.own_job.others(self.record)
        told = await listing.ask(self.queue, self.directory, others, self.told, now, self.pause())
        self.told = told = self.own_job.add_to(told, self.record)
        if self.record.stop_requested is None and (over := await self.held.look(told.listing, now)):
            self.set_record(stop_requested=now, reason=over)
        alive = [job.key for job in lasting(groups.own_part(self.record))]
        target = self.record.target
        desired, volunteers = target.maximum, self.adaptation.volunteers
        if target.adaptive:
            await self.adaptation.recommend(alive)
            desired = self.adaptation.desired * self.record.spec.worker.per_job
            volunteers = self.adaptation.volunteers
        elif len(alive) * self.record.spec.worker.per_job > desired:
            surplus = len(alive) * self.record.spec.worker.per_job - desired
            volunteers = tuple(leaving_order(self.scheduler, surplus))
        desired = self.memory.admit(desired)
        answers, self.answers = tuple(self.answers), []
        if told.listing is not None:
            self.listed = now
        return Observation(
            listing=told.listing,
            silent_since=told.silent_since,
            cure=told.cure,
            answers=answers,
            workers=self.watch.workers(),
            history=told.history,
            found=told.found,
            exits=told.exits,
            unknown=told.unknown,
            listing_proves=self.queue.backend.listing_proves,
            system=self.queue.backend.title,
            desired=desired,
            most_tasks=self.queue.backend.most_tasks,
            volunteers=volunteers,
            retired=frozenset(self.retirement.retired),
            restarted=frozenset(self.watch.restarted),
            idle_since=self.watch.idle_since,
            gpus_idle_since=self.gpus.idle.since,
            allocation_ends=self.held.ends,
            listed=self.listed,
            alone_since=self.watch.alone_since,
            **self.watch.figures(),
            held=self.memory.held,
            log_hint=self.watch.first_error,
            log_end=self.watch.log_end,
            explain=self.queue.backend.explain,
            unsaved=self.unsaved.refusal(),
            by_hand=lambda ids: unproved_by_hand(self.record, ids),
        )

    async def write(self, seen: Observation, actions: list[Action], now: float) -> None:
        """Put on disk what changed, off the loop: a stalled file server must not stop Dask."""
        retry = now - self.unsaved.tried >= RETRY_SECONDS
        self.events += [action.event for action in actions if isinstance(action, Note)]
        summary = summarise(self.record, seen, now)
        summary = self.gpus.add_to(summary, self.scheduler, groups.own_part(self.record), now)
        if unread := self.watch.unread():
            self.gpus.news += await asyncio.to_thread(self.watch.remarks, unread)
        kind = "gpu" if self.record.spec.job.gpus else "cores"
        self.events += [Event(now, kind, trouble) for trouble in self.gpus.news]
        if late := self.slow.due(staying(self.record), seen.workers, now):
            for key, words in await asyncio.to_thread(self.slow.look, late, now):
                self.events.append(Event(now, "slow", words, key))
        await self.write_events(retry)
        summary = self.unsaved.add_to(self.slow.add_to(summary))
        due = now - self.leased > LEASE_SECONDS
        if due and await asyncio.to_thread(self.directory.record_is_lost):
            self.numbered = None  # written again below
        fresh = self.record != self.numbered or not alike(summary, self.summary)
        if fresh:
            self.record = replace(self.record, revision=self.record.revision + 1)
            summary = replace(summary, revision=self.record.revision)
            self.numbered = self.record
        record = self.record
        # A submission needs its mark on disk, so a new record is tried at once.
        if fresh or (retry and record != self.saved):
            if await self.save("record", self.directory.write_record, record):
                self.saved = record
            elif record.stop_requested is not None and record.outcome is Phase.STOPPED:
                await asyncio.to_thread(self.directory.note_stop, record.reason or ASKED)
        self.summary, self.seen = summary, seen
        moved = gpu_metrics.moved(self.shown_gpus, summary.gpus)
        kept = MOVING_SUMMARY_SECONDS if moved else KEPT_SUMMARY_SECONDS
        again = retry and "summary" in self.unsaved.troubles
        if fresh or again or now - self.written > kept:
            self.written, self.shown_gpus = now, summary.gpus
            await self.save("summary", self.directory.write_summary, summary)
        again = retry and "lease" in self.unsaved.troubles
        if again or due:
            self.leased = now
            await self.save("lease", lambda _: self.directory.renew_lease(), None)
        if fresh:
            async with self.news:
                self.news.notify_all()
        if bool(self.unsaved.troubles) != (summary.unsaved_since is not None):
            self.wake.set()  # the next summary reports it

    async def write_events(self, retry: bool) -> None:
        """Add to the timeline what waits for that, in order."""
        del self.events[:-KEPT_EVENTS]
        while self.events and (retry or "timeline" not in self.unsaved.troubles):
            if not await self.save("timeline", self.directory.append_event, self.events[0]):
                return
            del self.events[0]

    async def save(self, file: str, writer: Any, value: object) -> bool:
        """Write off the loop, and return whether that succeeded; what failed is tried again."""
        try:
            await asyncio.to_thread(writer, value)
        except GpuClusterError as error:
            self.unsaved.add(file, error)
            return False
        self.unsaved.remove(file)
        return True

    def save_end(self) -> bool:
        """Write what is not on disk yet, once the cluster has ended; return whether that succeeded.

        The files that only a live cluster needs are gone, which made room.
        """
        try:
            if self.record != self.saved:
                self.directory.write_record(self.record)
                self.saved = self.record
            if "summary" in self.unsaved.troubles:
                self.directory.write_summary(self.summary)
                self.unsaved.remove("summary")
            while self.events:
                self.directory.append_event(self.events[0])
                del self.events[0]
        except GpuClusterError:
            return False
        return True

    async def act(self, action: Action) -> None:
        """Carry out one action that `decide.step` returned."""
        if isinstance(action, Submit) and "record" in self.unsaved.troubles:
            # Nobody could find a job again whose mark is not on disk; it is asked for anew later.
            jobs = tuple(job for job in self.record.jobs if job.mark != action.mark)
            self.set_record(jobs=jobs)
        elif isinstance(action, Submit):
            task = asyncio.create_task(self.submit(action))
            self.submitting.add(task)
            task.add_done_callback(self.submitting.discard)
        elif isinstance(action, Retire):
            self.retirement.start(action.keys, self.wake)
        elif isinstance(action, Cancel):
            if ids := self.own_job.cancel(self.record, action.ids):
                result, title = await self.queue.cancel(ids), self.queue.backend.title
                self.events += self.vain.note(self.record, ids, result, title, time.time())
        elif isinstance(action, Finish):
            # A relay sees the end, too, and answers no more.
            if not self.record.spec.relayed and (ids := heads_job_left(self.record)):
                await remove(self.queue, ids)
            self.finished = True

    async def submit(self, action: Submit) -> None:
        """Send a submission whose mark is on record, and keep the answer for the next turn."""
        spec = spec_of_group(self.record.spec, action.group)
        script = self.directory.script(action.mark)
        template = self.directory.template(action.group)
        try:
            text = (await asyncio.to_thread(template.read_text)).replace("@MARK@", action.mark)
            await asyncio.to_thread(write_private, script, text.encode())
            # Cobalt and OAR execute the file itself.
            script.chmod(0o700)
            await self.memory.make_room(action.mark)
            limit = self.memory.limit_of(spec)
            submission = Submission(
                mark=action.mark,
                script=str(script),
                text=text,
                count=action.count,
                worker_argv=self.worker_argv(spec.worker_argv, limit),
                workers=spec.worker.per_job,
                # What a launcher spreads gets its GPUs from it, not from the job server.
                gpus=0 if spec.spread else spec.job.gpus,
                memory=self.memory_ceiling(spec, limit),
                arguments=spec.job.submit_args,
            )
            line = submit_line(self.queue.backend, submission)
            command = self.directory.command(action.mark)
            await asyncio.to_thread(write_private, command, line.encode())
            ids = await self.queue.submit(submission)
            self.answers.append(Answer(action.mark, ids))
        except BackendUnavailable:
            self.answers.append(Answer(action.mark))
        except GpuClusterError as error:
            # What the system said ends without a full stop, and more sentences follow.
            message = error.message if error.message.endswith(".") else f"{error.message}."
            told = (message, error.hint, error.detail)
            self.refuse(action, " ".join(part for part in told if part))
        except OSError as error:
            self.refuse(action, f"Cannot make the job's script: {error.strerror}.")
        except Exception as error:  # else nobody would hear of it, and the job be waited for
            logger.exception("The submission failed")
            self.refuse(action, f"The submission failed: {error!r}.")
        self.wake.set()

    def refuse(self, action: Submit, words: str) -> None:
        """Answer a submission that came to nothing."""
        self.answers.append(Answer(action.mark, refusal=words))
        self.wake.set()

    def worker_argv(self, argv: tuple[str, ...], limit: int | None) -> tuple[str, ...]:
        """Fill the scheduler's address and the memory limit of now in."""
        address = self.record.scheduler_address
        filled = [part.replace("{scheduler}", address) for part in argv]
        if self.record.spec.memory_follows and filled:
            filled[filled.index("--memory-limit") + 1] = str(limit)
        return tuple(filled)

    def memory_ceiling(self, spec: Spec, limit: int | None) -> int | None:
        """Return the bytes at which the job server ends a worker, None where a nanny does."""
        return ending_bytes(limit) if spec.worker_argv and not spec.devices else None

    # What the control routes ask.

    def summary_now(self) -> Summary:
        """Return the last summary with the workers and the memory of this moment.

        A turn of the loop waits up to a minute for the batch system's answer.
        """
        summary, workers = self.summary, self.watch.workers()
        if summary.phase in ENDED:
            return summary
        if workers != self.seen.workers:
            seen = replace(self.seen, workers=workers)
            fresh = summarise(self.record, seen, time.time())
            summary = replace(summary, workers=fresh.workers, words=fresh.words)
        return replace(summary, **self.watch.figures())

    async def newer_than(self, revision: int, seconds: float) -> None:
        """Wait until the summary is newer than a revision, or the time is up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self.news:
                await self.news.wait_for(lambda: self.summary.revision > revision)

    async def reach_disk(self) -> None:
        """Wait until what was asked for is on disk, where the next look finds it."""

        def on_disk() -> bool:
            # On a full disk it is enough that the head works by it.
            saved = self.numbered if "record" in self.unsaved.troubles else self.saved
            wanted = self.record
            return saved is not None and (saved.name, saved.target, saved.stop_requested) == (
                wanted.name,
                wanted.target,
                wanted.stop_requested,
            )

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DISK_SECONDS), self.news:
                await self.news.wait_for(on_disk)

    async def update(self, *, name: str | None, target: Target | None) -> None:
        """Rename or scale; raises `ClusterConflict` where the cluster is going away."""
        if self.record.stop_requested is not None or self.record.phase in ENDED:
            raise ClusterConflict("The cluster is stopping; it can be neither scaled nor renamed.")
        if target is not None:
            ceiling = self.record.spec.maximum_workers
            if ceiling is not None and target.maximum > ceiling:
                raise LimitReached(
                    f"{target.maximum} workers asked for; the profile allows {ceiling}.",
                    hint=f"Ask for {ceiling} or fewer.",
                    detail="target",
                )
            check_memory(self.record.spec, target.maximum)
            self.adaptation = self.adapt_to(target)
            self.set_record(target=target, expired=0)
        if name is not None:
            self.set_record(name=name)
        await self.reach_disk()
        runner = self.queue.runner
        if target is not None and isinstance(runner, JobServerRunner):
            if runner.silent_seconds() >= SILENT_SECONDS:
                raise BackendUnavailable(
                    "The new target is set, but no worker can start or end now.",
                    hint=runner.silence(),
                )

    async def ask_to_stop(self, reason: str) -> None:
        """Begin to stop; asking twice changes nothing."""
        if self.record.stop_requested is None:
            self.set_record(stop_requested=time.time(), reason=reason)
        await self.reach_disk()

    # The dashboard.

    def ensure_dashboard(self) -> None:
        """Add Dask's dashboard to the HTTP server; Bokeh is imported only now (0.4 s, 20 MiB)."""
        if self.dashboard is None:
            try:
                dashboard = importlib.import_module("distributed.dashboard.scheduler")
            except ImportError as error:
                logger.warning("No dashboard: %s", error)
                http_api.tell_missing(self.scheduler, " ".join(str(error).split()))
                self.dashboard = False
                return
            with dask.config.set(dask_config.DASHBOARD):
                dashboard.connect(
                    self.scheduler.http_application, self.scheduler.http_server, self.scheduler
                )
            self.dashboard = True


def alike(one: Summary, other: Summary) -> bool:
    """Tell whether two summaries say the same, but for what changes with every look."""
    restless: dict[str, Any] = {
        "revision": 0,
        "written": 0,
        "memory_used": 0,
        "gpus": (),
        "gpu_hours": 0,
        "listed": None,
    }
    faces = [
        [(gpu.worker, gpu.uuid, gpu.slowed, gpu.xids, gpu.trouble) for gpu in each.gpus]
        for each in (one, other)
    ]
    return faces[0] == faces[1] and replace(one, **restless) == replace(other, **restless)
