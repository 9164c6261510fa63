"""Use a running cluster with the needed number of workers, and leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..client.connect import has_scheduler
from ..core.cluster import Target
from ..core.errors import GpuClusterError, InvalidInput
from .output import Session, counted

if TYPE_CHECKING:
    from ..state.view import ClusterView


@contextmanager
def borrowed(name: str, workers: int | None, session: Session) -> Iterator[ClusterView]:
    """Yield a cluster with so many workers ready, after a wait for the missing ones.

    One that follows the load keeps its number meanwhile: before there is work it has no reason to
    grow, and a number that moves cannot be measured.

    Parameters
    ----------
    workers
        The needed number; None = the requested ones, and at least one.

    Raises
    ------
    ClusterConflict
        The cluster has ended, or ends now.
    InvalidInput
        It will never have so many.
    """
    view = session.clusters.get(name)
    has_scheduler(view)
    needed = workers or max(view.workers.asked if view.target.adaptive else 0, 1)
    if view.target.maximum < needed:
        raise InvalidInput(
            f"Cluster {view.name} keeps at most {counted(view.target.maximum, view.unit)}; "
            f"{needed} are needed.",
            hint=f"First: {session.program} scale {view.name} --workers {needed}",
            detail="workers",
        )
    if not view.target.adaptive:
        yield _with_workers(view, needed, session)
        return
    before = view.target
    session.note(
        f"cluster {view.name} follows the load; "
        f"meanwhile it is kept at {counted(needed, view.unit)}"
    )
    session.clusters.update(view.id, target=Target(needed, needed))
    try:
        yield _with_workers(view, needed, session)
    finally:
        try:
            session.clusters.update(view.id, target=before)
        except GpuClusterError as error:
            session.note(f"Cluster {view.name} no longer follows the load: {error.message}")


def _with_workers(view: ClusterView, needed: int, session: Session) -> ClusterView:
    if view.workers.ready >= needed:
        return view
    session.note(
        f"waiting for {counted(needed, view.unit)} of cluster {view.name}; "
        f"{view.workers.ready} are ready"
    )
    with session.progress() as progress:
        return session.clusters.wait_ready(view.id, progress=progress)
