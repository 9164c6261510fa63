"""`Clusters` for event loops: the same methods, each in a thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..clusters import Clusters

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate["AsyncClusters", P], Coroutine[Any, Any, R]]
THREADS = 16
STARTERS = 2
"""Starts at a time: each computes for a while, and all threads of a process take turns with its
loop."""


def in_thread(
    method: Callable[Concatenate[Clusters, P], R], *, starts: bool = False
) -> Method[P, R]:
    """Return a method that runs one of `Clusters` in a thread."""

    async def call(self: AsyncClusters, /, *args: P.args, **kwargs: P.kwargs) -> R:
        threads = self.starters if starts else self.threads
        run = functools.partial(method, self.sync, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(threads, run)

    call.__doc__ = method.__doc__
    return call


class AsyncClusters:
    """The clusters of one user, asynchronously; each method is that of `Clusters`."""

    def __init__(self, root: Path | None = None) -> None:
        self.sync = Clusters(root)
        # Not the loop's default threads, which are few and everybody's: heads that hang, each for
        # as long as it may, must not keep Jupyter from reading its own files.
        self.threads = ThreadPoolExecutor(THREADS, "gpucluster")
        self.starters = ThreadPoolExecutor(STARTERS, "gpucluster-start")

    list = in_thread(Clusters.list)
    get = in_thread(Clusters.get)
    check_directory = in_thread(Clusters.check_directory)
    survey = in_thread(Clusters.survey)
    jobs = in_thread(Clusters.jobs)
    workers = in_thread(Clusters.workers)
    events = in_thread(Clusters.events)
    logs = in_thread(Clusters.logs)
    scripts = in_thread(Clusters.scripts)
    why = in_thread(Clusters.why)
    capacity = in_thread(Clusters.capacity)
    client_code = in_thread(Clusters.client_code)
    endpoint = in_thread(Clusters.endpoint)
    start = in_thread(Clusters.start, starts=True)
    script = in_thread(Clusters.script)
    update = in_thread(Clusters.update)
    stop = in_thread(Clusters.stop)
    forget = in_thread(Clusters.forget)
