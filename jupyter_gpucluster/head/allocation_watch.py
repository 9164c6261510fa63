"""The batch job whose nodes a local cluster uses: when it will end, and that it has."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..batch import find_backend
from ..batch.queue import ProcessRunner, user_name
from ..core.cluster import HeldJob
from ..core.errors import BackendError
from ..core.job import FINAL, Allocation, JobState, JobStatus

PERIOD = 120.0
"""Seconds between two looks, since its end may be moved."""
FIRST = 10.0
"""Seconds until the first look: a cluster that starts does not wait for it."""
SECONDS = 15.0
"""An answer that takes longer is not waited for: nothing changes then."""
OVER = FINAL | {JobState.ENDING}


class HeldJobWatch:
    """Asks the batch system about the allocation now and then, and when workers were lost.

    Parameters
    ----------
    held
        The allocation; None where the cluster uses none, or nobody can be asked about it.
    """

    def __init__(self, held: HeldJob | None) -> None:
        self.held = held
        self.ends = None if held is None else held.ends
        self.ended: set[str] = set()
        self.asked: float | None = None

    async def look(self, listing: Mapping[str, JobStatus] | None, now: float) -> str:
        """Return the message that the allocation is over, empty if it is not.

        Parameters
        ----------
        listing
            The cluster's own jobs: where one has ended the system is asked at once, before another
            is started in its place.
        """
        if self.held is None:
            return ""
        ended = {id for id, status in (listing or {}).items() if status.state in FINAL}
        lost, self.ended = ended - self.ended, self.ended | ended
        if self.asked is None:
            self.asked = now - (PERIOD - FIRST)
        if not lost and now - self.asked < PERIOD:
            return ""
        self.asked = now
        try:
            found = await self.ask(self.held)
        except BackendError:
            return ""
        if found is not None and found.job.state not in OVER:
            self.ends = found.job.ends or self.ends
            return ""
        why = "" if found is None else find_backend(self.held.system).explain(found.job)
        return f"{self.held.name}, whose nodes it used, has ended. {why}".strip()

    async def ask(self, held: HeldJob) -> Allocation | None:
        """Return what the system says of the allocation; None where it knows no such job."""
        query = find_backend(held.system).allocation()
        if query is None:
            raise BackendError(f"{held.name} cannot be asked about.")
        runner = ProcessRunner(os.environ, seconds=SECONDS)
        return query.read(held.id, await runner.run(query.ask(held.id, user_name())))
