"""Progress of slow starts: jobs that run while their workers do not connect, by their logs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ..core.job import Job, JobState
from ..core.summary import Summary
from .cluster_directory import tail

SLOW_SECONDS = 120.0
"""From a job's start: twice the time that a worker itself waits for its scheduler."""
AGAIN_SECONDS = 60.0
"""After these a log is read again: what hangs may have moved on."""
LINE = 200
LOG_END = 1 << 18
"""Bytes of a log that are read: an hour's stacks have room in them."""
PHASE = re.compile(r"gpucluster: (?P<what>.+?) since (?P<time>\S+)(?: \(.*\))?")
"""A line of a job's script, or of what starts its Python."""
STACK = "gpucluster: stack, innermost first:"
FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+) in .+')
"""A line of a stack, as `start_worker.stacks` writes it."""
MACHINERY = re.compile(r"<frozen |.*/importlib/|.*/(workerstart|start_worker)\.py$")
"""Files of the frames of any import."""


@dataclass(frozen=True)
class Place:
    """Progress of the start of a job's workers."""

    phase: str
    """The same text as long as the same step goes on."""
    words: str


class SlowStarts:
    """Reports how far the start of late workers is, and again when it moves on."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.late: dict[str, tuple[float, Place]] = {}
        """Time of the last look and its result, for each job that is late."""

    def due(self, active: Iterable[Job], connected: Collection[str], now: float) -> list[Job]:
        """Return the jobs whose logs are to be read now, and forget those that are late no more."""
        jobs = {
            job.key: job
            for job in active
            if job.state is JobState.RUNNING and not job.connected and job.key not in connected
            if job.started is not None and now - job.started > SLOW_SECONDS
        }
        self.late = {key: late for key, late in self.late.items() if key in jobs}
        recent = {key for key, (looked, _) in self.late.items() if now - looked < AGAIN_SECONDS}
        return [job for key, job in jobs.items() if key not in recent]

    def look(self, jobs: Sequence[Job], now: float) -> list[tuple[str, str]]:
        """Read logs, and return the news: jobs with a sentence."""
        news = []
        for job in jobs:
            place = self.place(job.key, now)
            words = words_of(job, place, now, "a worker")
            before = self.late.get(job.key)
            self.late[job.key] = now, replace(place, words=words)
            if before is None or before[1].phase != place.phase:
                news.append((job.key, words))
        return news

    def add_to(self, summary: Summary) -> Summary:
        """Give the summary the reason of the first late job, if it has no reason."""
        if summary.reason or not self.late:
            return summary
        (_, first), *others = self.late.values()
        more = f" Likewise {len(others)} more." if others else ""
        return replace(summary, reason=f"{first.words}.{more}")

    def told_of(self, job: Job, now: float, lacking: str) -> str:
        """Return how far one job is, or empty text while it is not late."""
        if job.started is None or now - job.started <= SLOW_SECONDS:
            return ""
        return f"{words_of(job, self.place(job.key, now), now, lacking)}."

    def place(self, key: str, now: float) -> Place:
        """Read from its log how far the start of a job's workers is."""
        log = self.logs / f"{key}.log"
        if not log.is_file():
            return Place("", "there is no log of it; does its node see the cluster's directory?")
        lines = tail(log, LOG_END, most=LOG_END).splitlines()
        return place_of([line.strip() for line in lines if line.strip()], now)


def words_of(job: Job, place: Place, now: float, lacking: str) -> str:
    """Return a sentence on a job that lacks a worker or a head."""
    ran = now - (job.started or now)
    return f"{job.key} has run for {_length(ran)} without {lacking}: {place.words}"


def place_of(lines: Sequence[str], now: float) -> Place:
    """Return where the lines of a log end."""
    phases = [(number, found) for number, line in enumerate(lines) if (found := read_phase(line))]
    number, (what, since) = phases[-1] if phases else (-1, ("", 0.0))
    rest = lines[number + 1 :]
    texts = [line for line in rest if line != STACK and not FRAME.fullmatch(line)]
    last = "".join(c for c in texts[-1] if c.isprintable())[:LINE] if texts else ""
    if "to connect to" in last:
        words = f"it does not reach the scheduler; see network.interface ({last})"
        return Place("unreachable", words)
    if not what:
        return Place("", f"its log ends with: {last}" if last else "its log is empty")
    clock = datetime.fromtimestamp(since).strftime("%H:%M")
    words = f"{what} since {clock} ({_length(now - since)})"
    if where := innermost(rest):
        words += f", at {where}"
    elif last:
        words += f"; its log ends with: {last}"
    return Place(what, words)


def read_phase(line: str) -> tuple[str, float] | None:
    """Return the step that a line of a job names, and its start."""
    if found := PHASE.fullmatch(line):
        with contextlib.suppress(ValueError, OverflowError):
            when = datetime.strptime(found["time"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
            return found["what"], when
    return None


def innermost(lines: Sequence[str]) -> str:
    """Return the innermost place of a log's last stack that is not Python's own way to import."""
    starts = [number for number, line in enumerate(lines, 1) if line == STACK]
    for line in lines[starts[-1] :] if starts else ():
        frame = FRAME.fullmatch(line)
        if frame is not None and not MACHINERY.match(frame["file"]):
            return f"line {frame['line']} of {frame['file'][-LINE:]}"
    return ""


def _length(seconds: float) -> str:
    minutes = max(0, int(seconds // 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
