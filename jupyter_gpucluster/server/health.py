"""The health of the installation, and figures about its clusters for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from ..batch.status_cache import CALLS_PER_MINUTE
from ..core.cluster import Phase
from ..core.errors import (
    BackendUnavailable,
    GpuClusterError,
    HeadUnreachable,
    UnsuitableEnvironment,
)
from ..launch.python_environments import list_environments
from ..profiles import load_profiles
from .snapshot import NO_ANSWER, fetch_summary, is_asked

if TYPE_CHECKING:
    from ..state.view import ClusterView
    from .async_clusters import AsyncClusters


PATIENCE_SECONDS = 3.0
ASKED = 50
"""Heads asked at a time."""


async def check_health(clusters: AsyncClusters) -> dict[str, Any]:
    """Return ``{"ok", "version", "problems"}``, each problem with message, hint and detail."""
    problems = await asyncio.to_thread(_profile_problems)
    try:
        await clusters.check_directory()
        views = await clusters.list()
        problems += await clusters.damaged()
    except GpuClusterError as error:
        problems.append(error)
    else:
        problems += [_trouble(view) for view in views if _troubled(view)]
        problems += await _silent_heads(clusters, list(filter(is_asked, views)))
    if not any(e.suitable for e in await asyncio.to_thread(list_environments)):
        problems.append(
            UnsuitableEnvironment(
                "No Python here can run a cluster.",
                hint="The list of environments says what each of them lacks.",
            )
        )
    shown = [problem.as_json() for problem in problems]
    return {
        "ok": not shown,
        "version": _version(),
        "calls_per_minute": CALLS_PER_MINUTE,
        "problems": shown,
    }


def _profile_problems() -> list[GpuClusterError]:
    return [
        GpuClusterError(p.message, hint="Correct the profile.", detail=f"{p.file}:{p.line}")
        for p in load_profiles().problems
    ]


def _troubled(view: ClusterView) -> bool:
    return view.phase is Phase.UNREACHABLE or view.stale_since is not None


def _trouble(view: ClusterView) -> GpuClusterError:
    if view.phase is Phase.UNREACHABLE:
        return HeadUnreachable(f"Cluster {view.name} is unreachable. {view.reason}".strip())
    minutes = (time.time() - (view.stale_since or 0.0)) / 60
    return BackendUnavailable(
        f"The batch system of cluster {view.name} has not answered for {minutes:.0f} min.",
        hint="Nothing is lost by that; jobs are shown as they were last seen.",
    )


async def _silent_heads(
    clusters: AsyncClusters, views: Sequence[ClusterView]
) -> list[GpuClusterError]:
    """Ask each head for a sign of life; return those that gave none."""
    client = SimpleAsyncHTTPClient(force_instance=True, max_clients=ASKED)
    turns = asyncio.Semaphore(ASKED)

    async def ask(view: ClusterView) -> GpuClusterError | None:
        try:
            async with turns:
                endpoint = await clusters.endpoint(view.id)
                await fetch_summary(client, endpoint, PATIENCE_SECONDS)
        except NO_ANSWER as error:
            return HeadUnreachable(
                f"The scheduler process of cluster {view.name} does not answer.",
                hint="It may be busy, frozen or ending; read its log.",
                detail=str(error),
            )
        return None

    try:
        answers = await asyncio.gather(*map(ask, views))
    finally:
        client.close()
    return [answer for answer in answers if answer is not None]


def _version() -> str:
    try:
        return metadata.version("jupyter-gpucluster")
    except metadata.PackageNotFoundError:
        return "not installed"  # runs from a checkout on the path


OLD_SECONDS = 10.0
"""A scrape that finds an older look asks for a new one, which the next scrape shows."""


FAMILIES: tuple[tuple[str, str, list[str]], ...] = (
    ("clusters", "Clusters that are live or have failed within a day, by phase", ["phase"]),
    ("workers_ready", "Workers that are connected", []),
    ("gpus_held", "GPUs of workers that start or run", []),
    ("look_timestamp_seconds", "When the clusters were last looked at", []),
)


def families() -> list[GaugeMetricFamily]:
    """Return the gauges, still without figures."""
    return [GaugeMetricFamily(f"jupyter_gpucluster_{n}", h, labels=ls) for n, h, ls in FAMILIES]


class Gauges(Collector):
    """The figures of the last look.

    Prometheus has one registry for a process, so there is one of these, whatever servers come and
    go in it.
    """

    def __init__(self) -> None:
        self.views: Sequence[ClusterView] = ()
        self.looked: float | None = None
        self.ask: Callable[[], object] = bool
        """Asks for a look without waiting for it; called from any thread."""

    def take(self, views: Sequence[ClusterView]) -> None:
        """Take the live clusters that a look has found."""
        self.views, self.looked = views, time.time()

    def reset(self, ask: Callable[[], object] = bool) -> None:
        """Forget what another server saw; ask for looks in a new way."""
        self.views, self.looked, self.ask = (), None, ask

    def describe(self) -> Iterator[Metric]:
        """Yield names only: registering must not cause a look."""
        yield from families()

    def collect(self) -> Iterator[Metric]:
        """Yield what is known; nothing before the first look."""
        views, looked = self.views, self.looked
        if looked is None or time.time() - looked > OLD_SECONDS:
            self.ask()
        if looked is None:
            return
        clusters, ready, held, when = families()
        phases = Counter(view.phase for view in views)
        for phase in Phase:
            clusters.add_metric([phase.value], phases[phase])
        ready.add_metric([], sum(view.workers.ready for view in views))
        workers = (view.workers for view in views if view.unit == "GPUs")
        held.add_metric([], sum(w.starting + w.ready for w in workers))
        when.add_metric([], looked)
        yield from (clusters, ready, held, when)


GAUGES = Gauges()
REGISTRY.register(GAUGES)
