"""Watches clusters while somebody wants to know: one long request to each live head, and a look."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from ..core.cluster import ENDED, EXISTING, TOKEN_HEADER, Phase
from ..core.errors import GpuClusterError
from .events import PAUSE_SECONDS

if TYPE_CHECKING:
    from ..state.control_client import Endpoint
    from ..state.view import ClusterView
    from .async_clusters import AsyncClusters
    from .events import Hints

INTEREST_SECONDS = 600.0
"""For so long after a request somebody wants to know; a hidden page asks a little more often."""
DEAF_SECONDS = 60.0
"""The same where nobody heard the last hint: who only polls needs none."""
LOOK_SECONDS = 5.0
"""Between two looks at the directory of clusters, which over NFS tells of nothing by itself."""
BREATH_SECONDS = 0.2
"""Between two looks at the least, however many heads have news."""
SPREAD_SECONDS = 0.05
"""Between the first requests to two heads, so that hundreds do not all answer at one time."""
WAIT_SECONDS = 25.0
"""How long a head may have nothing to tell; less than the head's own maximum."""
ANSWER_SECONDS = 10.0
FOLLOWED = 200
"""Heads that are asked at a time; of any others the looks tell."""

State = tuple[int, Phase]


class Watch:
    """Compares what is with what was, and hints at what differs.

    Nothing runs before somebody first asks, nor when nobody has asked for a while.

    Parameters
    ----------
    clusters
        The clusters to look at.
    hints
        Where to tell it.
    looked
        Called with the live clusters after each look.
    """

    def __init__(
        self,
        clusters: AsyncClusters,
        hints: Hints,
        looked: Callable[[Sequence[ClusterView]], None],
    ) -> None:
        self.clusters = clusters
        self.hints = hints
        self.looked = looked
        self.known: dict[str, State] | None = None
        self._wanted = 0.0
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()

    def want(self, *, now: bool = False) -> None:
        """Say that somebody wants to know; with ``now`` that something has just been changed."""
        self._wanted = asyncio.get_running_loop().time()
        if now:
            self._changed.set()
        if self._task is None or self._task.done():
            self.hints.heard = True
            self._task = asyncio.create_task(self._run())

    @property
    def wanted(self) -> bool:
        """Whether somebody still wants to know."""
        passed = asyncio.get_running_loop().time() - self._wanted
        return passed < (INTEREST_SECONDS if self.hints.heard else DEAF_SECONDS)

    async def close(self) -> None:
        """Stop watching."""
        tasks = [task for task in (self._task, *self._followers.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.hints.close()

    async def _run(self) -> None:
        client = SimpleAsyncHTTPClient(force_instance=True, max_clients=FOLLOWED)
        try:
            while self.wanted:
                self._changed.clear()
                await self._look(client)
                await asyncio.sleep(BREATH_SECONDS)
                # Python 3.11's wait_for forgets a cancellation that comes with what it waits for.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._changed.wait()
        finally:
            for follower in self._followers.values():
                follower.cancel()
            await asyncio.gather(*self._followers.values(), return_exceptions=True)
            self._followers.clear()
            client.close()
            self.known = None

    async def glance(self) -> None:
        """Look at the clusters without watching them, unless they are watched anyway."""
        if self._task is None or self._task.done():
            with contextlib.suppress(GpuClusterError):
                self.looked(await self.clusters.list())

    async def _look(self, client: SimpleAsyncHTTPClient) -> None:
        try:
            views = await self.clusters.list()
        except GpuClusterError:
            return  # `health` says so, and pages see it by themselves
        self.looked(views)
        found = {view.id: (view.revision, view.phase) for view in views}
        for cluster_id, revision in differences(self.known, found):
            self.hints.tell(cluster_id, revision)
        self.known = found
        for view in views:
            if is_followed(view) and len(self._followers) < FOLLOWED:
                self._follow(client, view.id, view.revision)

    def _follow(self, client: SimpleAsyncHTTPClient, cluster_id: str, revision: int) -> None:
        if cluster_id not in self._followers:
            task = asyncio.create_task(self._wait_for_news(client, cluster_id, revision))
            self._followers[cluster_id] = task
            task.add_done_callback(lambda _: self._followers.pop(cluster_id, None))

    async def _wait_for_news(
        self, client: SimpleAsyncHTTPClient, cluster_id: str, revision: int
    ) -> None:
        """Look whenever a head has news; end with the head, whose cluster the looks go on with."""
        with contextlib.suppress(GpuClusterError, HTTPClientError, OSError, ValueError):
            async with self._turn:
                endpoint = await self.clusters.endpoint(cluster_id)
                await asyncio.sleep(SPREAD_SECONDS)
            while True:
                newest = await newest_revision(client, endpoint, revision)
                if newest > revision:
                    revision = newest
                    self._changed.set()
                    await asyncio.sleep(PAUSE_SECONDS)
        self._changed.set()
        # A head that closes, or is frozen, is asked again when it may have come to something.
        await asyncio.sleep(LOOK_SECONDS)


def differences(
    before: Mapping[str, State] | None, now: Mapping[str, State]
) -> list[tuple[str, int]]:
    """Return ids and revisions of what has changed; of the first look everything is old.

    A page does not ask for a revision that it has.  So the revision of a cluster that has gone
    from the list, or whose head nobody can tell of any more, is told one higher.
    """
    if before is None:
        return []
    told = []
    for cluster_id, (revision, phase) in now.items():
        old = before.get(cluster_id)
        if old is None or revision != old[0]:
            told.append((cluster_id, revision))
        elif phase is not old[1]:
            told.append((cluster_id, revision + 1))
    gone = before.keys() - now.keys()
    return [*told, *((cluster_id, before[cluster_id][0] + 1) for cluster_id in sorted(gone))]


def is_followed(view: ClusterView) -> bool:
    """Tell whether there is a head to ask."""
    there = bool(view.scheduler_address) and view.backend != EXISTING
    return there and view.phase not in ENDED | {Phase.UNREACHABLE}


async def newest_revision(
    client: SimpleAsyncHTTPClient,
    endpoint: Endpoint,
    after: int,
    *,
    wait: float = WAIT_SECONDS,
    patience: float = ANSWER_SECONDS,
) -> int:
    """Return a head's revision: as soon as it is newer than one known, or after a wait.

    Parameters
    ----------
    after
        The revision known; -1 where none is.
    wait, patience
        Seconds that a head may have nothing to tell, and after which more it is taken for silent.

    Raises
    ------
    HTTPClientError, OSError, ValueError
        It does not answer, or not as heads do.
    """
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    request = HTTPRequest(
        f"{endpoint.scheme}://{host}:{endpoint.port}"
        f"/gpucluster/summary?brief=1&after={after}&timeout={wait:g}",
        headers={TOKEN_HEADER: endpoint.token},
        connect_timeout=patience,
        request_timeout=wait + patience,
        follow_redirects=False,
        ssl_options=endpoint.tls(),
    )
    answer = json.loads((await client.fetch(request)).body)
    # A head of the version before this one answers everything.
    return int(answer["revision"] if "revision" in answer else answer["summary"]["revision"])
