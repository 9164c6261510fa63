"""Lets clusters that compute count as activity of the server, where a site has chosen so."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..core.cluster import ENDED, Phase
from ..core.errors import GpuClusterError

if TYPE_CHECKING:
    from ..state.view import ClusterView
    from .async_clusters import AsyncClusters

ACTIVITY_SETTING = "jupyter_gpucluster_last_activity"
"""Jupyter takes the newest of all settings with such an ending for its last activity."""
LOOK_SECONDS = 60.0


def is_busy(view: ClusterView) -> bool:
    """Tell whether a cluster computes, or waits for the workers to do so.

    One that has no time-out for idleness counts as busy for as long as it has workers.
    """
    if view.phase in ENDED | {Phase.STOPPING, Phase.UNREACHABLE}:
        return False
    idle = [clock for clock in view.clocks if clock.is_idle_timeout]
    if idle:
        return all(clock.ends is None for clock in idle)
    return view.workers.ready > 0


class BusyClusters:
    """Looks once a minute whether a cluster is busy, and notes the time if so."""

    def __init__(self, clusters: AsyncClusters, settings: MutableMapping[str, Any]) -> None:
        self.clusters = clusters
        self.settings = settings
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once."""
        try:
            views: Sequence[ClusterView] = await self.clusters.list()
        except GpuClusterError:
            return  # nothing is known, so nothing is noted
        if any(map(is_busy, views)):
            self.settings[ACTIVITY_SETTING] = datetime.now(UTC)
