"""The server extension's table of contents: its settings, what it owns and where it answers."""

from __future__ import annotations

from jupyter_server.extension.application import ExtensionApp
from traitlets import Type, default

from .api import CLUSTERS_SETTING
from .routes import ROUTES


class GpuClusterApp(ExtensionApp):
    """GPU Dask clusters in the Jupyter server.

    A cluster lives in a process of its own.  The server only looks and asks, so it has nothing to
    end when it stops: clusters go on, and the next server finds them on disk.
    """

    name = "jupyter_gpucluster"
    extension_url = "/lab"
    load_other_extensions = True

    clusters_class = Type(
        klass=object,
        help="Class with the calls of jupyter_gpucluster.aio.AsyncClusters.",
    ).tag(config=True)

    @default("clusters_class")
    def _default_clusters_class(self) -> type:
        from ..aio import AsyncClusters

        return AsyncClusters

    def initialize_settings(self) -> None:
        """Hand the handlers what they share."""
        self.settings[CLUSTERS_SETTING] = self.clusters_class()

    def initialize_handlers(self) -> None:
        """Open the routes."""
        self.handlers.extend(ROUTES)
