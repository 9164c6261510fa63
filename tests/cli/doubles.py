"""Clusters in memory with the calls of the real ones, for what a verb says and asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

from jupyter_gpucluster.cli import perform
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.core.cluster import ENDED, Phase, Target
from jupyter_gpucluster.core.errors import (
    ClusterConflict,
    ClusterNotFound,
    RecordError,
    WaitTimeout,
)
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.core.summary import Event, WorkerCounts
from jupyter_gpucluster.launch.request import Request
from jupyter_gpucluster.state.view import ClusterView, Script
from tests import views as made
from tests.views import NOW

if TYPE_CHECKING:
    from jupyter_gpucluster.clusters import Clusters


def a_view(name: str = "alpha", phase: Phase = Phase.RUNNING, **changes: Any) -> ClusterView:
    return made.a_view(f"id-{name}", phase, **{"name": name, **changes})


class InMemoryClusters:
    """The calls of `Clusters` that verbs make; no process, no file."""

    def __init__(self, *views: ClusterView) -> None:
        self.views = {view.id: view for view in views}
        self.started: list[Request] = []
        self.on_wait: Callable[[], None] = lambda: None
        self.damage = False
        self.left: tuple[str, ...] = ()

    def live(self) -> Sequence[ClusterView]:
        return [view for view in self.list() if view.phase not in ENDED]

    def list(self, *, ended: bool = False) -> Sequence[ClusterView]:
        return [view for view in self.views.values() if ended or view.phase not in ENDED]

    def capacity(self, profile: str) -> dict[str, Any]:
        partition = {"name": "gpu", "free": 3, "total": 8, "unit": "GPUs"}
        return {"partitions": [partition], "words": "gpu: 3 of 8 GPUs free."}

    def get(self, name: str) -> ClusterView:
        for view in self.views.values():
            if name in (view.id, view.name):
                return view
        raise ClusterNotFound(f"There is no cluster named {name}.", hint="Look with list.")

    def start(self, request: Request) -> ClusterView:
        self.started.append(request)
        name = request.name or "local-1"
        view = a_view(name, Phase.STARTING, words="starting", workers=WorkerCounts(asked=2))
        self.views[view.id] = view
        return view

    def update(self, name: str, *, target: Target) -> ClusterView:
        return self._change(name, target=target)

    def stop(self, name: str, *, force: bool = False, reason: str = "") -> ClusterView:
        if force:
            return self._change(name, phase=Phase.STOPPED, words="stopped")
        return self._change(name, phase=Phase.STOPPING, words="stopping")

    def forget(self, name: str, *, force: bool = False) -> str:
        view = self.get(name)
        if view.phase not in ENDED:
            raise ClusterConflict(f"Cluster {view.name} has not ended.")
        del self.views[view.id]
        return "Nothing proves the end of job 7." if force else ""

    def wait_ready(
        self, name: str, *, timeout: float | None = None, progress: Callable[[ClusterView], None]
    ) -> ClusterView:
        progress(self.get(name))
        self.on_wait()
        if timeout == 0:
            raise WaitTimeout(f"Cluster {self.get(name).name} is not ready after 0 s: starting.")
        ready = {"words": "2 of 2 workers ready", "workers": WorkerCounts(asked=2, ready=2)}
        view = self._change(name, phase=Phase.RUNNING, **ready)
        progress(view)
        return view

    def wait_stopped(
        self, name: str, *, timeout: float | None = None, progress: Callable[[ClusterView], None]
    ) -> ClusterView:
        progress(self.get(name))
        self.on_wait()
        if timeout == 0:
            raise WaitTimeout(f"Cluster {self.get(name).name} is not stopped after 0 s: stopping.")
        view = self._change(name, phase=Phase.STOPPED, words="stopped")
        progress(view)
        return view

    def left_jobs(self, name: str) -> Sequence[str]:
        self.get(name)
        return self.left

    def jobs(self, name: str) -> Sequence[Job]:
        self.get(name)
        return (
            Job("gpc-alpha-1", 0, JobState.RUNNING, id="4711", nodes=("node1",), started=NOW),
            Job("gpc-alpha-1", 1, JobState.PENDING, id="4712", reason="Waits for a free GPU."),
        )

    def events(self, name: str) -> Sequence[Event]:
        self.get(name)
        return (Event(NOW, "phase", "running"),)

    def logs(self, name: str, job: str = "", *, lines: int = 500) -> str:
        return f"{lines} lines of {job or 'all'}\n"

    def why(self, name: str) -> str:
        return f"{self.get(name).name} waits for a free GPU."

    def client_code(self, name: str) -> dict[str, str]:
        self.get(name)
        return {"connect": "a\n\nb", "magic": "c", "dask": "d"}

    def script(self, request: Request) -> Script:
        return Script(f"#!/bin/sh\n# {request.profile}\n", "sbatch job.sh")

    def survey(self, *, ended: bool = False) -> tuple[Sequence[ClusterView], Sequence[RecordError]]:
        told = RecordError("The record of zzzzzz is damaged.", hint="Delete it.")
        return self.list(ended=ended), (told,) if ended or self.damage else ()

    def orphans(self) -> Sequence[str]:
        return ["job 99 (gpc-zzzzzz-1)"]

    def _change(self, name: str, **changes: Any) -> ClusterView:
        view = dataclasses.replace(self.get(name), **changes)
        self.views[view.id] = view
        return view


class Screen(StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, *, tty: bool = False) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


@dataclasses.dataclass
class Desk:
    """A user at a terminal: types commands, reads both streams."""

    clusters: InMemoryClusters
    tty: bool = False
    out: str = ""
    err: str = ""

    def types(self, *words: str) -> int:
        """Run a command and return its exit code."""
        out, err = Screen(tty=self.tty), Screen(tty=self.tty)
        terminal = Terminal(out=out, err=err)
        terminal.clusters = cast("Clusters", self.clusters)
        code = perform(words, terminal)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code
