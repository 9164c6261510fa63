"""`Clusters` for event loops: the same verbs, each in a thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from ..clusters import Clusters, Progress
from ..core.cluster import Target
from ..core.errors import GpuClusterError
from ..core.job import Job
from ..core.summary import Event
from ..state.control_client import Endpoint
from ..state.view import ClusterView, JobScript, Script

R = TypeVar("R")
THREADS = 16
STARTERS = 2
"""Starts at a time: each computes for a while, and all threads of a process take turns with its
loop."""


class AsyncClusters:
    """The clusters of one user, asynchronously."""

    def __init__(self, root: Path | None = None) -> None:
        self.sync = Clusters(root)
        # Not the loop's default threads, which are few and everybody's: heads that hang, each for
        # as long as it may, must not keep Jupyter from reading its own files.
        self.threads = ThreadPoolExecutor(THREADS, "gpucluster")
        self.starters = ThreadPoolExecutor(STARTERS, "gpucluster-start")

    async def _call(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        return await self._run(self.threads, functools.partial(function, *args, **kwargs))

    async def _run(self, threads: ThreadPoolExecutor, call: Callable[[], R]) -> R:
        return await asyncio.get_running_loop().run_in_executor(threads, call)

    async def list(self, *, ended: bool = False) -> list[ClusterView]:
        """See `Clusters.list`."""
        return await self._call(self.sync.list, ended=ended)

    async def get(self, name: str) -> ClusterView:
        """See `Clusters.get`."""
        return await self._call(self.sync.get, name)

    async def check_directory(self) -> None:
        """See `Clusters.check_directory`."""
        await self._call(self.sync.check_directory)

    async def orphans(self) -> Sequence[str]:
        """See `Clusters.orphans`."""
        return await self._call(self.sync.orphans)

    async def damaged(self, *, ended: bool = True) -> Sequence[GpuClusterError]:
        """See `Clusters.damaged`."""
        return await self._call(self.sync.damaged, ended=ended)

    async def jobs(self, name: str) -> Sequence[Job]:
        """See `Clusters.jobs`."""
        return await self._call(self.sync.jobs, name)

    async def events(self, name: str) -> Sequence[Event]:
        """See `Clusters.events`."""
        return await self._call(self.sync.events, name)

    async def logs(self, name: str, job: str = "", *, lines: int = 500) -> str:
        """See `Clusters.logs`."""
        return await self._call(self.sync.logs, name, job, lines=lines)

    async def scripts(self, name: str) -> Sequence[JobScript]:
        """See `Clusters.scripts`."""
        return await self._call(self.sync.scripts, name)

    async def why(self, name: str) -> str:
        """See `Clusters.why`."""
        return await self._call(self.sync.why, name)

    async def capacity(self, profile: str) -> dict[str, Any]:
        """See `Clusters.capacity`."""
        return await self._call(self.sync.capacity, profile)

    async def client_code(self, name: str) -> dict[str, str]:
        """See `Clusters.client_code`."""
        return await self._call(self.sync.client_code, name)

    async def endpoint(self, name: str) -> Endpoint:
        """See `Clusters.endpoint`."""
        return await self._call(self.sync.endpoint, name)

    async def start(self, profile: str, **request: Any) -> ClusterView:
        """See `Clusters.start`."""
        call = functools.partial(self.sync.start, profile, **request)
        return await self._run(self.starters, call)

    async def script(self, profile: str, **request: Any) -> Script:
        """See `Clusters.script`."""
        return await self._call(self.sync.script, profile, **request)

    async def update(
        self, name: str, *, new_name: str | None = None, target: Target | None = None
    ) -> ClusterView:
        """See `Clusters.update`."""
        return await self._call(self.sync.update, name, new_name=new_name, target=target)

    async def stop(self, name: str, *, force: bool = False) -> ClusterView:
        """See `Clusters.stop`."""
        return await self._call(self.sync.stop, name, force=force)

    async def forget(self, name: str) -> None:
        """See `Clusters.forget`."""
        await self._call(self.sync.forget, name)

    async def wait_ready(
        self, name: str, *, timeout: float | None = None, progress: Progress | None = None
    ) -> ClusterView:
        """See `Clusters.wait_ready`."""
        return await self._call(self.sync.wait_ready, name, timeout=timeout, progress=progress)

    async def wait_stopped(
        self, name: str, *, timeout: float | None = None, progress: Progress | None = None
    ) -> ClusterView:
        """See `Clusters.wait_stopped`."""
        return await self._call(self.sync.wait_stopped, name, timeout=timeout, progress=progress)
