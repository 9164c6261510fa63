"""Files of the cluster directory that could not be written, and how users learn of it."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from ..core.cluster import ENDED
from ..core.errors import GpuClusterError
from ..core.summary import Summary

logger = logging.getLogger("gpucluster.head")


class Unsaved:
    """Which files are older than what the head knows, why, and since when."""

    def __init__(self) -> None:
        self.troubles: dict[str, GpuClusterError] = {}
        self.since: float | None = None
        self.tried = 0.0

    def add(self, file: str, error: GpuClusterError) -> None:
        """Take a failed write; it is logged once."""
        known = self.troubles.get(file)
        if known is None or known.message != error.message:
            logger.warning("%s %s", error.message, error.hint)
        self.troubles[file] = error
        self.tried = time.time()
        self.since = self.since or self.tried

    def remove(self, file: str) -> None:
        """Take a write that succeeded."""
        if self.troubles.pop(file, None) is not None and not self.troubles:
            logger.info("All files are saved again.")
            self.since = None

    def refusal(self) -> str:
        """Return why no jobs are submitted, and the fix; empty if the record is saved."""
        error = self.troubles.get("record")
        return "" if error is None else f"{_words(error)} No jobs are submitted until then."

    def add_to(self, summary: Summary) -> Summary:
        """Return the summary with the words that its files are out of date."""
        if not self.troubles or summary.phase in ENDED:
            return summary
        lease = self.troubles.get("lease")
        error = lease or next(iter(self.troubles.values()))
        cause = error.message.rpartition(": ")[2].rstrip(".")
        since = time.strftime("%H:%M", time.localtime(self.since))
        return replace(
            summary,
            words=f"{summary.words}, not saved since {since}: {cause[:1].lower()}{cause[1:]}",
            reason=_lease_words(lease) if lease else summary.reason or _words(error),
            unsaved_since=self.since,
        )


def _lease_words(error: GpuClusterError) -> str:
    # Three minutes after the last renewal: `launch.script.job.LEASE_LAPSED`.
    fix = error.hint.partition(",")[0]
    return f"{error.message} {fix} now. The cluster's batch jobs end themselves in 3 minutes."


def _words(error: GpuClusterError) -> str:
    fix = error.hint.partition(",")[0]
    return f"{error.message} {fix}: the cluster runs, and its state is saved again when it can be."
