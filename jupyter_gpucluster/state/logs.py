"""Find and read the logs and scripts of a cluster's jobs, also the batch system's own files."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ..batch import BACKENDS, on_this_machine
from ..core.errors import ClusterNotFound
from ..core.job import Job
from ..host.cluster_directory import KEPT_SCRIPTS, ClusterDirectory, tail
from .view import JobScript, Look

OURS = re.compile(r".*\.(?:log|out(?:\.\d+)?|[oe]\d+(?:[.\-_]\d+)?)")
"""Logs among the files of a cluster; some systems call them ``.o`` or ``.e`` and the job's id."""
NOTHING = "(?!)"


def read_logs(look: Look, job: str, lines: int) -> str:
    """Return the last lines of every log, or of one job's; see `Clusters.logs`."""
    paths = find_logs(look)
    if job:
        known = ", ".join(path.stem for path in paths)
        paths = logs_of(job, paths, look.record.jobs)
        if not paths:
            raise ClusterNotFound(
                f"Cluster {look.record.name} has no log of job {job!r}.",
                hint=f"There are: {known}.",
            )
    return "\n".join(f"==> {path.name} <==\n{tail(path, lines)}" for path in paths)


def read_scripts(directory: ClusterDirectory) -> tuple[JobScript, ...]:
    """Return the scripts of the last submissions, the newest first."""
    tags = reversed(directory.marks()[-KEPT_SCRIPTS:])
    return tuple(found for tag in tags if (found := _script(directory, tag)))


def find_logs(look: Look) -> list[Path]:
    """Return the logs of head and jobs, the head's first, then by name.

    Beside a job's own log stands what the batch system and the shell said before it was open.
    Where a profile leaves out the directive that names that file, the system makes one under a
    name of its own in the directory in which the job was submitted.
    """
    directory, record = look.directory, look.record
    found = [directory.logs / name for name in _names(directory.logs) if OURS.fullmatch(name)]
    found.sort(key=lambda path: (path.name != "head.log", path.name))
    elsewhere = record.spec.started_in
    if elsewhere and not on_this_machine(record.spec.backend):
        pattern = re.compile("|".join(map(theirs, record.jobs)) or NOTHING)
        names = filter(pattern.fullmatch, _names(Path(elsewhere)))
        found += sorted(Path(elsewhere, name) for name in names)
    return found


def logs_of(job: str, paths: Sequence[Path], jobs: Sequence[Job]) -> list[Path]:
    """Return the logs of one job: those named after it, and what its system says of it.

    Parameters
    ----------
    job
        A job's key, or the name of a log without its suffix, such as ``head``.
    """
    mark, _, task = job.rpartition("_")
    names = {f"{mark}.out", f"{mark}.{task}.out", f"{mark}.out.{task}"}
    ours = [one for one in jobs if one.key == job]
    pattern = re.compile("|".join(map(theirs, ours)) or NOTHING)
    return [
        path
        for path in paths
        if path.stem == job or path.name in names or pattern.fullmatch(path.name)
    ]


def theirs(job: Job) -> str:
    """Return a pattern of the names that batch systems give to a job's output by themselves."""
    mark, number = re.escape(job.mark), re.match(r"\d+", job.id)
    n = number[0] if number else NOTHING
    task = rf"(?:[.\-_]{job.task}|[.\-_]{job.task + 1})?"
    patterns = {pattern for backend in BACKENDS.every() for pattern in backend.own_logs}
    return "|".join(each.format(mark=mark, number=n, task=task) for each in patterns) or NOTHING


def _script(directory: ClusterDirectory, tag: str) -> JobScript | None:
    """Read the script of a submission and its command; None if it was deleted meanwhile."""
    path, command = directory.script(tag), ""
    try:
        text, written = path.read_text("utf-8", "replace"), path.stat().st_mtime
    except OSError:
        return None
    with contextlib.suppress(OSError):
        command = directory.command(tag).read_text("utf-8", "replace")
    return JobScript(tag, text, command, written)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208  # names alone are asked for
    except OSError:
        return []
