"""Jobs that stay although the batch system was asked several times to end them."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.cluster import Record
from ..core.job import CommandResult, JobState
from ..core.summary import Event

TRIES = 6
"""Half a minute: so long a job may take to end after the first request."""
MOST_WORDS = 200


class VainCancels:
    """Counts requests to end each job, and reports a job once when they have no effect."""

    def __init__(self) -> None:
        self.tries: dict[str, int] = {}

    def note(
        self, record: Record, ids: Sequence[str], result: CommandResult, system: str, now: float
    ) -> list[Event]:
        """Return what to report after a request.

        Parameters
        ----------
        ids
            The jobs that the request named.
        result
            What the command answered.
        system
            The batch system's name.
        """
        there = {job.id: job for job in record.jobs if job.id and not job.is_over}
        self.tries = {id: self.tries.get(id, 0) + (id in ids) for id in there}
        return [
            Event(now, "cancel", f"{system} was asked {TRIES} times to end job {id}, and still"
                  f" lists it. {said(result)}", there[id].key)
            for id in ids
            # Without a listing that has it nobody knows whether it is there.
            if self.tries.get(id) == TRIES
            and there[id].state is not JobState.ENDING
            and not there[id].missing
        ]  # fmt: skip


def said(result: CommandResult) -> str:
    """Return how a command ended, and its words, in a sentence."""
    if result.exit_code is None:
        return f"{result.argv[0]} did not answer."
    words = " ".join(f"{result.stderr} {result.stdout}".split())[:MOST_WORDS].rstrip(".")
    wrote = f"wrote: {words}" if words else "wrote nothing"
    return f"{result.argv[0]} exited with code {result.exit_code} and {wrote}."
