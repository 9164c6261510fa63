"""Dask's scheduler as the head makes it: its settings, its addresses, its security, its dashboard.

Most of the work of an idle head is Dask's own looking around.  The settings slow down what no page
shows that often; the heartbeats of workers, and the stealing of tasks, keep Dask's pace.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping
from typing import Any

import dask
from distributed import Scheduler
from distributed.comm.addressing import get_address_host
from distributed.utils import get_ip_interface

from ..core.cluster import Spec, protocol_of
from ..host.cluster_directory import ClusterDirectory
from .worker import security_of

logger = logging.getLogger("gpucluster.head")

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


def make_scheduler(directory: ClusterDirectory, spec: Spec) -> Scheduler:
    """Return the scheduler of a cluster, which listens from now on."""
    # The scheduler makes a directory there, too, and would leave it.
    settings = {**SCHEDULER, "temporary-directory": spec.scratch}
    # A head in a job is asked from other hosts, over TLS.
    address, tls = "127.0.0.1:0", directory.tls
    if spec.in_job:
        interface = spec.scheduler_interface
        address = f"{get_ip_interface(interface)}:0" if interface else ":0"
        files = {"cert": "scheduler-cert.pem", "key": "scheduler-key.pem", "ca-file": "ca.pem"}
        for name, file in files.items():
            settings[f"distributed.scheduler.dashboard.tls.{name}"] = str(tls / file)
    with dask.config.set(settings):
        return Scheduler(
            host=spec.host or None,
            interface=spec.scheduler_interface or None if not spec.host else None,
            port=0,
            protocol=protocol_of(spec),
            dashboard=False,
            dashboard_address=address,
            security=security_of(tls, "scheduler") if spec.encrypted else None,
        )


def http_address(scheduler: Scheduler, *, in_job: bool) -> str:
    """Return where the head is asked: by other hosts if it runs in a job, else on loopback."""
    server: Any = scheduler.http_server  # distributed adds address and port
    if in_job:
        return f"https://{get_address_host(scheduler.address)}:{server.port}"
    return f"{server.address}:{server.port}"


def add_dashboard(scheduler: Scheduler) -> str:
    """Add Dask's dashboard to the HTTP server, and return why that failed, or nothing.

    Bokeh is imported only here (0.4 s, 20 MiB).
    """
    try:
        dashboard = importlib.import_module("distributed.dashboard.scheduler")
    except ImportError as error:
        logger.warning("No dashboard: %s", error)
        return " ".join(str(error).split())
    with dask.config.set(DASHBOARD):
        dashboard.connect(scheduler.http_application, scheduler.http_server, scheduler)
    return ""
