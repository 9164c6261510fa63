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
    gone = ENDED | {Phase.STOPPING, Phase.UNREACHABLE}
    found = (v for v in views if v.scheduler_address == address and v.phase not in gone)
    return next(map(security_of, found), None)
