"""``--wait``: wait for a cluster and show how it comes along; Ctrl-C ends only the wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..core.errors import ClusterConflict, GpuClusterError
from .describe import target_words
from .parsing import Parser, seconds
from .session import Progress, Session

if TYPE_CHECKING:
    from ..core.cluster import Target
    from ..state.view import ClusterView

STOP_SECONDS = 60.0
"""How long a verb waits for the end of its own cluster; the head sees to the rest."""


class WaitInterrupted(GpuClusterError):
    """Ctrl-C while waiting; what was waited for goes on."""

    exit_code = 130  # 128 + SIGINT, as shells expect of an interrupted command


def add_wait(parser: Parser, what: str) -> None:
    """Add ``--wait [SECONDS]``."""
    parser.add_argument(
        "--wait",
        nargs="?",
        metavar="SECONDS",
        type=seconds("--wait"),
        help=f"wait until {what}; without SECONDS as long as it takes",
    )


def timeout_from(wait: float) -> float | None:
    """Return the value of ``--wait`` as a time-out: None = no limit."""
    return None if math.isinf(wait) else wait


def wait_ready(
    view: ClusterView,
    wait: float | None,
    session: Session,
    meanwhile: str,
    wanted: Target | None = None,
) -> tuple[ClusterView, GpuClusterError | None]:
    """Wait as long as ``--wait`` says until all workers are ready.

    Parameters
    ----------
    view
        The cluster as it is before the wait.
    wait
        Seconds, infinity for no limit, None for no wait at all.
    meanwhile
        What the cluster does after Ctrl-C: ``goes on``.
    wanted
        The target that was requested, if there was one.

    Returns
    -------
    The cluster as it is afterwards, and what ended the wait too early.
    """
    from ..state.waiting import is_ready

    if wait is None:
        return view, None
    try:
        with session.progress() as show:
            view = session.clusters.wait_ready(
                view.id, timeout=timeout_from(wait), progress=until(is_ready, show)
            )
    except KeyboardInterrupt:
        return view, interrupted([view.name], meanwhile, session.program)
    except GpuClusterError as error:
        return session.clusters.get(view.id), error
    if wanted is not None and view.target != wanted:
        words = f"Cluster {view.name} has another target now: {target_words(view)}."
        return view, ClusterConflict(words, hint="It was changed while this command waited.")
    return view, None


def until(reached: Callable[[ClusterView], bool], show: Progress) -> Progress:
    """Leave out of what is shown on the way the last of it, which is the result."""

    def on_the_way(view: ClusterView) -> None:
        if not reached(view):
            show(view)

    return on_the_way


def interrupted(names: Sequence[str], meanwhile: str, program: str) -> WaitInterrupted:
    """Return the error that says what goes on after Ctrl-C."""
    subject = f"cluster {names[0]}" if len(names) == 1 else f"each of {', '.join(names)}"
    return WaitInterrupted(
        f"No longer waiting; {subject} {meanwhile}.", hint=f"See how far: {program} list"
    )


def stop_quietly(view: ClusterView, session: Session) -> None:
    """Stop the cluster that a verb started for itself; trouble is told and no more."""
    try:
        session.clusters.stop(view.id)
        session.clusters.wait_stopped(view.id, timeout=STOP_SECONDS)
    except KeyboardInterrupt:
        session.note(f"Cluster {view.name} was asked to stop; no longer waiting for it.")
    except GpuClusterError as error:
        session.note(f"Cluster {view.name}: {error.message}")
