"""`GPUCluster`: our clusters with the face of Dask's `Cluster`."""

from __future__ import annotations

from .cluster import GPUCluster
from .targets import Adaptation

__all__ = ["Adaptation", "GPUCluster"]
