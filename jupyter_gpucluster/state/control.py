"""Reach the head of a cluster: its address, its answers, and changes that it makes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from ..core.cluster import ENDED, EXISTING, Phase
from ..core.errors import (
    ClusterConflict,
    ClusterNotFound,
    GpuClusterError,
    HeadUnreachable,
    RecordError,
)
from ..core.job import Job
from ..core.serialize import from_json
from ..core.summary import Summary
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import DAMAGE
from ..host.processes import is_alive
from .control_client import AT_ONCE, QUICK_SECONDS, Endpoint, ask, endpoint_at
from .reader import find, head_of, look_at
from .view import ClusterView, Look, view_of

POLL_SECONDS = 0.03
OLD_SECONDS = 30.0
"""A head writes its summary every 10 s, unless it cannot."""
STARTING_SECONDS = 10.0
"""For so long a change waits for a head that is only just starting."""


def endpoint_of(look: Look) -> Endpoint:
    """Return the address of a live head, or raise; see `Clusters.endpoint`."""
    record = look.record
    if record.phase in ENDED:
        raise ClusterConflict(f"Cluster {record.name} is {record.phase.value}.")
    if record.spec.backend == EXISTING:
        from .external import dashboard_of

        return dashboard_of(look.directory, record)
    if not record.http_address:
        waits = _waits_for_job(look)
        raise ClusterConflict(
            f"Cluster {record.name} "
            + ("waits in the queue for its scheduler's job." if waits else "is still starting."),
            hint="Scaling and renaming work from then on." if waits else "Try again soon.",
        )
    # A head that is to be asked from other hosts speaks HTTPS; any other listens on loopback.
    https = record.http_address.startswith("https://")
    if not https and record.head is not None and is_alive(record.head) is None:
        raise HeadUnreachable(
            f"The scheduler of {record.name} runs on {record.head.host}.",
            hint=f"Use it from there: ssh {record.head.host}",
        )
    try:
        return endpoint_at(look.directory, record.http_address)
    except OSError as error:
        raise ClusterConflict(f"Cluster {record.name} is ending.") from error


def find_answered(root: Path, name: str, *, jobs: bool = True) -> Look:
    """Find a cluster, with its head's answer: the disk may be full, and is for dead heads.

    A head that does not answer in time is shown as the disk has it.
    """
    look = find(root, name, jobs=jobs)
    record = look.record
    if record.phase in ENDED or record.spec.backend == EXISTING or not record.http_address:
        return look
    # It may have ended while it was asked.
    return answered(look) or find(root, record.id, jobs=jobs)


def answered(look: Look) -> Look | None:
    """Return a look with the head's answer, unless the disk is newer; None without an answer."""
    try:
        answer = ask(endpoint_of(look), "GET", "/gpucluster/summary", seconds=QUICK_SECONDS)
        summary = from_json(Summary, answer["summary"])
        jobs = tuple(from_json(Job, job) for job in answer["jobs"])
    except (GpuClusterError, *DAMAGE):
        return None
    if summary.revision < look.record.revision:
        return look
    ended = summary.phase in ENDED
    record = replace(
        look.record,
        name=summary.name,
        target=summary.target,
        phase=summary.phase,
        phase_since=summary.phase_since,
        ended=summary.phase_since if ended else None,
        reason=summary.reason if ended else look.record.reason,
        jobs=jobs,
        revision=summary.revision,
    )
    return Look(look.directory, record, summary)


def as_now(looks: Sequence[tuple[Look, ClusterView]]) -> list[ClusterView]:
    """Return the views of many looks; heads whose summary on disk is old are asked at once."""
    now = time.time()
    old = [
        look
        for look, _ in looks
        if look.head_alive and look.record.http_address and look.record.phase not in ENDED
        if look.summary is not None and now - look.summary.written > OLD_SECONDS
    ]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        newer = dict(zip(map(id, old), threads.map(answered, old), strict=True))
    return [view_of(found) if (found := newer.get(id(look))) else view for look, view in looks]


def ask_started(directory: ClusterDirectory, method: str, path: str, body: object) -> None:
    """Ask a head, and wait for one that is only just starting; one that has ended is done."""
    deadline = time.monotonic() + STARTING_SECONDS
    while True:
        look = look_at(directory)
        if look.record.phase in ENDED:
            return
        if look.record.http_address or time.monotonic() > deadline:
            break
        if look.record.phase is Phase.PENDING and look.record.spec.in_job:
            break  # that may take hours
        time.sleep(POLL_SECONDS)
    try:
        ask(endpoint_of(look), method, path, body)
    except (HeadUnreachable, ClusterConflict):
        # It may have ended while it was asked.
        if look_at(directory).record.phase not in ENDED:
            raise


def stop(root: Path, name: str, *, force: bool, reason: str = "") -> ClusterView:
    """Ask a cluster to stop, or end it without its head; see `Clusters.stop`."""
    try:
        look = find(root, name)
    except (RecordError, ClusterNotFound) as error:
        from .unread import stop_unread

        return stop_unread(root, name, error, force=force)
    if look.record.phase in ENDED:
        if look.record.unaccounted is not None:
            from .unaccounted import ask_now

            look = replace(look, record=ask_now(look.directory))
        return view_of(look)
    if look.record.spec.backend == EXISTING:
        from .external import detach

        detach(look.directory, look.record)
    else:
        _end(look, force=force, reason=reason)
    return view_of(find_answered(root, look.record.id, jobs=False))


def _end(look: Look, *, force: bool, reason: str) -> None:
    from .reaper import ASKED_TO_STOP, end_head, end_waiting, has_lapsed

    if force or has_lapsed(look.directory, look.record):
        end_head(look.directory, look.record)
        return
    if _waits_for_job(look):
        end_waiting(look.directory, look.record)
        return
    asked = look.directory.path / ASKED_TO_STOP
    with contextlib.suppress(OSError):
        asked.touch(mode=0o600)
    try:
        ask_started(look.directory, "POST", "/gpucluster/stop", {"reason": reason})
    except BaseException as error:
        asked.unlink(missing_ok=True)  # the head lives on, and may not have heard of it
        if isinstance(error, (HeadUnreachable, ClusterConflict)):
            error.hint = by_force(look) or error.hint
        raise


def by_force(look: Look) -> str:
    """Return how to end a cluster whose head does not; empty if it has none on this host."""
    head = look.record.head or look.directory.read_process()
    if head is None or not is_alive(head):
        return ""
    return (
        f"If its scheduler process (PID {head.pid}) hangs, kill it: "
        f"jupyter gpucluster stop --force {look.record.name}"
    )


def _waits_for_job(look: Look) -> bool:
    return look.record.spec.in_job and head_of(look.directory, look.record) is None
