"""Lets clusters that compute count as activity of the server, where a site has chosen so."""

from __future__ import annotations

import contextlib
from collections.abc import MutableMapping
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


async def note_activity(clusters: AsyncClusters, settings: MutableMapping[str, Any]) -> None:
    """Note the time if a cluster is busy now; if clusters cannot be listed, note nothing."""
    with contextlib.suppress(GpuClusterError):
        if any(map(is_busy, await clusters.list())):
            settings[ACTIVITY_SETTING] = datetime.now(UTC)
