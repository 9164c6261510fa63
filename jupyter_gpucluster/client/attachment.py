"""A Dask `Cluster` that starts or finds one of ours, and stops it or lets go of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import weakref
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from distributed.core import Status, rpc
from distributed.security import Security

from ..clusters import Clusters
from ..core.cluster import ENDED
from ..core.errors import ClusterConflict, ClusterNotFound, GpuClusterError, WaitTimeout
from ..host.cluster_directory import ClusterDirectory
from ..state.external import check_scheduler
from .connect import answer_seconds, check_protocol, has_scheduler, security_of, silent, too_late

if TYPE_CHECKING:
    from tornado.ioloop import IOLoop

    from ..state.view import ClusterView

    # Half of Dask's class is untyped, and its own subclasses answer more than it declares.
    Cluster: Any
else:
    from distributed.deploy.cluster import Cluster

CLOSE_SECONDS = 30.0
"""Time limit of `close`; a batch system may take longer, the head then waits for it."""
LOOK_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 2.0


class Attachment(Cluster):  # type: ignore[misc]  # see above
    """Dask's connection to a cluster, from finding or starting it to its end."""

    def _attach(
        self,
        find: Callable[[Clusters], ClusterView],
        *,
        started_here: bool,
        shutdown_on_close: bool,
        timeout: float | None,
        asynchronous: bool,
        loop: IOLoop | None,
    ) -> None:
        """Set everything up, and unless asynchronous wait until the scheduler is there.

        Parameters
        ----------
        find
            Starts a cluster, or finds one.
        started_here
            Whether `find` starts it, so that nothing of it may be left where that fails.
        shutdown_on_close, timeout, asynchronous, loop
            As for `GPUCluster`.
        """
        self._find = find
        self._started_here = started_here
        self._clusters = Clusters()
        self._view: ClusterView | None = None
        self._timeout = timeout
        self._opening: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self.shutdown_on_close = shutdown_on_close
        self.security: Security | None = None
        super().__init__(asynchronous=asynchronous, loop=loop)
        if not asynchronous:
            self._loop_runner.start()
            try:
                self.sync(self._start)
            except BaseException:  # also Ctrl-C, which does not wait for the loop to clean up
                with contextlib.suppress(TimeoutError):
                    self._loop_runner.stop()
                if self._finalizer is not None and self._started_here:
                    self._finalizer()
                self.status = Status.closed
                raise

    # Starting.

    def __await__(self) -> Generator[Any, None, Self]:
        async def opened() -> Self:
            await self._start()
            return self

        return opened().__await__()

    async def _start(self) -> None:
        self._refuse_closed()
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_once())
        try:
            await asyncio.shield(self._opening)
        except asyncio.CancelledError:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            raise

    def _refuse_closed(self) -> None:
        if self.status in (Status.closing, Status.closed, Status.failed):
            hint = "Start another one, or connect to one that runs: GPUCluster.from_name(NAME)"
            raise ClusterConflict(f"This {type(self).__name__} is closed.", hint=hint)

    async def _open_once(self) -> None:
        self.status = Status.starting
        # No cancellation stops a thread: what it starts is taken care of there, and waited for.
        finding = asyncio.ensure_future(asyncio.to_thread(self._find_and_adopt))
        try:
            view = await self._scheduler_up(await asyncio.shield(finding))
            self._view = view
            await asyncio.to_thread(check_scheduler, ClusterDirectory(Path(view.directory)))
            await asyncio.to_thread(check_protocol, view)
            self.security = security_of(view) or Security()
            self.scheduler_comm = rpc(
                view.scheduler_address, connection_args=self.security.get_connection_args("client")
            )
            try:
                async with asyncio.timeout(answer_seconds(self._timeout)):
                    await super()._start()
            except OSError as error:
                raise silent(view, error) from error
            self.name = view.name  # the scheduler may remember an older one
        except BaseException:  # cancelled or failed: nothing that was started here may go on
            await asyncio.wait([finding])
            await self._abandon()
            raise

    def _find_and_adopt(self) -> ClusterView:
        view = self._find(self._clusters)
        self._view = view
        self.name = view.name
        if self.shutdown_on_close:
            self._finalizer = weakref.finalize(self, _stop_at_exit, view.id, os.getpid())
        return view

    async def _scheduler_up(self, view: ClusterView) -> ClusterView:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        pause = LOOK_SECONDS
        while not has_scheduler(view):
            if deadline is not None and time.monotonic() >= deadline:
                raise too_late(view, self._timeout)
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, LONGEST_LOOK_SECONDS)  # a head may wait in a queue for hours
            view = await asyncio.to_thread(self._clusters.get, view.id)
        return view

    async def _abandon(self) -> None:
        self.status = Status.failed
        if self._view is not None and self._started_here:
            await asyncio.to_thread(self._stop, wait=False)
        await self._let_go()

    # Ending.

    def close(self, timeout: float | None = None) -> Awaitable[None] | None:
        """Stop the cluster and wait for its end, or only let go of it (``shutdown_on_close``).

        Parameters
        ----------
        timeout
            Seconds; the cluster goes on stopping by itself when they are over.
        """
        closing: Awaitable[None] | None = super().close(timeout)
        if not self.asynchronous:
            self._loop_runner.stop()
        return closing

    async def _close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close_once())
        await asyncio.shield(self._closing)

    async def _close_once(self) -> None:
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self.status == Status.closed:
            return
        if self._requests:
            await asyncio.wait(self._requests)
        self.status = Status.closing
        try:
            if self._view is not None and self.shutdown_on_close:
                await asyncio.to_thread(self._stop, wait=True)
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """Close what connects this process to the cluster."""
        if self._finalizer is not None:
            self._finalizer.detach()
        await super()._close()

    def _stop(self, *, wait: bool) -> None:
        """Ask the cluster to stop; that it has ended already is as good."""
        try:
            self._clusters.stop(self.id)
            if wait:
                self._clusters.wait_stopped(self.id, timeout=CLOSE_SECONDS)
        except (ClusterNotFound, ClusterConflict, WaitTimeout):
            return

    async def _watch_worker_status(self, comm: Any) -> None:
        await super()._watch_worker_status(comm)
        if self.status == Status.running:  # stopped by another process, or its head has died
            self.scheduler_info["workers"].clear()
            self._sync_cluster_info_task.cancel()

    # Which it is.

    @property
    def id(self) -> str:
        """The cluster's id, which no other cluster ever has."""
        return self._current.id

    @property
    def _current(self) -> ClusterView:
        if self._view is None:
            hint = "Await it: cluster = await GPUCluster(..., asynchronous=True)"
            raise ClusterConflict("The cluster has not been started yet.", hint=hint)
        return self._view


def _stop_at_exit(id: str, pid: int) -> None:
    """Ask a cluster to stop when its object or its process ends without `close`."""
    if os.getpid() != pid:  # a fork inherits the object, not the cluster
        return
    try:
        clusters = Clusters()
        if clusters.get(id).phase not in ENDED:
            clusters.stop(id)
    except GpuClusterError:
        return  # no one reads it any more; the list of clusters shows it
