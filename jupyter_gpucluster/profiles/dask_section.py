"""A section of Dask's `jobqueue` configuration, and how it writes amounts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .reader import Mark

NOTHING: tuple[object, ...] = (None, "", [], {})
OLD = {
    "extra": "worker-extra-args",
    "job-extra": "job-extra-directives",
    "env-extra": "job-script-prologue",
    "header-skip": "job-directives-skip",
}
ACCOUNT = ("slurm", "pbs", "torque", "moab")
"""Systems whose option `project` is now `account`."""
USUAL: dict[str, tuple[object, ...]] = {
    "name": ("dask-worker",),
    "death-timeout": (60,),
    "worker-command": ("distributed.cli.dask_worker",),
    "shebang": ("#!/usr/bin/env bash", "#!/usr/bin/env condor_submit"),
    "walltime": ("00:30:00", "00:30"),
    "use-stdin": (True,),
}
"""What dask-jobqueue's own file sets; a section that says no more tells nothing of a site."""
TIME = re.compile(
    r"(\d+\.?\d*|\.\d+)\s*(d|days?|h|hrs?|hours?|m|min|mins|minutes?|s|sec|secs|seconds?)?",
    re.IGNORECASE | re.ASCII,
)
SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
BYTES = re.compile(r"(\d+\.?\d*|\.\d+)\s*([kmgtp]?)(i?)b?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Entry:
    """A value and the place of its key."""

    value: object
    mark: Mark


@dataclass(frozen=True)
class Section:
    """A section of `jobqueue`, keys with dashes; ``chosen``: Dask's sidebar starts it."""

    name: str
    mark: Mark
    entries: Mapping[str, Entry]
    chosen: bool = False

    def text(self, key: str) -> str:
        """Return a value as text, empty where there is none."""
        value = self.entries[key].value if key in self.entries else None
        return "" if value is None else str(value)

    def texts(self, key: str) -> list[str]:
        """Return a list of text; one text counts as a list, a mapping as ``key = value`` lines."""
        value = self.entries[key].value if key in self.entries else None
        if isinstance(value, dict):
            return [f"{name} = {item}" for name, item in value.items()]
        items = value if isinstance(value, list) else [value]
        return [str(item) for item in items if item not in (None, "")]


def tells_something(section: Section) -> bool:
    """Tell whether a section sets anything beyond what dask-jobqueue's own file sets."""
    return section.chosen or any(
        entry.value not in NOTHING and entry.value not in USUAL.get(key, ())
        for key, entry in section.entries.items()
    )


def renamed(section: Section, backend: str) -> tuple[Section, list[str]]:
    """Return the section with today's names of options, and what was renamed."""
    old = dict(OLD)
    if backend in ACCOUNT:
        old["project"] = "account"
    entries = dict(section.entries)
    told = []
    for name, today in old.items():
        entry = entries.pop(name, None)
        if entry is None or entry.value in NOTHING:
            continue
        told.append(f"`{name}` is now `{today}`")
        if today not in entries or entries[today].value in NOTHING:
            entries[today] = entry
    return Section(section.name, section.mark, entries, section.chosen), told


def parse_size(text: str) -> int | None:
    """Return an amount of memory in bytes as Dask reads it (G is 10**9), None for what is none."""
    match = BYTES.fullmatch(text.strip())
    if match is None or len(match[1]) > 20:
        return None
    power = " kmgtp".index(match[2].lower() or " ")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def parse_time(text: str) -> float | None:
    """Return a length of time in seconds as Dask reads it (a number counts seconds)."""
    match = TIME.fullmatch(text.strip())
    if match is None or len(match[1]) > 20:
        return None
    return float(match[1]) * SECONDS[(match[2] or "s")[0].lower()]


def without_lifetime(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return a worker's arguments without those on its lifetime, and these by their names."""
    left: list[str] = []
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("--lifetime", "--lifetime-stagger"):
            found[name] = value if equals else next(rest, "")
        elif name in ("--lifetime-restart", "--no-lifetime-restart"):
            found[name] = ""
        else:
            left.append(word)
    return left, found


def usual_processes(cores: int) -> int:
    """Return how many processes dask-jobqueue starts on so many cores if it is not told."""
    if cores <= 4:
        return cores
    return min(n for n in _factors(cores) if n >= math.sqrt(cores))


def _factors(number: int) -> Iterator[int]:
    for n in range(1, math.isqrt(number) + 1):
        if number % n == 0:
            yield from (n, number // n)
