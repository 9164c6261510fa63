"""View of a cluster for front ends: record and summary, flat and JSON-ready."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from typing import Any

from ..core.cluster import ENDED, Phase, Record, Spec
from ..core.fast_dataclass import frozen
from ..core.serialize import copied
from ..core.summary import Summary, WorkerCounts, summary_of
from ..host.cluster_directory import ClusterDirectory

RECENT_SECONDS = 86400.0
"""For so long a failed cluster is shown beside the live ones, so that its user sees why."""


@frozen
class ClusterView(Summary):
    """One cluster as users see it.  Times are seconds since the epoch, memory is in bytes."""

    _: KW_ONLY
    title: str
    backend: str
    created: float
    ended: float | None
    unit: str
    maximum_workers: int | None
    encrypted: bool
    simulated: bool
    scheduler_address: str
    python: str
    environment: str
    survives: bool
    survival: str
    options: Mapping[str, Any]
    directory: str
    gpu_hours_estimate: float | None = None
    """Most that the cluster may use; None = no GPUs, or nothing ends it."""
    allocation: str = ""
    """The batch job whose nodes it uses and that is not its own, with its nodes; empty = none."""


@frozen
class Script:
    """Preview of a submission: the text of a job's script, and the command."""

    text: str
    command: str
    gpu_hours_estimate: float | None = None
    """Most that the cluster may use; None = no GPUs, or nothing ends it."""
    survives: bool = True
    survival: str = ""
    """One sentence: whether and why the cluster would outlive Jupyter."""
    interactive: str = ""
    """Command that requests an allocation as large as one of its jobs; may be empty."""


@frozen
class JobScript:
    """The script of one submission of a cluster, as its jobs ran it."""

    mark: str
    """The job name under which it was submitted."""
    text: str
    command: str
    """The submit command; empty where an older version has submitted it."""
    written: float
    """Time of writing, just before its submission."""


@frozen
class Look:
    """One look at a cluster directory: what is on disk, and whether the head lives."""

    directory: ClusterDirectory
    record: Record
    summary: Summary | None
    head_alive: bool | None = field(default=True)
    """None if the head is on another host and its lease neither fresh nor lapsed."""


def gpu_hours_estimate(spec: Spec, workers: int) -> float | None:
    """Return the most GPU-hours that so many workers use, None without GPUs or without an end.

    The end is the maximum lifetime, or the first jobs' walltime if no others follow them.
    """
    if not spec.job.gpus:
        return None
    policy, walltime = spec.policy, spec.job.walltime
    ends = [policy.max_lifetime]
    if policy.at_walltime == "stop":
        ends.append(walltime)
    gpus = -(-workers // spec.worker.per_job) * spec.job.gpus
    hours = [gpus * seconds / 3600 for seconds in ends if seconds is not None]
    return min((*hours, *filter(None, [policy.gpu_hours])), default=None)


def unreachable(record: Record) -> str:
    """Return why a head that may live is unreachable, and the command to type."""
    head = record.head
    if head is not None and head.host == os.uname().nodename:
        return (
            f"Its scheduler process (PID {head.pid}) does not answer: it is stopped or hangs."
            f" To end it: jupyter gpucluster stop --force {record.name}"
        )
    host = head.host if head else "another host"
    return (
        f"Its scheduler runs on {host} and shows no sign of life."
        f" To end the cluster: jupyter gpucluster stop --force {record.name}"
    )


def view_of(look: Look) -> ClusterView:
    """Combine record and summary into a view."""
    record, summary, spec = look.record, look.summary, look.record.spec
    phase, reason, words = record.phase, record.reason, record.phase.value
    workers = WorkerCounts(asked=0 if phase in ENDED else record.target.minimum)
    if summary is not None and phase not in ENDED:
        words, workers, reason = summary.words, summary.workers, summary.reason
    if phase not in ENDED and look.head_alive is None:
        phase = Phase.UNREACHABLE
        reason = unreachable(record)
    live = summary if summary is not None and phase not in ENDED else None
    return copied(
        ClusterView,
        live or summary_of(record, words, record.created),
        spec,
        record,
        phase=phase,
        words=words,
        reason=reason,
        revision=max(record.revision, summary.revision if summary else 0),
        unit="GPUs" if spec.job.gpus else "workers",
        workers=workers,
        scheduler_address=record.scheduler_address if phase not in ENDED else "",
        directory=str(look.directory.path),
        gpu_hours=summary.gpu_hours if summary is not None else 0.0,
        gpu_hours_estimate=gpu_hours_estimate(spec, record.target.maximum),
        allocation=f"{spec.allocation.name} ({spec.allocation.nodes})" if spec.allocation else "",
        loss=summary.loss if summary is not None else None,
        unaccounted=record.unaccounted is not None,
    )


def is_shown(phase: Phase | None, since: float) -> bool:
    """Return whether lists of live clusters include one: it lives, or has just failed."""
    if phase is Phase.FAILED:
        return time.time() - since < RECENT_SECONDS
    return phase not in ENDED
