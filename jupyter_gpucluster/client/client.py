"""A Dask client that knows the dashboard's way through Jupyter."""

from __future__ import annotations

import asyncio

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

    async def _ensure_connected(self, timeout: float | None = None) -> None:
        # Dask itself waits without end for one that takes the connection and says nothing: without
        # encryption that is how a frozen scheduler looks.
        async with asyncio.timeout(timeout):
            await super()._ensure_connected(timeout=timeout)  # type: ignore[no-untyped-call]
