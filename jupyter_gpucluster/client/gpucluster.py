"""The class that users see: its parameters, its amounts, what it shows."""

from __future__ import annotations

import asyncio
import operator
import sys
from collections.abc import Awaitable, Generator, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Self

from distributed.objects import SchedulerInfo
from distributed.utils import Log, Logs

from ..core.cluster import Target
from ..core.errors import InvalidInput
from ..launch.request import Request
from .attachment import Attachment
from .connect import CONNECT_SECONDS, dashboard_link

if TYPE_CHECKING:
    from tornado.ioloop import IOLoop

    from ..state.view import ClusterView


class Adaptation:
    """The bounds that a cluster follows the load in; asynchronously it may be awaited."""

    def __init__(self, minimum: int, maximum: int, request: Awaitable[None] | None) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self._request = request

    def __await__(self) -> Generator[Any, None, Self]:
        if self._request is not None:
            yield from self._request.__await__()
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}(minimum={self.minimum}, maximum={self.maximum})"


class GPUCluster(Attachment):
    """A cluster of a profile, started and stopped from Python.

    The cluster is an ordinary one: every front end lists it, and it runs in processes of its own.

    Parameters
    ----------
    profile
        Name of the profile: the place to run.
    workers
        How many workers (GPUs on a GPU profile) to keep; the profile's default where None.
    name
        A name of your own; one is made up where None.
    options
        Values of the profile's options by name.
    python
        The Python that scheduler and workers run in; this process's own where None, since client
        and workers must have the same versions.
    allocation
        Number of a batch job of yours that runs; the workers are put onto its nodes.
    adapt
        Least and greatest number of workers; the number then follows the load.
    reuse
        Use the live cluster of this name (the profile's where None) if it has the same profile,
        options, Python and number of workers; another one raises `ClusterConflict`, which names
        the difference.
    shutdown_on_close
        Whether `close`, the end of a ``with`` block and the end of this process, also by a kill,
        stop the cluster.
        With False they only let go of it, and `from_name` takes it up again.  None: True, but
        False with ``reuse``.
    timeout
        Seconds to wait for the scheduler; None = no limit.  Workers are waited for by
        `wait_for_workers`.
    asynchronous, loop
        As everywhere in Dask: with ``asynchronous=True`` the object is to be awaited.

    Raises
    ------
    GpuClusterError
        The cluster cannot be started; the message says why and how to go on.

    Examples
    --------
    >>> with GPUCluster(profile="local", workers=2) as cluster:  # doctest: +SKIP
    ...     client = cluster.get_client()
    """

    def __init__(
        self,
        profile: str = "local",
        workers: int | None = None,
        *,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        python: str | None = None,
        allocation: str | None = None,
        adapt: tuple[int, int] | None = None,
        reuse: bool = False,
        shutdown_on_close: bool | None = None,
        timeout: float | None = None,
        asynchronous: bool = False,
        loop: IOLoop | None = None,
    ) -> None:
        if shutdown_on_close is None:
            shutdown_on_close = not reuse
        request = Request(
            profile,
            name=name,
            target=first_target(workers, adapt),
            options=options or {},
            python=python or sys.executable,
            reuse=reuse,
            owned=shutdown_on_close,
            allocation=allocation or "",
        )
        self._attach(
            lambda clusters: clusters.start(request),
            started_here=not reuse,
            shutdown_on_close=shutdown_on_close,
            timeout=timeout,
            asynchronous=asynchronous,
            loop=loop,
        )

    @classmethod
    def from_name(
        cls,
        name: str,
        *,
        shutdown_on_close: bool = False,
        timeout: float | None = CONNECT_SECONDS,
        asynchronous: bool = False,
        loop: IOLoop | None = None,
    ) -> Self:
        """Return the face of a cluster that exists, whoever started it.

        Parameters
        ----------
        name
            Name or id of the cluster.
        shutdown_on_close, timeout, asynchronous, loop
            As for the class; the cluster goes on after `close` unless told otherwise.

        Raises
        ------
        ClusterNotFound, ClusterConflict, WaitTimeout
            It does not exist, has ended, or its scheduler was not up in time.
        """
        self = cls.__new__(cls)
        self._attach(
            lambda clusters: clusters.get(name),
            started_here=False,
            shutdown_on_close=shutdown_on_close,
            timeout=timeout,
            asynchronous=asynchronous,
            loop=loop,
        )
        return self

    # Amounts.

    def scale(self, n: int) -> Awaitable[None] | None:
        """Keep ``n`` workers from now on; workers that leave hand over their results first.

        Returns once the head knows; see `wait_for_workers`.  Asynchronously the answer may be
        awaited.
        """
        return self._set_target(fixed(n, "scale"))

    def adapt(self, minimum: int = 0, maximum: int | None = None) -> Adaptation:
        """Let the number of workers follow the load.

        Parameters
        ----------
        minimum, maximum
            Bounds of the number; ``maximum`` is the profile's limit where None.
        """
        greatest = self._current.maximum_workers if maximum is None else maximum
        if greatest is None:
            raise InvalidInput(
                "adapt needs a maximum: the profile sets no limit.", detail="target.maximum"
            )
        target = Target(number(minimum, "minimum"), number(greatest, "maximum"))
        return Adaptation(target.minimum, target.maximum, self._set_target(target))

    def _set_target(self, target: Target) -> Awaitable[None] | None:
        self._refuse_closed()
        if not self.asynchronous:
            self.sync(self._update, target)
            return None
        # A task, since dask-labextension and Dask's widget do not await the answer.
        request = asyncio.ensure_future(self._update(target))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        return request

    async def _update(self, target: Target) -> None:
        self._view = await asyncio.to_thread(self._clusters.update, self.id, target=target)

    def wait_for_workers(self, n_workers: int, timeout: float | None = None) -> Any:
        """Wait until so many workers are here, at most ``timeout`` seconds."""
        self._refuse_closed()
        return super().wait_for_workers(n_workers, timeout)

    @property
    def plan(self) -> set[Any]:
        """Names of the workers that are here; which will come, only the head knows."""
        return set(self.observed)

    requested = plan

    # Looking.

    @property
    def view(self) -> ClusterView:
        """All that is known about the cluster now, as the other front ends show it."""
        self._view = self._clusters.get(self.id)
        return self._view

    @property
    def dashboard_link(self) -> str:
        """The dashboard's link through the Jupyter server around this process.

        Empty outside Jupyter: the head wants a token with each request, which no browser sends.
        """
        return dashboard_link(self._view) if self._view is not None else ""

    def logs(self, job: str = "", *, lines: int = 500) -> str:
        """Return what head and workers wrote, also of workers that are gone.

        Parameters
        ----------
        job
            Only this job's.
        lines
            How many of the last lines of each log.
        """
        return self._clusters.logs(self.id, job, lines=lines)

    async def _get_logs(
        self, cluster: bool = True, scheduler: bool = True, workers: Any = True
    ) -> Logs:
        logs: Logs = await super()._get_logs(cluster=False, scheduler=scheduler, workers=workers)
        if cluster:
            events = await asyncio.to_thread(self._clusters.events, self.id)
            timeline = Log("\n".join(event.message for event in events))
            logs = Logs({"Cluster": timeline, **logs})
        return logs

    def _scaling_status(self) -> str:
        rows = status_rows(self._view, self.dashboard_link) if self._view is not None else ""
        return f"<table>{rows}</table>"

    def _repr_html_(self, cluster_status: Any = None) -> str:
        if self._view is None or not isinstance(self.scheduler_info, SchedulerInfo):
            return "<p>The cluster has not been started yet.</p>"
        rows = status_rows(self._view, self.dashboard_link)
        html: str = super()._repr_html_(cluster_status=cluster_status or rows)
        return html


