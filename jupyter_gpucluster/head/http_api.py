"""The head's HTTP side: a gate that asks for the token on every path, and the control routes."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import math
import shlex
import sys
import time
from dataclasses import replace
from typing import Any

from distributed import Scheduler
from tornado import web
from tornado.httputil import HTTPServerRequest
from tornado.routing import Matcher, Rule

from ..batch.queue import JobServerRunner
from ..core import errors
from ..core.cluster import ENDED, NAME, TOKEN_HEADER, Phase, Record, Target, heads_job
from ..core.errors import GpuClusterError, InvalidInput
from ..core.job import Job
from ..core.serialize import to_json
from ..core.summary import Event
from ..core.summary import Summary as ClusterSummary
from ..host.memory_shares import check_memory
from .adaptive import job_of
from .dask_scheduler import add_dashboard
from .half_open import HalfOpen, most_half_open
from .reconcile.model import active
from .service import Service

LONGEST_WAIT = 30.0
RESTART_SECONDS = 5.0
"""A worker may take 30 s to end; the one who asked waits 10 s for the answer."""
SILENT_SECONDS = 1.0
"""A job server that owes an answer for so long is not busy, but stopped."""


class WithoutToken(Matcher):
    """Matches every request that does not carry the token."""

    def __init__(self, token: str, gate: HalfOpen) -> None:
        self.token = token.encode()
        self.gate = gate

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        """Match unless the header is there; take it off, so that no page can show it.

        Bokeh packs the headers of a page's request into the page, readable for whoever has it.
        """
        given = request.headers.get(TOKEN_HEADER, "").encode()
        if not hmac.compare_digest(given, self.token):
            return {}
        del request.headers[TOKEN_HEADER]
        self.gate.leave(getattr(request.connection, "stream", None))
        return None


class FirstVisit(Matcher):
    """Matches nothing, but makes the dashboard ready before the first page is asked for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.visited = False

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        if not self.visited and not request.path.startswith("/gpucluster/"):
            self.visited = True
            if why := add_dashboard(self.scheduler):
                text = (
                    f"There is no dashboard in this cluster's environment: {why}.\n\n"
                    "It comes with the next cluster once bokeh and numpy are there:\n\n"
                    f"    {shlex.quote(sys.executable)} -m pip install bokeh numpy\n"
                )
                # Behind all other routes, since those come first that were added first.
                missing = [(r"/.*", Refused, {"status": 501, "text": text})]
                self.scheduler.http_application.add_handlers(r".*", missing)
        return None


class Refused(web.RequestHandler):
    """Answers any method with a status and a text."""

    def initialize(self, status: int, text: str) -> None:
        self.status, self.text = status, text

    def prepare(self) -> None:
        self.set_status(self.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        _ = self.finish(self.text)


class Control(web.RequestHandler):
    """The base of the control routes: JSON in and out, errors of ours."""

    service: Service

    def initialize(self, service: Service) -> None:
        self.service = service

    def answer(self, data: object, status: int = 200) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "application/json")
        _ = self.finish(json.dumps(to_json(data)))

    def body(self) -> dict[str, Any]:
        try:
            data = json.loads(self.request.body or b"{}")
        except ValueError as error:
            raise InvalidInput(f"The body is not JSON: {error}.") from error
        if not isinstance(data, dict):
            raise InvalidInput("The body must be a JSON object.")
        return data

    def summary(self) -> ClusterSummary:
        return with_requests(self.service.summary_now(), self.service.record)

    async def on_disk(self) -> None:
        """Wait until the request is on disk."""
        await self.service.files.reach_disk(lambda: self.service.record)

    def number(self, name: str, default: float) -> float:
        with contextlib.suppress(ValueError):
            number = float(self.get_query_argument(name, str(default)))
            if math.isfinite(number):
                return number
        raise InvalidInput(f"{name} must be a number.", detail=name)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None, None))[1]
        if error is None:  # cancelled, which requests are that wait when the head ends
            error = errors.HeadUnreachable("The scheduler process is ending.")
        if isinstance(error, GpuClusterError):
            self.answer({**error.as_json(), "kind": type(error).__name__}, error.status)
        else:
            self.answer({"message": self._reason, "hint": "", "detail": ""}, status_code)

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, GpuClusterError):
            super().log_exception(typ, value, tb)


def with_requests(summary: ClusterSummary, record: Record) -> ClusterSummary:
    """Return the last summary with what was requested since: a listing may hold the loop up."""
    if record.stop_requested is not None and summary.phase not in {*ENDED, Phase.STOPPING}:
        summary = replace(
            summary,
            phase=Phase.STOPPING,
            phase_since=record.stop_requested,
            words=Phase.STOPPING.value,
            reason=record.reason,
        )
    return replace(summary, name=record.name, target=record.target)


def read_target(data: object) -> Target:
    """Read a target; front ends check what they send, so this is for everybody else.

    Raises
    ------
    InvalidInput
        It is not two whole numbers in order.
    """
    if isinstance(data, dict):
        minimum, maximum = data.get("minimum"), data.get("maximum")
        if type(minimum) is type(maximum) is int and 0 <= minimum <= maximum:
            return Target(minimum, maximum)
    raise InvalidInput(
        "The target must be {minimum, maximum}: two whole numbers, the first not above the other.",
        detail="target",
    )


def droppable(record: Record) -> dict[str, Job]:
    """Return the jobs that can be given back, by their keys; none if the target is a range."""
    if record.target.adaptive:
        return {}
    head = heads_job(record)
    return {job.key: job for job in active(record) if not job.group and job != head}


