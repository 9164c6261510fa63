"""A Dask client that knows the dashboard's way through Jupyter."""

from __future__ import annotations

from distributed import Client


class ClusterClient(Client):
    """`distributed.Client` whose dashboard link is one that a browser can open.

    The head asks every request for a token that only Jupyter's authenticated proxy adds, so the
    address that Dask knows opens nowhere.
    """

    proxied_dashboard = ""

    @property
    def dashboard_link(self) -> str | None:
        """The dashboard through Jupyter; None where there is no Jupyter around."""
        return self.proxied_dashboard or None
