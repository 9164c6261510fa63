"""Clusters in memory with the calls of the real ones, and a head's HTTP side that tells all."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from tornado import web, websocket

from jupyter_gpucluster.core.cluster import ENDED, Phase, Target
from jupyter_gpucluster.core.errors import (
    ClusterConflict,
    ClusterNotFound,
    GpuClusterError,
    HeadUnreachable,
    InvalidInput,
    ProfileNotFound,
    RecordError,
)
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.core.summary import Clock, Event
from jupyter_gpucluster.launch.request import Request
from jupyter_gpucluster.state.control_client import Endpoint
from jupyter_gpucluster.state.view import ClusterView, JobScript, Script
from tests import views as made

RUNNING, STOPPED, LOST, STARTING = "c-running", "c-stopped", "c-lost", "c-starting"


def a_view(cluster_id: str, phase: Phase, **changes: Any) -> ClusterView:
    address = "" if phase is Phase.STARTING else "tls://127.0.0.1:40001"
    clocks = (Clock("lifetime", 43_200.0, 1_700_043_200.0), Clock("idle", 1_800.0))
    ours = {"name": f"name of {cluster_id}", "scheduler_address": address, "clocks": clocks}
    return made.a_view(cluster_id, phase, **{**ours, **changes})


class InMemoryClusters:
    """The calls of `AsyncClusters`; no process, no file."""

    def __init__(self) -> None:
        self.views = {
            RUNNING: a_view(RUNNING, Phase.RUNNING),
            STARTING: a_view(STARTING, Phase.STARTING),
            STOPPED: a_view(STOPPED, Phase.STOPPED),
            LOST: a_view(LOST, Phase.UNREACHABLE),
        }
        self.endpoints: dict[str, Endpoint] = {}
        self.started: list[Request] = []
        self.changed: list[str] = []
        """Workers that were given back or restarted."""
        self.broken: Exception | None = None
        """Raised by `list`."""
        self.damage = False
        self.looks = 0
        self.unwritable: Exception | None = None

    async def start(self, request: Request | str, /, **fields: Any) -> ClusterView:
        assert isinstance(request, Request)
        if request.profile != "local":
            raise ProfileNotFound(
                f"There is no profile {request.profile!r}.", hint="Did you mean 'local'?"
            )
        self._check(request.target)
        self.started.append(request)
        target = request.target or Target(2, 2)
        view = a_view("c new/1", Phase.STARTING, target=target)
        self.views[view.id] = view
        return view

    async def list(self, *, ended: bool = False) -> list[ClusterView]:
        self.looks += 1
        if self.broken:
            raise self.broken
        return [v for v in self.views.values() if ended or v.phase not in ENDED]

    async def check_directory(self) -> None:
        if self.unwritable:
            raise self.unwritable

    async def survey(
        self, *, ended: bool = False
    ) -> tuple[Sequence[ClusterView], Sequence[GpuClusterError]]:
        damage = [RecordError("A record is damaged.", hint="Remove it.")] if self.damage else []
        return await self.list(ended=ended), damage

    async def get(self, name: str) -> ClusterView:
        for view in self.views.values():
            if name in (view.id, view.name):
                return view
        raise ClusterNotFound("There is no such cluster.", hint="List them.")

    async def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        target: Target | None = None,
        drop: str = "",
        restart: str = "",
        keep: bool = False,
    ) -> ClusterView:
        view = await self._alive(name)
        self.changed += [worker for worker in (drop, restart, keep and "kept") if worker]
        self._check(target)
        changed = dataclasses.replace(
            view, name=new_name or view.name, target=target or view.target
        )
        self.views[view.id] = changed
        return changed

    async def stop(self, name: str, *, force: bool = False, reason: str = "") -> ClusterView:
        view = await self._alive(name)
        phase = Phase.STOPPED if force else Phase.STOPPING
        self.views[view.id] = dataclasses.replace(view, phase=phase)
        return self.views[view.id]

    async def forget(self, name: str, *, force: bool = False) -> str:
        del self.views[(await self.get(name)).id]
        return ""

    async def jobs(self, name: str) -> Sequence[Job]:
        await self.get(name)
        return [
            Job(mark="gpc-1-1", task=0, state=JobState.RUNNING, id="17", nodes=("n1",), started=1.5)
        ]

    async def workers(self, name: str) -> Sequence[dict[str, Any]]:
        await self._alive(name)
        known = {"name": "gpc-1-1_0", "job": "gpc-1-1_0", "host": "n1", "status": "running"}
        figures = {"memory_used": 1, "memory_limit": 2, "tasks": 3, "silent": 0.5}
        return [{**known, **figures, "can_be_dropped": True, "per_job": 1}]

    async def logs(self, name: str, job: str = "", *, lines: int = 500) -> str:
        await self.get(name)
        return f"==> head.log <==\n{job} {lines}\n"

    async def events(self, name: str) -> Sequence[Event]:
        await self.get(name)
        return [Event(time=1_700_000_000.0, kind="started", message="The cluster starts.")]

    async def scripts(self, name: str) -> Sequence[JobScript]:
        await self.get(name)
        return [JobScript("gpc-1-1", "#!/bin/sh\n", "sbatch gpc-1-1.sh", 1.5)]

    async def why(self, name: str) -> str:
        await self.get(name)
        return "It runs."

    async def capacity(self, profile: str) -> dict[str, Any]:
        return {
            "partitions": [{"name": "gpu", "free": 3, "total": 8, "unit": "GPUs"}],
            "words": "gpu: 3 of 8 GPUs free.",
        }

    async def client_code(self, name: str) -> dict[str, str]:
        await self._alive(name)
        return {"connect": "connect('x')", "magic": "%gpucluster connect x", "dask": "Client('x')"}

    async def script(self, request: Request | str, /, **fields: Any) -> Script:
        assert isinstance(request, Request)
        self._check(request.target)
        if request.options:
            raise InvalidInput("There is no such option.", hint="None.", detail="options.x")
        return Script(text="#!/bin/sh\n", command="sh script.sh")

    async def endpoint(self, name: str) -> Endpoint:
        view = await self._alive(name)
        if view.phase is Phase.UNREACHABLE:
            raise HeadUnreachable("The scheduler process does not answer.")
        if view.phase is Phase.STARTING:
            raise ClusterConflict("The head has not started yet.")
        if view.id not in self.endpoints:
            raise HeadUnreachable("The scheduler process does not answer.")
        return self.endpoints[view.id]

    async def _alive(self, name: str) -> ClusterView:
        view = await self.get(name)
        if view.phase in ENDED:
            raise ClusterConflict("This cluster has ended.", hint="Start a new one.")
        return view

    def _check(self, target: Target | None) -> None:
        if target and not 1 <= target.minimum <= target.maximum <= 8:
            raise InvalidInput("From 1 to 8 workers.", detail="target")


class InMemoryDesk:
    """The calls of `Desk`; no command runs."""

    def values(self, profile: str) -> dict[str, Any]:
        return {"title": "", "asked": 0.0, "values": {}}

    def systems(self) -> list[dict[str, Any]]:
        return []

    def proposal(
        self, profile: str, *, account: str, python: str, check: bool, save: bool
    ) -> dict[str, Any]:
        return {"profile": profile, "text": "", "accounts": [], "check": None, "saved": ""}


TOKEN = "the-token-of-this-head"


class Echo(web.RequestHandler):
    """Tells what reached it; with ``to`` it redirects there."""

    def compute_etag(self) -> str:
        return '"of-the-head"'

    def get(self) -> None:
        to = self.get_query_argument("to", "")
        if to:
            self.set_status(302)
            self.set_header("Location", to)
        for name, value in (
            ("Set-Cookie", "stolen=1"),
            ("Content-Security-Policy", "frame-ancestors *"),
            ("Clear-Site-Data", '"cookies"'),
            ("Access-Control-Allow-Origin", "*"),
        ):
            self.set_header(name, value)
        self.write(
            {
                "uri": self.request.uri,
                "headers": {k.lower(): v for k, v in self.request.headers.get_all()},
            }
        )


class Figures(web.RequestHandler):
    """An answer with fewer figures than the disk has, by its revision: it changes nothing."""

    def get(self) -> None:
        view = a_view(RUNNING, Phase.RUNNING)
        names = ("id", "name", "profile", "phase", "phase_since", "reason", "words")
        known = {name: getattr(view, name) for name in names}
        self.write({"summary": {**known, "revision": 0, "written": 0.0}})


class EchoSocket(websocket.WebSocketHandler):
    """Tells what its opening brought, then repeats messages."""

    def check_origin(self, origin: str) -> bool:
        return True

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return subprotocols[0] if subprotocols else None

    async def open(self, *args: str) -> None:
        headers = {k.lower(): v for k, v in self.request.headers.get_all()}
        await self.write_message(json.dumps({"uri": self.request.uri, "headers": headers}))

    async def on_message(self, message: str | bytes) -> None:
        if message == "flood":
            for _ in range(300):  # more than the buffers of sockets take
                await self.write_message(b"x" * 100_000, binary=True)
                self.ping(b"alive?")
        await self.write_message(message, binary=isinstance(message, bytes))


class SlowSocket(EchoSocket):
    """Opens when the test says so, and says when it is closed."""

    may_open: asyncio.Event
    closed: asyncio.Event

    async def prepare(self) -> None:
        await self.may_open.wait()

    def on_close(self) -> None:
        self.closed.set()


def a_head() -> web.Application:
    """Return the HTTP side of a head without its gate: it answers whatever it is asked."""
    SlowSocket.may_open, SlowSocket.closed = asyncio.Event(), asyncio.Event()
    return web.Application(
        [
            (r"/ws", EchoSocket),
            (r"/slow", SlowSocket),
            (r"/gpucluster/summary", Figures),
            (r"/.*", Echo),
        ]
    )
