"""The health of the installation: profiles, state directory, a fitting Python, heads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tornado.simple_httpclient import SimpleAsyncHTTPClient

from ..batch.status_cache import CALLS_PER_MINUTE
from ..core.cluster import Phase
from ..core.errors import (
    BackendUnavailable,
    GpuClusterError,
    HeadUnreachable,
    UnsuitableEnvironment,
)
from ..launch.python_environments import list_environments
from ..profiles import load_profiles
from .snapshot import NO_ANSWER, fetch_summary, is_asked

if TYPE_CHECKING:
    from ..state.view import ClusterView
    from .async_clusters import AsyncClusters

PATIENCE_SECONDS = 3.0
ASKED = 50
"""Heads asked at a time."""


async def check_health(clusters: AsyncClusters) -> dict[str, Any]:
    """Return ``{"ok", "version", "problems"}``, each problem with message, hint and detail."""
    problems = await asyncio.to_thread(_profile_problems)
    try:
        await clusters.check_directory()
        views = await clusters.list()
        problems += await clusters.damaged()
    except GpuClusterError as error:
        problems.append(error)
    else:
        problems += [_trouble(view) for view in views if _troubled(view)]
        problems += await _silent_heads(clusters, list(filter(is_asked, views)))
    if not any(e.suitable for e in await asyncio.to_thread(list_environments)):
        problems.append(
            UnsuitableEnvironment(
                "No Python here can run a cluster.",
                hint="The list of environments says what each of them lacks.",
            )
        )
    shown = [problem.as_json() for problem in problems]
    return {
        "ok": not shown,
        "version": _version(),
        "calls_per_minute": CALLS_PER_MINUTE,
        "problems": shown,
    }


def _profile_problems() -> list[GpuClusterError]:
    return [
        GpuClusterError(p.message, hint="Correct the profile.", detail=f"{p.file}:{p.line}")
        for p in load_profiles().problems
    ]


def _troubled(view: ClusterView) -> bool:
    return view.phase is Phase.UNREACHABLE or view.stale_since is not None


def _trouble(view: ClusterView) -> GpuClusterError:
    if view.phase is Phase.UNREACHABLE:
        return HeadUnreachable(f"Cluster {view.name} is unreachable. {view.reason}".strip())
    minutes = (time.time() - (view.stale_since or 0.0)) / 60
    return BackendUnavailable(
        f"The batch system of cluster {view.name} has not answered for {minutes:.0f} min.",
        hint="Nothing is lost by that; jobs are shown as they were last seen.",
    )


async def _silent_heads(
    clusters: AsyncClusters, views: Sequence[ClusterView]
) -> list[GpuClusterError]:
    """Ask each head for a sign of life; return those that gave none."""
    client = SimpleAsyncHTTPClient(force_instance=True, max_clients=ASKED)
    turns = asyncio.Semaphore(ASKED)

    async def ask(view: ClusterView) -> GpuClusterError | None:
        try:
            async with turns:
                endpoint = await clusters.endpoint(view.id)
                await fetch_summary(client, endpoint, PATIENCE_SECONDS)
        except NO_ANSWER as error:
            return HeadUnreachable(
                f"The head of cluster {view.name} does not answer.",
                hint="It may be busy or frozen, or just ending; look at its log.",
                detail=str(error),
            )
        return None

    try:
        answers = await asyncio.gather(*map(ask, views))
    finally:
        client.close()
    return [answer for answer in answers if answer is not None]


def _version() -> str:
    try:
        return metadata.version("jupyter-gpucluster")
    except metadata.PackageNotFoundError:
        return "not installed"  # runs from a checkout on the path
