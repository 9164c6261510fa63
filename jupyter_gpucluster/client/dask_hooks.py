"""Dask's own hook: certificates of our clusters for a client that knows an address only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..clusters import Clusters
from ..core.cluster import ENDED, Phase
from ..core.errors import GpuClusterError
from .connect import security_of

if TYPE_CHECKING:
    from distributed.security import Security

    from ..state.view import ClusterView


def security_for(info: Mapping[str, Any]) -> Security | None:
    """Return what a client needs for an address, None where it is of no cluster of ours.

    Dask calls it for a ``Client(address)`` without security, where its configuration
    (``distributed.client.security-loader``) names it.
    """
    address = info.get("address")
    if not (isinstance(address, str) and address.startswith("tls://")):
        return None
    try:
        views = Clusters().list()
    except GpuClusterError:
        return None  # a client of another cluster is none of our business
    found = (view for view in views if is_up(view) and view.scheduler_address == address)
    return next(map(security_of, found), None)


def is_up(view: ClusterView) -> bool:
    """Return whether a cluster's scheduler can be expected to answer."""
    gone = ENDED | {Phase.STOPPING, Phase.UNREACHABLE}
    return bool(view.scheduler_address) and view.phase not in gone
