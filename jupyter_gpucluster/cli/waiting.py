"""``--wait``: wait for a cluster and show its progress; Ctrl-C ends only the wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..core.errors import ClusterConflict, GpuClusterError
from ..core.serialize import to_json
from .arguments import Parser, seconds
from .describe import target_text
from .output import Outcome, Progress, Session

if TYPE_CHECKING:
    from ..core.cluster import Target
    from ..state.view import ClusterView

STOP_SECONDS = 60.0
"""Wait for the end of a command's own cluster; after that the head ends it alone."""


class WaitInterrupted(GpuClusterError):
    """Ctrl-C while waiting; the cluster continues."""

    exit_code = 130  # 128 + SIGINT, as shells expect of an interrupted command


def add_wait(parser: Parser, state: str) -> None:
    """Add ``--wait [SECONDS]``."""
    parser.add_argument(
        "--wait",
        nargs="?",
        metavar="SECONDS",
        type=seconds("--wait"),
        help=f"wait until {state}; without SECONDS as long as it takes",
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
                view.id, timeout=timeout_from(wait), progress=until(is_ready, show)
            )
    except KeyboardInterrupt:
        error = interrupted([view.name], meanwhile, session.program)
    except GpuClusterError as failure:
        view, error = session.clusters.get(view.id), failure
    if error is None and wanted is not None and view.target != wanted:
        error = ClusterConflict(
            f"Cluster {view.name} has another target now: {target_text(view)}.",
            hint="It was changed while this command waited.",
        )
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
    return WaitInterrupted(
        f"No longer waiting; {subject} {meanwhile}.", hint=f"To see them: {program} list"
    )


def stop_quietly(view: ClusterView, session: Session) -> None:
    """Stop the cluster that a command started for itself; errors become notes."""
    try:
        session.clusters.stop(view.id)
        session.clusters.wait_stopped(view.id, timeout=STOP_SECONDS)
    except KeyboardInterrupt:
        session.note(f"Cluster {view.name} is stopping; no longer waiting for its end.")
    except GpuClusterError as error:
        session.note(f"Cluster {view.name}: {error.message}")
