"""The health of the installation, and figures about its clusters for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .. import __version__
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

if TYPE_CHECKING:
    from ..state.view import ClusterView
    from .async_clusters import AsyncClusters
    from .snapshot import Snapshots


PATIENCE_SECONDS = 3.0


async def check_health(clusters: AsyncClusters, snapshots: Snapshots) -> dict[str, Any]:
    """Return ``{"ok", "version", "problems"}``, each problem with message, hint and detail."""
    problems = await asyncio.to_thread(_profile_problems)
    try:
        await clusters.check_directory()
        snapshots.expire()
        views = await snapshots.latest()
        problems += [*snapshots.troubles, *(_trouble(view) for view in views if _troubled(view))]
        problems += map(_silent, await snapshots.silent(PATIENCE_SECONDS))
    except GpuClusterError as error:
        problems.append(error)
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
        "version": __version__,
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


def _silent(view: ClusterView) -> GpuClusterError:
    return HeadUnreachable(
        f"The scheduler process of cluster {view.name} does not answer.",
        hint="It may be busy, frozen or ending; read its log.",
    )


OLD_SECONDS = 10.0
"""A scrape that finds an older look asks for a new one, which the next scrape shows."""


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

    def collect(self) -> Iterator[Metric]:
        """Yield what is known; nothing before the first look."""
        views, looked = self.views, self.looked
        if looked is None or time.time() - looked > OLD_SECONDS:
            self.ask()
        if looked is None:
            return
        clusters = gauge("clusters", "Clusters, live or failed within a day, by phase", ["phase"])
        phases = Counter(view.phase for view in views)
        for phase in Phase:
            clusters.add_metric([phase.value], phases[phase])
        ready = gauge("workers_ready", "Workers that are connected")
        ready.add_metric([], sum(view.workers.ready for view in views))
        held = gauge("gpus_held", "GPUs of workers that start or run")
        workers = (view.workers for view in views if view.unit == "GPUs")
        held.add_metric([], sum(w.starting + w.ready for w in workers))
        when = gauge("look_timestamp_seconds", "When the clusters were last looked at")
        when.add_metric([], looked)
        yield from (clusters, ready, held, when)


def gauge(name: str, description: str, labels: Sequence[str] = ()) -> GaugeMetricFamily:
    """Return one of our gauges, still without figures."""
    return GaugeMetricFamily(f"jupyter_gpucluster_{name}", description, labels=labels)


GAUGES = Gauges()
REGISTRY.register(GAUGES)
