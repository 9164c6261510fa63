"""The server extension's table of contents: its settings, what it owns and where it answers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

from jupyter_server.extension.application import ExtensionApp
from tornado.ioloop import PeriodicCallback
from traitlets import Bool, Type

from ..setup import Desk
from .activity import LOOK_SECONDS, note_activity
from .api import EXTENSION_SETTING
from .bodies import Models
from .health import GAUGES
from .routes import ROUTES
from .snapshot import Snapshots

if TYPE_CHECKING:
    from .async_clusters import AsyncClusters


class GpuClusterApp(ExtensionApp):
    """GPU Dask clusters in the Jupyter server.

    A cluster lives in a process of its own.  The server only looks and asks, so it has nothing to
    end when it stops: clusters go on, and the next server finds them on disk.
    """

    name = "jupyter_gpucluster"
    extension_url = "/lab"
    load_other_extensions = True

    clusters_class = Type(
        "jupyter_gpucluster.server.async_clusters.AsyncClusters",
        klass=object,
        help="Class with the calls of jupyter_gpucluster.server.async_clusters.AsyncClusters.",
    ).tag(config=True)

    busy_clusters_count = Bool(
        False,
        help="""True: a cluster that computes keeps this server from being culled for idleness.

        Clusters continue without a server, so by default they do not. What users do counts always;
        requests of open pages and dashboards never do.""",
    ).tag(config=True)

    def initialize_settings(self) -> None:
        """Hand the handlers what they share."""
        server = self.serverapp
        assert server is not None  # noqa: S101  # set long before
        self.clusters = cast("type[AsyncClusters]", self.clusters_class)()
        self.snapshots = Snapshots(self.clusters, GAUGES.take)
        self.desk = Desk()
        self.models = Models(server.base_url)
        look = functools.partial(note_activity, self.clusters, server.web_app.settings)
        self.busy = PeriodicCallback(look, LOOK_SECONDS * 1000)
        self.settings[EXTENSION_SETTING] = self
        GAUGES.reset(lambda: server.io_loop.add_callback(self.snapshots.glance))
        if self.busy_clusters_count:
            server.io_loop.add_callback(look)
            server.io_loop.add_callback(self.busy.start)

    def initialize_handlers(self) -> None:
        """Open the routes."""
        self.handlers.extend(ROUTES)

    async def stop_extension(self) -> None:
        """End what looks at clusters, not the clusters."""
        GAUGES.reset()
        self.busy.stop()
        await self.snapshots.close()
