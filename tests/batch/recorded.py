"""Recorded answers of real batch systems, and the table of what each of them means."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_gpucluster.batch.base import Backend
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable
from jupyter_gpucluster.core.job import CommandResult, JobStatus, Submission

CAPTURED = Path(__file__).parent.parent / "captured"
FORM = re.compile(r"\$ (.*)\n--- exit (.*)\n--- stdout\n(.*?)--- stderr\n(.*)", re.DOTALL)
COLUMNS = ("file", "call", "id", "state", "exit_code", "mark", "task", "words")
WORDS = 5
"""Number of characters of a sentence in the table."""


@dataclass(frozen=True)
class Recording:
    """One recorded command, and the rows that say what its answer means."""

    system: str
    file: str
    call: str
    rows: tuple[Mapping[str, str], ...]

    @property
    def result(self) -> CommandResult:
        """The answer of the command."""
        text = (CAPTURED / self.system / self.file).read_text("utf-8")
        match = FORM.fullmatch(text)
        assert match, f"{self.file} is no recording"
        command, code, out, err = match.groups()
        argv = tuple(shlex.split(command, comments=True))
        return CommandResult(argv, None if code == "timeout" else int(code), out, err)


def recordings(system: str, call: str) -> list[Recording]:
    """Return the recordings of a system that one call of its dialect reads."""
    with (CAPTURED / system / "expected.tsv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    files = dict.fromkeys(row["file"] for row in rows if row["call"] == call)
    return [
        Recording(system, file, call, tuple(row for row in rows if row["file"] == file))
        for file in files
    ]


def meaning_of_listing(
    backend: Backend, recording: Recording
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return what the dialect reads in a listing, and what the table says, both as rows."""
    parse = {"status": backend.parse_status, "history": backend.parse_history}[recording.call]
    try:
        listed = parse(recording.result)
    except BackendUnavailable:
        read = [row_of(recording, "", state="unavailable")]
    else:
        read = [status_row(backend, recording, status) for status in listed.values()]
        read = read or [row_of(recording, "", state="empty")]
    return by_id(read), by_id([dict(row) for row in recording.rows])


def meaning_of_submission(
    backend: Backend, recording: Recording, count: int
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Return what the dialect reads in a submit command's answer, and what the table says."""
    if "array_too_big" in recording.file:
        count = 5000  # of one job another hint is given
    submission = Submission("gpc-7f3a2b-1", "/home/alice/job.sh", count)
    try:
        ids = backend.parse_submit(submission, recording.result)
    except BackendUnavailable:
        row = row_of(recording, "", state="unavailable")
    except BackendError as error:
        row = row_of(recording, "", state="refused", words=beginning(error.hint))
    else:
        row = row_of(recording, " ".join(ids), state="accepted")
    return [row], [dict(row) for row in recording.rows]


def status_row(backend: Backend, recording: Recording, status: JobStatus) -> dict[str, str]:
    """Write a status as a row of the table."""
    return row_of(
        recording,
        status.id,
        state=status.state.value,
        exit_code="" if status.exit_code is None else str(status.exit_code),
        mark=status.mark,
        task=str(status.task),
        words=beginning(backend.explain(status)),
    )


def row_of(recording: Recording, id: str, **values: str) -> dict[str, str]:
    """Make a row of the table, empty where nothing is said."""
    row = dict.fromkeys(COLUMNS, "")
    return {**row, "file": recording.file, "call": recording.call, "id": id, **values}


def by_id(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Sort rows; systems list jobs in no fixed order."""
    return sorted(rows, key=lambda row: row["id"])


def beginning(sentence: str) -> str:
    """Return the first words of a sentence."""
    return " ".join(sentence.split()[:WORDS])
