"""A cluster as front ends see it, for tests that need no cluster."""

from __future__ import annotations

from typing import Any

from jupyter_gpucluster.core.cluster import ENDED, Phase, Target
from jupyter_gpucluster.core.summary import WorkerCounts
from jupyter_gpucluster.state.view import ClusterView

NOW = 1_700_000_000.0


def a_view(cluster_id: str, phase: Phase, **changes: Any) -> ClusterView:
    """Return a view of two workers on this machine, with the given fields changed."""
    fields: dict[str, Any] = {
        "id": cluster_id,
        "name": cluster_id,
        "profile": "local",
        "title": "This machine",
        "backend": "local",
        "phase": phase,
        "words": "2 of 2 workers ready",
        "reason": "",
        "phase_since": NOW,
        "created": NOW,
        "ended": NOW if phase in ENDED else None,
        "revision": 3,
        "written": NOW,
        "unit": "workers",
        "target": Target(2, 2),
        "workers": WorkerCounts(asked=2, ready=2),
        "maximum_workers": 8,
        "threads": 2,
        "memory_used": 1_000,
        "memory_limit": 2_000_000_000,
        "encrypted": True,
        "simulated": False,
        "scheduler_address": "tls://127.0.0.1:40001",
        "python": "/usr/bin/python3",
        "environment": "",
        "survives": True,
        "survival": "",
        "options": {},
        "directory": f"/home/ada/clusters/{cluster_id}",
    }
    return ClusterView(**fields | changes)
