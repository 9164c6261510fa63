"""What the head sets in Dask: which pages it serves, and how seldom it looks for nothing.

Most of what an idle head computes is Dask's own looking around.  Here is set what nobody reads that
often; what workers tell, and the stealing of tasks, keep Dask's pace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROUTES = [
    "distributed.http.scheduler.json",
    "distributed.http.health",
    "distributed.http.scheduler.info",
    "distributed.http.statics",
]
"""Dask's pages; left out: its proxy to any host, Prometheus and the API that closes workers."""
SCHEDULER: Mapping[str, Any] = {
    "distributed.scheduler.http.routes": ROUTES,
    # A worker that comes back under a lost worker's name must not wait for it.
    "distributed.scheduler.worker-ttl": "5 minutes",
    # Dask wakes up fifty times a second to see whether its loop is blocked, and looks at the
    # machine twice, though only the dashboard's page of the scheduler's own load shows that.
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.tick.cycle": "5s",
    "distributed.admin.system-monitor.interval": "5s",
}
BOKEH = "distributed.scheduler.dashboard.bokeh-application"
DASHBOARD: Mapping[str, Any] = {
    # Who asks is known by the token; the address is the proxy's.
    f"{BOKEH}.allow_websocket_origin": ["*"],
    # From the first page on, also when nobody looks any more; Dask does both twice a second.
    f"{BOKEH}.keep_alive_milliseconds": 10_000,
    f"{BOKEH}.check_unused_sessions_milliseconds": 2_000,
    # For so long it draws a page that no browser has come back for; one that is later gets another.
    f"{BOKEH}.unused_session_lifetime_milliseconds": 10_000,
}
"""Read when the dashboard is made, which is at its first page."""
