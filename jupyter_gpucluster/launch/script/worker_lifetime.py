"""The net below the head's own draining: workers leave by themselves before their walltime."""

from __future__ import annotations

from ...batch import on_this_machine
from ...core.cluster import Spec
from ...host.environ import LEFT, LIFETIME

MOST_SECONDS = 60


def seconds_of(spec: Spec) -> int:
    """Return after how many seconds of its job a worker leaves by itself; 0 = it does not.

    The head drains first: no later than `policy.drain_before` before the end, or else from the
    middle of the walltime on.
    """
    walltime, before = spec.job.walltime, spec.policy.drain_before
    if spec.simulated or on_this_machine(spec.backend) or not walltime or not before:
        return 0
    margin = int(min(MOST_SECONDS, before / 2, walltime / 4))
    return walltime - margin if margin else 0


def lines(seconds: str) -> list[str]:
    """Return the lines of a script that tell workers when to leave.

    Parameters
    ----------
    seconds
        How long they would have if they were there when this shell started.
    """
    return [
        f"export {LEFT}=$(({seconds} - SECONDS))",
        f'[ "${LEFT}" -le 0 ] || export {LIFETIME}="${{{LIFETIME}:-${LEFT} s}}"',
    ]
