"""A cluster as text: its line in a list, its facts, its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..core.cluster import ENDED
from ..core.job import Job
from ..core.summary import Event, GpuReading
from .output import ELLIPSIS, Table, ago, ahead, counted, facts, gpu_hours, one_line, size, span

if TYPE_CHECKING:
    from ..state.view import ClusterView


def named(*views: ClusterView) -> tuple[tuple[str, str], ...]:
    """Return ids and names, by which a notebook keeps showing clusters."""
    return tuple((view.id, view.name) for view in views)


SHORT = 120
"""Characters of a reason in a table, of which `show` has the whole."""


def short(text: str) -> str:
    """Return a text cut at a word, for a line of a table."""
    text = one_line(text)
    if len(text) <= SHORT:
        return text
    return f"{text[: SHORT - 1].rpartition(' ')[0] or text[: SHORT - 1]}{ELLIPSIS}"


def state(view: ClusterView) -> str:
    """Return phase, words and reason in one line; the phase once."""
    words = ": ".join(_words(view))
    repeated = words.lower().startswith(view.phase.value)
    return one_line(words if repeated else ": ".join(filter(None, (view.phase.value, words))))


def remarks(view: ClusterView) -> tuple[str, ...]:
    """Return the remarks that accompany a cluster everywhere."""
    stale = f"as of {ago(view.stale_since)}: the batch system does not answer"
    found = (
        (view.simulated, "simulated"),
        (not view.encrypted, "NOT ENCRYPTED"),
        (view.stale_since is not None, stale),
    )
    return tuple(words for applies, words in found if applies)


def cluster_table(views: Iterable[ClusterView], empty: str) -> Table:
    """Return clusters, one a line."""
    rows = tuple(
        (
            view.name,
            view.profile,
            view.phase.value,
            ago(view.phase_since),
            "; ".join((*map(short, _words(view)), *remarks(view))),
        )
        for view in views
    )
    return Table(("NAME", "PROFILE", "PHASE", "SINCE", "STATE"), rows, empty=empty)


def cluster_facts(view: ClusterView) -> Table:
    """Return all that is known about one cluster."""
    counts = view.workers
    others = {"starting": counts.starting, "pending": counts.pending, "lost": counts.lost}
    ready = f"{counts.ready} ready of {counts.asked} requested"
    ready += "".join(f", {number} {state}" for state, number in others.items() if number)
    deadlines = _deadlines(view)
    return facts(
        (
            ("name", view.name),
            ("id", view.id),
            ("profile", f"{view.profile} ({view.title}, {view.backend})"),
            ("phase", f"{view.phase.value}, since {ago(view.phase_since)}"),
            ("state", "" if view.words in (view.phase.value, view.reason) else view.words),
            ("reason", view.reason),
            ("remarks", "; ".join(remarks(view))),
            (view.unit, "" if view.phase in ENDED else ready),
            ("target", target_text(view)),
            ("threads", str(view.threads or "")),
            ("memory", _part(view.memory_used, view.memory_limit)),
            ("tasks", f"{view.tasks_done} of {view.tasks} done" if view.tasks else ""),
            ("clients", "" if view.phase in ENDED else str(view.clients)),
            ("GPU-hours", _gpu_hours(view)),
            ("idle GPUs", view.gpu_words),
            ("ends first", "".join(deadlines[:1])),
            ("then", "; ".join(deadlines[1:])),
            ("allocation", view.allocation),
            ("without Jupyter", view.survival),
            ("python", f"{view.python} ({view.environment})" if view.environment else view.python),
            ("options", ", ".join(f"{k}={v}" for k, v in view.options.items())),
            ("scheduler", view.scheduler_address),
            ("created", ago(view.created)),
            ("ended", ago(view.ended)),
            ("directory", view.directory),
        )
    )


def target_text(view: ClusterView) -> str:
    """Return the target."""
    target = view.target
    words = (
        f"{target.minimum} to {target.maximum} {view.unit} (adaptive)"
        if target.adaptive
        else counted(target.maximum, view.unit)
    )
    if view.maximum_workers is not None:
        words += f", at most {view.maximum_workers} allowed"
    return words


def job_table(jobs: Sequence[Job], reason: str) -> Table:
    """Return the jobs of a cluster, one a line; the cluster's long reason is not repeated."""
    rows = tuple(
        (
            f"{job.key} ({job.group})" if job.group else job.key,
            "" if job.id == job.key else job.id,  # local jobs have no other number
            job.state.value,
            ago(job.ended or job.started or job.submitted or None),
            ", ".join(job.nodes),
            "" if job.cause == job.state.value else _without(reason, job.cause or job.reason),
        )
        for job in jobs
    )
    return Table(("JOB", "ID", "STATE", "SINCE", "NODES", "WHY"), rows, title="Jobs")


def gpu_table(gpus: Sequence[GpuReading]) -> Table:
    """Return the readings of each worker's GPU, one a line; empty without readings."""
    rows = tuple(
        (
            gpu.worker,
            gpu.host,
            gpu.mig or ("" if gpu.index is None else str(gpu.index)),
            gpu.name,
            _amount(gpu.utilization, "%"),
            _part(gpu.memory_used, gpu.memory_total),
            _amount(gpu.power, "W"),
            _amount(gpu.temperature, "°C"),
            "; ".join(_gpu_remarks(gpu)),
        )
        for gpu in gpus
    )
    headings = ("WORKER", "NODE", "GPU", "MODEL", "USE", "MEMORY", "POWER", "HEAT", "REMARKS")
    return Table(headings, rows, title="GPUs")


def _amount(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f} {unit}"


def _gpu_remarks(gpu: GpuReading) -> list[str]:
    slowed = f"slowed by {', '.join(gpu.slowed)}" if gpu.slowed else ""
    errors = counted(gpu.ecc_errors, "uncorrected memory errors") if gpu.ecc_errors else ""
    return [*filter(None, (slowed, errors, *(f"XID {n}" for n in gpu.xids), gpu.trouble))]


def event_table(events: Sequence[Event], reason: str) -> Table:
    """Return the timeline, one event a line; the cluster's long reason is not repeated."""
    rows = tuple((ago(each.time), each.job, _without(reason, each.message)) for each in events)
    return Table(("WHEN", "JOB", "WHAT"), rows, title="Timeline")


def _without(reason: str, text: str) -> str:
    return text.replace(reason, "see above") if len(reason) > SHORT else text


def _words(view: ClusterView) -> tuple[str, ...]:
    """Return words and reason without repetition; of an ended cluster the reason."""
    over = view.phase in ENDED and view.reason
    words = "" if over or view.words == view.phase.value else view.words
    reason = "" if view.reason in words else view.reason
    return tuple(filter(None, (words, reason)))


def _part(used: int, total: int) -> str:
    return f"{size(used) or '0 B'} of {size(total)}" if total else size(used)


def _gpu_hours(view: ClusterView) -> str:
    most = view.gpu_hours_estimate
    so_far = f"{gpu_hours(view.gpu_hours)} so far" if view.unit == "GPUs" else ""
    return so_far if most is None or not so_far else f"{so_far}, at most {gpu_hours(most)}"


def _deadlines(view: ClusterView) -> list[str]:
    """Return the deadlines of the cluster and its jobs, the first one first."""
    return [
        clock.name
        + (f" ({span(clock.seconds)})" if clock.seconds else "")
        + (f" {ahead(clock.ends)}" if clock.ends is not None else " does not run now")
        for clock in sorted(view.clocks, key=lambda clock: (clock.ends is None, clock.ends or 0.0))
    ]