class Summary(Control):
    """The summary of this moment; with ``after``, as soon as it is newer than that revision.

    ``brief`` asks for the revision only, ``figures`` for all except the jobs.
    """

    async def get(self) -> None:
        seconds = min(self.number("timeout", 0), LONGEST_WAIT)
        await self.service.files.newer_than(int(self.number("after", -1)), seconds)
        if self.number("brief", 0):
            self.answer({"revision": self.service.files.summary.revision})
            return
        found: dict[str, Any] = {"summary": self.summary()}
        if not self.number("figures", 0):
            found |= {"jobs": self.service.record.jobs, "tasks": self.service.watch.tasks}
        self.answer(found)


class Cluster(Control):
    """Rename, scale or keep the cluster, give one of its jobs back, or restart a worker."""

    async def patch(self) -> None:
        body = self.body()
        name, target = body.get("name"), body.get("target")
        if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
            raise InvalidInput("That cannot be a cluster's name.", detail="name")
        self.scale_or_rename(name, None if target is None else read_target(target))
        if worker := str(body.get("drop") or ""):
            self.drop(job_of(worker))
        if worker := str(body.get("restart") or ""):
            await self.restart(worker)
        if body.get("keep"):
            self.service.watch.keep(time.time(), self.service.record.spec.policy.idle_timeout)
        await self.on_disk()
        runner = self.service.queue.runner
        if target is not None and isinstance(runner, JobServerRunner):
            if runner.silent_seconds() >= SILENT_SECONDS:
                message = "The new target is set, but no worker can start or end now."
                raise errors.BackendUnavailable(message, hint=runner.silence())
        self.answer({"summary": self.summary()})

    def scale_or_rename(self, name: str | None, target: Target | None) -> None:
        """Change the record; raises `ClusterConflict` where the cluster is going away."""
        service = self.service
        record = service.record
        if record.stop_requested is not None or record.phase in ENDED:
            raise errors.ClusterConflict("The cluster is stopping; it cannot be scaled or renamed.")
        if target is not None:
            ceiling, asked = record.spec.maximum_workers, target.maximum
            if ceiling is not None and asked > ceiling:
                message = f"{asked} workers requested; the profile allows {ceiling}."
                hint = f"Ask for {ceiling} or fewer."
                raise errors.LimitReached(message, hint=hint, detail="target")
            check_memory(record.spec, asked)
            service.set_record(target=target, expired=0)
        if name is not None:
            service.set_record(name=name)

    def drop(self, key: str) -> None:
        """Give a job back with all its workers, and lower the target by as many."""
        record = self.service.record
        jobs = droppable(record)
        if key not in jobs:
            raise errors.ClusterConflict(
                f"Job {key} cannot be given back.",
                hint="It must run and not hold the scheduler; the target must be a fixed number.",
            )
        target = max(0, record.target.maximum - record.spec.worker.per_job)
        self.scale_or_rename(None, Target(target, target))
        now = time.time()
        self.service.files.events.append(Event(now, "scale", f"Ending 1: {key}", key))
        leaving = replace(jobs[key], retiring_since=now)
        jobs = {**{job.key: job for job in record.jobs}, key: leaving}
        self.service.set_record(jobs=tuple(jobs.values()))

    async def restart(self, worker: str) -> None:
        """Restart a worker; one without a nanny ends, and a new job follows its job."""
        scheduler, watch = self.service.scheduler, self.service.watch
        found = [ws.address for ws in scheduler.workers.values() if str(ws.name) == worker]
        if not found:
            raise errors.ClusterConflict(f"No worker {worker} is connected.")
        watch.restarted.add(job_of(worker))
        task = asyncio.create_task(self.restart_at(found, worker))
        self.service.restarts.add(task)
        task.add_done_callback(self.service.restarts.discard)
        await asyncio.wait({task}, timeout=RESTART_SECONDS)

    async def restart_at(self, found: list[str], worker: str) -> None:
        """Restart a worker; an error, which Dask logs, goes into the timeline."""
        try:
            await self.service.scheduler.restart_workers(
                found, wait_for_workers=False, on_error="return", stimulus_id="gpucluster-restart"
            )
        except Exception as error:
            words = f"Worker {worker} was not restarted: {error}"
            event = Event(time.time(), "restart", words, job_of(worker))
            self.service.files.events.append(event)


class Workers(Control):
    """The connected workers, one by one."""

    async def get(self) -> None:
        record = self.service.record
        jobs, per_job = droppable(record), record.spec.worker.per_job
        workers = [
            {**each, "can_be_dropped": each["job"] in jobs, "per_job": per_job}
            for each in self.service.watch.each_worker()
        ]
        self.answer({"workers": workers})


class Stop(Control):
    """Stop the cluster."""

    async def post(self) -> None:
        self.service.stop(str(self.body().get("reason", "")))  # asking twice changes nothing
        await self.on_disk()
        self.answer({"summary": self.summary()}, 202)


def install(scheduler: Scheduler, service: Service, token: str) -> None:
    """Put the gate before all of Dask's routes.

    The server listens since the `Scheduler` was made, but accepts nothing before the loop turns.
    """
    application = scheduler.http_application
    half_open = HalfOpen(most_half_open())
    half_open.guard(scheduler.http_server)
    application.add_handlers(
        r".*",
        [
            (r"/gpucluster/summary", Summary, {"service": service}),
            (r"/gpucluster/cluster", Cluster, {"service": service}),
            (r"/gpucluster/workers", Workers, {"service": service}),
            (r"/gpucluster/stop", Stop, {"service": service}),
        ],
    )
    refusal = {"status": 403, "text": "403\n"}
    application.default_router.rules[:0] = [
        application.default_router.process_rule(Rule(matcher, Refused, refusal))
        for matcher in (WithoutToken(token, half_open), FirstVisit(scheduler))
    ]