# Numbers of workers as callers of Dask give them.


def first_target(workers: int | None, adapt: tuple[int, int] | None) -> Target | None:
    """Return what a new cluster is asked for; None leaves it to the profile."""
    if adapt is not None:
        if workers is not None:
            raise InvalidInput("Give workers or adapt, not both.", detail="target")
        minimum, maximum = adapt
        return Target(number(minimum, "adapt"), number(maximum, "adapt"))
    return None if workers is None else fixed(workers, "workers")


def fixed(count: int, name: str) -> Target:
    """Return the target of a fixed number."""
    return Target(number(count, name), number(count, name))


def number(value: object, name: str) -> int:
    """Return a number of workers, NumPy's integers included; raises `InvalidInput`."""
    try:
        count = operator.index(value)  # type: ignore[arg-type]  # whether it fits is the question
    except TypeError:
        count = -1
    if count < 0 or isinstance(value, bool):
        raise InvalidInput(f"{name} takes a whole number of workers, not {value!r}.")
    return count


# Rows that a cluster adds to Dask's HTML.


def status_rows(view: ClusterView, dashboard_link: str) -> str:
    """Return table rows; everything in them is escaped."""
    return "".join(
        f'<tr><td colspan="2" style="text-align: left;"><strong>{escape(name)}:</strong> '
        f"{escape(value)}</td></tr>"
        for name, value in _facts(view, dashboard_link)
    )


def _facts(view: ClusterView, dashboard_link: str) -> Iterator[tuple[str, str]]:
    target = view.target
    yield "Profile", view.title or view.profile
    if target.adaptive:
        yield f"Requested ({view.unit})", f"{target.minimum} to {target.maximum}, with the load"
    else:
        yield f"Requested ({view.unit})", str(target.maximum)
    if not view.encrypted:
        yield "Warning", "not encrypted"
    if view.simulated:
        yield "Warning", "simulated"
    if not dashboard_link:
        # The head wants a token with each request, which Jupyter's proxy adds and no browser has.
        yield "How to open the dashboard", "through JupyterLab, from the list of clusters"
