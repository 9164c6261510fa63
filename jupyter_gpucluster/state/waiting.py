"""Wait until a cluster is ready or has stopped."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path

from ..core.cluster import ENDED, EXISTING, Phase
from ..core.errors import GpuClusterError, StateError, WaitTimeout
from ..host.processes import is_alive
from .control import POLL_SECONDS, by_force, endpoint_of, find_answered
from .control_client import ask
from .reader import find, lives
from .view import ClusterView, view_of

LOOK_SECONDS = 10.0
"""The longest time between two looks at a cluster, and for which leftover processes are awaited."""
QUEUE_SECONDS = 0.5
UNSAVED_SECONDS = 10.0
"""A wait for workers ends when the cluster's state could not be saved for so long."""
Progress = Callable[[ClusterView], None]


def wait_ready(
    root: Path, name: str, timeout: float | None, progress: Progress | None
) -> ClusterView:
    """Wait for all requested workers; see `Clusters.wait_ready`."""
    unsaved: list[float] = []

    def ready(view: ClusterView) -> bool:
        if view.phase in ENDED or view.phase is Phase.STOPPING:
            raise GpuClusterError(
                f"Cluster {view.name} {view.phase.value}: {view.reason or 'it was stopped'}",
                hint=f"See: jupyter gpucluster why {view.name}, and logs {view.name}.",
            )
        if is_ready(view):
            return True
        if view.unsaved_since is None:
            unsaved.clear()
            return False
        # Until there is room no job is submitted, which may take for ever.
        unsaved.append(time.monotonic())
        if unsaved[-1] - unsaved[0] > UNSAVED_SECONDS:
            raise StateError(
                f"Cluster {view.name} is not ready: {view.words}.",
                hint=view.reason,
            )
        return False

    return _wait(root, name, ready, timeout, progress, "ready")


def wait_stopped(
    root: Path, name: str, timeout: float | None, progress: Progress | None
) -> ClusterView:
    """Wait for a cluster's end and that of its processes; see `Clusters.wait_stopped`."""

    def gone(view: ClusterView) -> bool:
        return view.phase in ENDED and not lives(find(root, view.id).record)

    directory = find(root, name).directory
    relay = directory.read_relay()
    view = _wait(root, name, gone, timeout, progress, "stopped")
    deadline = time.monotonic() + LOOK_SECONDS
    while relay is not None and is_alive(relay) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)  # it ends when it sees that the cluster has
    record = find(root, view.id).record
    if record.spec.in_job:
        from .head_job import wait_gone

        wait_gone(directory, record, LOOK_SECONDS)
    return view


def is_ready(view: ClusterView) -> bool:
    """Return whether all requested workers are connected."""
    counted = view.revision > 0 and view.workers.asked >= view.target.minimum
    there = view.phase is not Phase.UNREACHABLE
    return counted and there and view.workers.ready >= view.workers.asked


def _wait(
    root: Path,
    name: str,
    reached: Callable[[ClusterView], bool],
    timeout: float | None,
    progress: Progress | None,
    word: str,
) -> ClusterView:
    deadline = time.monotonic() + (math.inf if timeout is None else timeout)
    view = view_of(find_answered(root, name, jobs=False))
    while not reached(view):
        if progress is not None:
            progress(view)
        if (left := deadline - time.monotonic()) <= 0:
            raise WaitTimeout(
                f"Cluster {view.name} is not {word} after {timeout:g} s: {view.words}.",
                hint=(by_force(find(root, view.id)) if word == "stopped" else "")
                or f"It continues by itself; see why with: jupyter gpucluster why {view.name}",
            )
        _await_change(root, view, min(left, LOOK_SECONDS))
        view = view_of(find_answered(root, view.id, jobs=False))
    if progress is not None:
        progress(view)
    return view


def _await_change(root: Path, view: ClusterView, seconds: float) -> None:
    """Return when the head has a new summary, at the latest after some seconds."""
    if view.phase not in ENDED | {Phase.UNREACHABLE} and view.backend != EXISTING:
        with contextlib.suppress(GpuClusterError):
            endpoint = endpoint_of(find(root, view.id, jobs=False))
            path = f"/gpucluster/summary?after={view.revision}&timeout={seconds:.2f}"
            ask(endpoint, "GET", path, seconds=seconds + LOOK_SECONDS)
            return
    # A head that waits in a queue has no news within milliseconds.
    slow = view.phase in (Phase.PENDING, Phase.UNREACHABLE) or view.backend == EXISTING
    time.sleep(QUEUE_SECONDS if slow else POLL_SECONDS)
