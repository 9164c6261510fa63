"""When a queueing system may be asked again: by its own speed, and within a budget of calls."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CALLS_PER_MINUTE = 60
"""The budget: the most commands that all heads of a user on one host send to one queueing system
within a minute.  Submitting and cancelling wait for room in it."""
STATUS_PER_MINUTE = 40
"""What of the budget listings may use, so that there is room to submit and to cancel."""
SLOWNESS = 10.0
"""Listing takes a tenth of the time at most: a listing of 6 s is made once a minute."""
HANGING = 2.0
"""After a command that was not answered, a pause as long as it took."""
LONGEST_PERIOD = 300.0
GAP_AFTER_CHANGE = 0.5
"""Seconds between two listings where the last one is older than what we have just asked for."""
LOOK_UPS_PER_MINUTE = 50
"""What of the budget is used at most where single jobs are asked about, that listings lack."""
MINUTE = 60.0
SHORTEST_WAIT = 0.1


@dataclass(frozen=True)
class Ledger:
    """What the heads know together.  Times are seconds since the machine was booted."""

    boot: str = ""
    calls: tuple[float, ...] = ()
    """When commands were sent, within the last minute."""
    started: float | None = None
    """When the last listing was asked for."""
    seconds: float = 0.0
    """How long its answer took."""
    failures: int = 0
    """How many listings in a row were not answered."""
    listed: tuple[str, ...] | None = None
    """The ids that the last listing was about; None = all jobs of the user."""
    wanted: Mapping[str, Any] = field(default_factory=dict)
    """When each head last asked, and for which ids."""


class Choice(enum.Enum):
    """What a head does that wants a listing."""

    CALL = "call"
    USE = "use"
    WAIT = "wait"


def choose(
    ledger: Ledger,
    *,
    now: float,
    period: float,
    ids: Sequence[str] | None,
    seen: float,
    changed: float,
) -> tuple[Choice, float]:
    """Choose between asking, using the last answer and waiting, and say how long to wait.

    Parameters
    ----------
    period
        Seconds between two listings, as long as the system answers quickly.
    ids
        The jobs that the listing must be about; None = all of the user's.
    seen
        The listing that this head has had already, by the time at which it was asked for.
    changed
        When this head last asked for a change: older answers say nothing about it.
    """
    if ledger.started is None:
        return Choice.CALL, 0.0
    age = now - ledger.started
    # Silence has its own measure: a command that hangs says nothing about the next one.
    slow = ledger.seconds * (HANGING if ledger.failures else SLOWNESS)
    period = min(LONGEST_PERIOD, max(period * 2 ** min(ledger.failures, 8), slow))
    covers = ledger.listed is None or (ids is not None and set(ids) <= set(ledger.listed))
    fits = bool(ledger.failures) or (covers and ledger.started > changed)
    if not fits and not ledger.failures:
        period = min(period, max(GAP_AFTER_CHANGE, slow))
    fresh = fits and ledger.started > seen
    full = sum(now - call < MINUTE for call in ledger.calls) >= STATUS_PER_MINUTE
    if age >= period and not full:
        return Choice.CALL, 0.0
    if fresh:
        return Choice.USE, 0.0
    room = min((call + MINUTE - now for call in ledger.calls), default=0.0) if full else 0.0
    return Choice.WAIT, max(period - age, room, SHORTEST_WAIT)
