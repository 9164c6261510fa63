"""Prometheus gauges of the clusters, from the last look; a scrape waits for nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..core.cluster import Phase

if TYPE_CHECKING:
    from ..state.view import ClusterView

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
