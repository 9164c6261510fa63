"""Whether what the extension needs is in order: profiles, the state directory, a fitting Python."""

from __future__ import annotations

import asyncio
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ..environments import list_environments
from ..errors import GpuClusterError, UnsuitableEnvironment
from ..profiles import load_profiles

if TYPE_CHECKING:
    from ..aio import AsyncClusters


async def check_health(clusters: AsyncClusters) -> dict[str, Any]:
    """Return ``{"ok", "version", "problems"}``, each problem with message, hint and detail."""
    problems = await asyncio.to_thread(_profile_problems)
    try:
        await clusters.list()
        problems += await clusters.damaged()
    except GpuClusterError as error:
        problems.append(error)
    if not any(e.suitable for e in await asyncio.to_thread(list_environments)):
        problems.append(
            UnsuitableEnvironment(
                "No Python here can run a cluster.",
                hint="The list of environments says what each of them lacks.",
            )
        )
    shown = [problem.as_json() for problem in problems]
    return {"ok": not shown, "version": _version(), "problems": shown}


def _profile_problems() -> list[GpuClusterError]:
    return [
        GpuClusterError(p.message, hint="Correct the profile.", detail=f"{p.file}:{p.line}")
        for p in load_profiles().problems
    ]


def _version() -> str:
    try:
        return metadata.version("jupyter-gpucluster")
    except metadata.PackageNotFoundError:
        return "not installed"  # runs from a checkout on the path
