"""Lengths of time as each queueing system reads them."""

from __future__ import annotations

from collections.abc import Mapping

CLOCKS: Mapping[str, Mapping[int, tuple[int, ...]]] = {
    "slurm": {1: (60,), 2: (60, 1), 3: (3600, 60, 1)},
    "lsf": {1: (60,), 2: (3600, 60)},
    "oar": {1: (3600,), 2: (3600, 60), 3: (3600, 60, 1)},
    "cobalt": {1: (60,), 3: (3600, 60, 1)},
}
"""What the parts of ``1:30`` mean to each system, in seconds; to the others what `CLOCK` says."""
CLOCK: Mapping[int, tuple[int, ...]] = {1: (1,), 2: (60, 1), 3: (3600, 60, 1)}
DAYS: Mapping[int, tuple[int, ...]] = {1: (3600,), 2: (3600, 60), 3: (3600, 60, 1)}


def parse_walltime(text: str, backend: str) -> int | None:
    """Return a walltime in seconds as the queueing system reads it, None for what is none."""
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    clock = DAYS if dash else CLOCKS.get(backend, CLOCK)
    weights = clock.get(len(parts))
    digits = (days or "0", *parts)
    if weights is None or not all(d.isascii() and d.isdigit() and len(d) < 10 for d in digits):
        return None
    hours = sum(int(part) * weight for part, weight in zip(parts, weights, strict=True))
    return int(days or 0) * 86400 + hours
