"""Share this machine's memory between the workers of a local cluster."""

from __future__ import annotations

from ..core.cluster import Spec
from ..core.errors import LimitReached

LEAST_SHARE = 512 * 2**20
"""A worker that has imported NumPy and pandas holds about 200 MiB, and pauses at 80 %."""


def share_of(spec: Spec, workers: int) -> int | None:
    """Return the bytes that each of so many workers gets; None where the limit is fixed."""
    if spec.shared_memory is None or not spec.memory_follows:
        return None
    return max(0, spec.shared_memory - _of_groups(spec)) // max(1, workers)


def check_memory(spec: Spec, workers: int, *, automatic: bool = False) -> None:
    """Refuse more workers than this machine's memory holds.

    Parameters
    ----------
    automatic
        Whether the limit in the spec is this number's share, also where it is fixed from then on.

    Raises
    ------
    LimitReached
        A share would be too small, or the limits together are above the machine's memory.
    """
    total, limit = spec.shared_memory, spec.worker.memory_limit
    if total is None or not workers:
        return
    others, share = _of_groups(spec), share_of(spec, workers)
    if share is None and automatic:
        share = limit
    if share is not None and share < LEAST_SHARE:
        raise LimitReached(
            f"{_counted(workers)} would have {amount(share)} of memory each: a worker needs"
            f" {amount(LEAST_SHARE)}, and {amount(total)} are available on this machine.",
            hint=_fewer((total - others) // LEAST_SHARE),
            detail="target",
        )
    if spec.memory_follows or not limit:
        return
    needed = workers * limit + others
    if needed > total:
        most = max(0, total - others) // limit
        fix = f" a cluster with a memory limit of {amount((total - others) // workers)} or less."
        raise LimitReached(
            f"{_counted(workers)} with {amount(limit)} each need {amount(needed)} of memory:"
            f" {amount(total)} are available on this machine.",
            hint=f"{_fewer(most)} Or start{fix}" if most else f"Start{fix}",
            detail="target",
        )


def amount(count: int) -> str:
    """Return bytes in a binary unit, never more than there are: ``1.9 GiB``."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20)):
        if count >= size:
            return f"{count * 10 // size / 10:g} {unit}"
    return f"{count} B"


def _of_groups(spec: Spec) -> int:
    """Return the bytes of the worker groups, whose limits are fixed."""
    return sum(group.workers * (group.worker.memory_limit or 0) for group in spec.groups)


def _counted(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"


def _fewer(most: int) -> str:
    if most < 1:
        return "Use a machine with more memory."
    return "Ask for 1." if most == 1 else f"Ask for {most} or fewer."
