"""One look at the clusters for all pages, with the figures that the heads have in memory."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from ..core.cluster import ENDED, EXISTING, TOKEN_HEADER, Phase
from ..core.errors import GpuClusterError
from ..core.serialize import from_json
from ..core.summary import Summary
from ..state.view import ClusterView, is_shown

if TYPE_CHECKING:
    from ..state.control_client import Endpoint
    from .async_clusters import AsyncClusters

FRESH_SECONDS = 1.0
"""A poll reads a snapshot of this age; a poll that finds an older one takes a new one."""
ASK_SECONDS = 1.5
"""The least time between two requests to one head."""
PATIENCE_SECONDS = 0.5
"""A snapshot waits so long for the heads; a later answer goes into the next one."""
ANSWER_SECONDS = 5.0
REST_SECONDS = 10.0
"""A head that failed to answer is asked again after this time."""
ASKED_HEADS = 200
"""The most heads that are asked; the figures of further clusters come from disk."""
AT_ONCE = 16
"""Requests at a time: more would hold the loop up for longer than 50 ms."""

NO_ANSWER = (GpuClusterError, HTTPClientError, OSError, ValueError, TypeError, KeyError)


class Snapshots:
    """Takes a snapshot when a page asks and the last one is old; runs nothing in between.

    Parameters
    ----------
    clusters
        The clusters to look at.
    taken
        Called with the clusters that are live, or failed within a day.
    """

    def __init__(
        self, clusters: AsyncClusters, taken: Callable[[Sequence[ClusterView]], None]
    ) -> None:
        self.clusters = clusters
        self.taken = taken
        self.troubles: Sequence[GpuClusterError] = ()
        """Clusters that the last look could not read."""
        self._views: Sequence[ClusterView] = ()
        self._taken = self._asked = float("-inf")
        self._expired = float("-inf")
        self._lock = asyncio.Lock()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._client: SimpleAsyncHTTPClient | None = None
        self._answers: dict[str, Summary] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, float] = {}

    async def latest(self) -> Sequence[ClusterView]:
        """Return all clusters, ended ones too, as they were at most a second ago."""
        async with self._lock:
            clock = asyncio.get_running_loop().time
            if self._expired >= self._taken:
                await self._take()
            elif clock() - self._taken > FRESH_SECONDS:
                await asyncio.sleep(self._asked + ASK_SECONDS - clock())
                await self._take()
            return self._views

    def expire(self) -> None:
        """Take a new snapshot at the next request: a user has changed a cluster."""
        self._expired = asyncio.get_running_loop().time()

    async def glance(self) -> None:
        """Look at the live clusters on disk."""
        with contextlib.suppress(GpuClusterError):
            self.taken(await self.clusters.list())

    async def silent(self, seconds: float) -> Sequence[ClusterView]:
        """Return the clusters whose heads have not answered, at the latest after some seconds."""
        views = await self.latest()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        silent = self._resting.keys() - self._answers.keys() | self._tasks.keys()
        silent &= {*asked_ids(views)}
        return [view for view in views if view.id in silent]

    async def close(self) -> None:
        """End the requests to heads."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            self._client.close()

    async def _take(self) -> None:
        begun = asyncio.get_running_loop().time()
        seen, self.troubles = await self.clusters.survey(ended=True)
        asked = asked_ids(seen)
        if asked and begun - self._asked >= ASK_SECONDS:
            self._asked = begun
            await self._ask(asked)
        self._views = [with_figures(view, self._answers.get(view.id)) for view in seen]
        self._taken = begun
        self.taken([view for view in self._views if is_shown(view.phase, view.phase_since)])

    async def _ask(self, ids: Sequence[str]) -> None:
        for known in (self._answers, self._endpoints, self._resting):
            for gone in known.keys() - set(ids):
                del known[gone]
        due = [i for i in ids if self._resting.get(i, 0.0) <= self._asked and i not in self._tasks]
        for cluster_id in due:
            task = asyncio.create_task(self._ask_head(cluster_id))
            self._tasks[cluster_id] = task
            task.add_done_callback(functools.partial(self._drop, cluster_id))
        if due:
            await asyncio.wait([self._tasks[i] for i in due], timeout=PATIENCE_SECONDS)

    def _drop(self, cluster_id: str, _: asyncio.Task[None]) -> None:
        del self._tasks[cluster_id]

    async def _ask_head(self, cluster_id: str) -> None:
        if self._client is None:
            self._client = SimpleAsyncHTTPClient(force_instance=True, max_clients=AT_ONCE)
        try:
            endpoint = self._endpoints.get(cluster_id)
            if endpoint is None:
                endpoint = await self.clusters.endpoint(cluster_id)
                self._endpoints[cluster_id] = endpoint
            async with self._turns:
                self._answers[cluster_id] = await fetch_summary(self._client, endpoint)
        except NO_ANSWER:
            self._answers.pop(cluster_id, None)
            self._endpoints.pop(cluster_id, None)
            self._resting[cluster_id] = asyncio.get_running_loop().time() + REST_SECONDS


async def fetch_summary(client: SimpleAsyncHTTPClient, endpoint: Endpoint) -> Summary:
    """Ask a head for its summary.

    Raises
    ------
    HTTPClientError, OSError, ValueError, TypeError, KeyError
        It does not answer, or not as heads do.
    """
    request = HTTPRequest(
        endpoint.url("/gpucluster/summary?figures=1"),
        headers={TOKEN_HEADER: endpoint.token},
        connect_timeout=ANSWER_SECONDS,
        request_timeout=ANSWER_SECONDS,
        follow_redirects=False,
        ssl_options=endpoint.tls(),
    )
    answer = json.loads((await client.fetch(request)).body)
    return from_json(Summary, answer["summary"])


def with_figures(view: ClusterView, summary: Summary | None) -> ClusterView:
    """Return a view with its head's answer, unless the disk is newer or says that it has ended."""
    if summary is None or summary.phase in ENDED or summary.revision < view.revision:
        return view
    return dataclasses.replace(view, **vars(summary))


def is_asked(view: ClusterView) -> bool:
    """Tell whether a cluster has a head that can answer."""
    there = bool(view.scheduler_address) and view.backend != EXISTING
    return there and view.phase not in ENDED | {Phase.UNREACHABLE}


def asked_ids(views: Sequence[ClusterView]) -> Sequence[str]:
    """Return the clusters whose heads are asked."""
    return [view.id for view in views if is_asked(view)][:ASKED_HEADS]
