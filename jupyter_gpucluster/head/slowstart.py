"""Jobs that run and whose workers do not come: how far their start has got, by their logs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from ..records import JobState, Record
from .situation import key_of, staying

SLOW_SECONDS = 120.0
"""From a job's start: twice the time that a worker itself waits for its scheduler."""
LINE = 200


class SlowStarts:
    """Says once of each job that its worker has not come, and what its log says last."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.told: set[str] = set()

    def late(self, record: Record, connected: Collection[str], now: float) -> list[str]:
        """Return the jobs of which it is to be said now."""
        return [
            key
            for job in staying(record)
            if job.state is JobState.RUNNING and not job.connected
            if (key := key_of(job)) not in connected and key not in self.told
            if job.started is not None and now - job.started > SLOW_SECONDS
        ]

    def words(self, keys: Sequence[str]) -> list[tuple[str, str]]:
        """Return each job with what to say of it; reads files."""
        self.told.update(keys)
        minutes = f"{SLOW_SECONDS / 60:.0f} min"
        return [
            (key, f"{key} has run for {minutes} without a worker: {self.place(key)}")
            for key in keys
        ]

    def place(self, key: str) -> str:
        """Say where the start of a job's workers hangs."""
        try:
            with (self.logs / f"{key}.log").open("rb") as stream:
                stream.seek(0, 2)
                stream.seek(max(0, stream.tell() - 4096))
                text = stream.read().decode("utf-8", "replace")
        except OSError:
            return "there is no log of it; does its node see the cluster's directory?"
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) <= 1:
            return (
                "environment.prologue or the imports of its Python take long, as from a slow file"
                " system."
            )
        last = "".join(c for c in lines[-1] if c.isprintable())[:LINE]
        if "to connect to" in last:
            return f"it does not reach the scheduler; see network.interface ({last})"
        return f"its log ends with: {last}"
