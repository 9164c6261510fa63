"""The head's word about a cluster: numbers, and the sentence that users read."""

from __future__ import annotations

from ..records import ENDED, Phase, Record, Summary, WorkerCounts
from .situation import WAITING, Observation, clocks, count_workers, is_alive, staying


def describe(record: Record, counts: WorkerCounts, leaving: int) -> str:
    """Say in a few words how far the cluster is."""
    unit = "GPUs" if record.spec.job.gpus else "workers"
    if record.phase is Phase.STOPPING:
        return f"stopping, waiting for {leaving} of its jobs" if leaving else "stopping"
    if record.phase in ENDED:
        return str(record.phase.value)
    parts = [f"{counts.ready} of {counts.asked} {unit} ready"]
    if counts.pending:
        parts.append(f"{counts.pending} waiting")
    if counts.starting:
        parts.append(f"{counts.starting} starting")
    if counts.lost:
        parts.append(
            f"{counts.lost} lost" if record.reason else f"{counts.lost} lost, being replaced"
        )
    if leaving:
        parts.append(f"{leaving} leaving when their tasks are done")
    return ", ".join(parts)


def summarise(record: Record, seen: Observation, now: float) -> Summary:
    """Return what ``summary.json`` says."""
    counts = count_workers(record, seen)
    leaving = sum(is_alive(job) and job.leaving is not None for job in record.jobs)
    ended = record.phase in ENDED
    return Summary(
        id=record.id,
        name=record.name,
        profile=record.spec.profile,
        phase=record.phase,
        phase_since=record.phase_since,
        reason=record.reason or next((j.reason for j in staying(record) if j.state in WAITING), ""),
        words=describe(record, counts, leaving),
        revision=record.revision,
        written=now,
        workers=WorkerCounts() if ended else counts,
        target=record.target,
        clients=seen.clients,
        threads=seen.threads,
        memory_used=seen.memory_used,
        memory_limit=seen.memory_limit,
        clocks=() if ended else tuple(clocks(record, seen)),
        stale_since=seen.silent_since,
    )
