"""Commands that take a while: wait for a cluster, borrow one, stop one, end on a signal.

Ctrl-C ends only the wait.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from ..core.cluster import Target
from ..core.errors import ClusterConflict, GpuClusterError, InvalidInput
from ..core.serialize import to_json
from .arguments import Parser, seconds
from .describe import target_text
from .output import Outcome, Progress, Session, counted

if TYPE_CHECKING:
    from ..launch.request import Request
    from ..state.view import ClusterView


OVER = "The command that started it has ended."
STOP_SECONDS = 60.0
"""Wait for the end of a command's own cluster; after that the head ends it alone."""


class WaitInterrupted(GpuClusterError):
    """Ctrl-C while waiting; the cluster continues."""

    exit_code = 130  # 128 + SIGINT, as shells expect of an interrupted command


def add_wait(parser: Parser, state: str) -> None:
    """Add ``--wait [SECONDS]``."""
    words = f"wait until {state}; without SECONDS as long as it takes"
    parser.add_argument("--wait", nargs="?", metavar="SECONDS", type=seconds, help=words)


def wait_ready(
    view: ClusterView,
    wait: float | None,
    session: Session,
    meanwhile: str,
    wanted: Target | None = None,
) -> tuple[ClusterView, Outcome | None]:
    """Wait as long as ``--wait`` allows until all workers are ready.

    Parameters
    ----------
    view
        The cluster as it is before the wait.
    wait
        Seconds, infinity for no limit, None for no wait at all.
    meanwhile
        Completes the sentence about the cluster after Ctrl-C: ``continues``.
    wanted
        The requested target, if there is one.

    Returns
    -------
    The cluster as it is afterwards, and the answer of the command if the wait failed.
    """
    from ..state.waiting import is_ready

    if wait is None:
        return view, None
    error: GpuClusterError | None = None
    try:
        with session.progress() as show:
            view = session.clusters.wait_ready(
                view.id, timeout=wait, progress=until(is_ready, show)
            )
    except KeyboardInterrupt:
        error = interrupted([view.name], meanwhile, session.program)
    except GpuClusterError as failure:
        view, error = session.clusters.get(view.id), failure
    if error is None and wanted is not None and view.target != wanted:
        words = f"Cluster {view.name} has another target now: {target_text(view)}."
        error = ClusterConflict(words, hint="It was changed while this command waited.")
    if error is None:
        return view, None
    return view, Outcome({**error.as_json(), "cluster": to_json(view)}, errors=(error,))


def until(reached: Callable[[ClusterView], bool], show: Progress) -> Progress:
    """Leave out the last step of the progress, which is the result."""

    def on_the_way(view: ClusterView) -> None:
        if not reached(view):
            show(view)

    return on_the_way


def interrupted(names: Sequence[str], meanwhile: str, program: str) -> WaitInterrupted:
    """Return the error after Ctrl-C: it names the clusters that continue."""
    subject = f"cluster {names[0]}" if len(names) == 1 else f"each of {', '.join(names)}"
    hint = f"To see them: {program} list"
    return WaitInterrupted(f"No longer waiting; {subject} {meanwhile}.", hint=hint)


@contextmanager
def own_cluster(request: Request, session: Session) -> Iterator[ClusterView]:
    """Start a cluster for one command, wait for its workers, and stop it at the end."""
    view = session.clusters.start(request)
    try:
        with session.progress() as progress:
            view = session.clusters.wait_ready(view.id, progress=progress)
        yield view
    finally:
        _stop_quietly(view, session)


def _stop_quietly(view: ClusterView, session: Session) -> None:
    """Stop the cluster that a command started for itself; errors become notes."""
    try:
        session.clusters.stop(view.id, reason=OVER)
        session.clusters.wait_stopped(view.id, timeout=STOP_SECONDS)
    except KeyboardInterrupt:
        session.note(f"Cluster {view.name} is stopping; no longer waiting for its end.")
    except GpuClusterError as error:
        session.note(f"Cluster {view.name}: {error.message}")


def borrowed(name: str, workers: int | None, session: Session) -> ClusterView:
    """Return a cluster with so many workers ready, after a wait for the missing ones.

    One that follows the load is refused if it may have fewer: before there is work it has no reason
    to grow, and a number that moves cannot be measured.

    Parameters
    ----------
    workers
        The needed number; None = at least one.

    Raises
    ------
    ClusterConflict
        The cluster has ended, or ends now.
    InvalidInput
        It does not keep so many.
    """
    from ..client.connect import has_scheduler

    view = session.clusters.get(name)
    has_scheduler(view)
    needed = workers or 1
    if view.target.minimum < needed:
        words = f"Cluster {view.name} keeps {target_text(view)}; {needed} are needed."
        hint = f"First: {session.program} scale {view.name} --workers {needed}"
        raise InvalidInput(words, hint=hint, detail="workers")
    if view.workers.ready >= needed:
        return view
    session.note(
        f"waiting for {counted(needed, view.unit)} of cluster {view.name}; "
        f"{view.workers.ready} are ready"
    )
    with session.progress() as progress:
        return session.clusters.wait_ready(view.id, progress=progress)


class Signals:
    """Turns the signals that end a command into `KeyboardInterrupt`, so that nothing is left."""

    def __init__(self) -> None:
        self.last = signal.SIGINT
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Python lets only the main thread set handlers; in others signals do not arrive anyway.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.last = signal.Signals(number)
        raise KeyboardInterrupt

    def reached_children(self) -> bool:
        """Return whether the last signal came from a terminal, which sends it to the script."""
        if self.last is not signal.SIGINT:
            return False
        try:
            with Path("/dev/tty").open("rb") as terminal:
                return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
        except OSError:
            return False
