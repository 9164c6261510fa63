"""A cluster in words: its line in a list, its facts, what it does now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..records import ENDED, Event, Job
from .output import Facts, Table, ago, ahead, counted, size, span

if TYPE_CHECKING:
    from ..views import ClusterView


def state(view: ClusterView) -> str:
    """Return phase, words and reason in one line."""
    parts = (view.phase.value, *_words(view))
    return ": ".join(part for part in parts if part)


def remarks(view: ClusterView) -> tuple[str, ...]:
    """Return what must be seen wherever the cluster is seen."""
    found = []
    if view.simulated:
        found.append("simulated")
    if not view.encrypted:
        found.append("NOT ENCRYPTED")
    if view.stale_since is not None:
        found.append(f"as of {ago(view.stale_since)}: the queueing system does not answer")
    return tuple(found)


def cluster_table(views: Iterable[ClusterView], empty: str) -> Table:
    """Return clusters, one a line."""
    rows = tuple(
        (
            view.name,
            view.profile,
            view.phase.value,
            ago(view.phase_since),
            "; ".join((*_words(view), *remarks(view))),
        )
        for view in views
    )
    return Table(("NAME", "PROFILE", "PHASE", "SINCE", "STATE"), rows, empty=empty)


def cluster_facts(view: ClusterView) -> Facts:
    """Return all that is known about one cluster."""
    counts = view.workers
    ready = (
        f"{counts.ready} ready of {counts.asked} asked for"
        + _if_any(counts.starting, "starting")
        + _if_any(counts.pending, "pending")
        + _if_any(counts.lost, "lost")
    )
    return Facts(
        (
            ("name", view.name),
            ("id", view.id),
            ("profile", f"{view.profile} ({view.title}, {view.backend})"),
            ("phase", f"{view.phase.value}, since {ago(view.phase_since)}"),
            ("words", "" if view.words == view.phase.value else view.words),
            ("reason", view.reason),
            ("remarks", "; ".join(remarks(view))),
            (view.unit, "" if view.phase in ENDED else ready),
            ("target", target_words(view)),
            ("threads", str(view.threads or "")),
            ("memory", _memory(view)),
            ("clients", "" if view.phase in ENDED else str(view.clients)),
            ("ends", "; ".join(_clocks(view))),
            ("survival", view.survival),
            ("python", f"{view.python} ({view.environment})" if view.environment else view.python),
            ("options", ", ".join(f"{k}={v}" for k, v in view.options.items())),
            ("scheduler", view.scheduler_address),
            ("created", ago(view.created)),
            ("ended", ago(view.ended)),
            ("directory", view.directory),
        )
    )


def target_words(view: ClusterView) -> str:
    """Return what the user asked for."""
    target = view.target
    words = (
        f"{target.minimum} to {target.maximum} {view.unit} (adaptive)"
        if target.adaptive
        else counted(target.maximum, view.unit)
    )
    if view.maximum_workers is not None:
        words += f", at most {view.maximum_workers} allowed"
    return words


def log_name(job: Job) -> str:
    """Return a job's name in words and in the names of its log files."""
    return f"{job.mark}_{job.task}"


def job_table(jobs: Sequence[Job]) -> Table:
    """Return the jobs of a cluster, one a line."""
    rows = tuple(
        (
            log_name(job),
            "" if job.id == log_name(job) else job.id,  # local jobs have no other number
            job.state.value,
            ago(job.ended or job.started or job.submitted or None),
            ", ".join(job.nodes),
            "" if job.cause == job.state.value else job.cause or job.reason,
        )
        for job in jobs
    )
    return Table(("JOB", "ID", "STATE", "SINCE", "NODES", "WHY"), rows, title="Jobs")


def event_table(events: Sequence[Event]) -> Table:
    """Return the timeline, one event a line."""
    rows = tuple((ago(event.time), event.job, event.message) for event in events)
    return Table(("WHEN", "JOB", "WHAT"), rows, title="Timeline")


def _words(view: ClusterView) -> tuple[str, ...]:
    """Return words and reason without saying anything twice; of an ended cluster the reason."""
    words = "" if view.words == view.phase.value else view.words
    if view.phase in ENDED and view.reason:
        words = ""
    reason = "" if view.reason in words else view.reason
    return tuple(part for part in (words, reason) if part)


def _if_any(number: int, what: str) -> str:
    return f", {number} {what}" if number else ""


def _memory(view: ClusterView) -> str:
    if not view.memory_limit:
        return size(view.memory_used)
    return f"{size(view.memory_used) or '0 B'} of {size(view.memory_limit)}"


def _clocks(view: ClusterView) -> list[str]:
    return [
        f"{clock.name} ({span(clock.seconds)})"
        + (f" {ahead(clock.ends)}" if clock.ends is not None else " does not run now")
        for clock in view.clocks
    ]
