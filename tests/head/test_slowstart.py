"""Jobs that run for minutes before their workers come, or without end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.head.slowstart import SlowStarts
from jupyter_gpucluster.records import Job, JobState, Record, Spec, Target

SPEC = Spec(profile="p", title="P", backend="slurm", python="python")
JOB = Job("gpc-abc123-1", 0, JobState.RUNNING, id="7", started=1000.0)
KEY = "gpc-abc123-1_0"


def record_of(*jobs: Job) -> Record:
    return Record("abc123", "c", SPEC, Target(1, 1), created=0.0, jobs=jobs)


def test_a_job_is_late_two_minutes_after_its_start_and_told_of_once(tmp_path: Path) -> None:
    starts = SlowStarts(tmp_path)
    assert starts.late(record_of(JOB), (), 1100.0) == []
    assert starts.late(record_of(JOB), (), 1121.0) == [KEY]
    assert [key for key, _ in starts.words([KEY])] == [KEY]
    assert starts.late(record_of(JOB), (), 1200.0) == []


@pytest.mark.parametrize(
    "changes, connected",
    [
        ({"connected": True}, ()),
        ({}, (KEY,)),
        ({"state": JobState.PENDING}, ()),
        ({"state": JobState.SUSPENDED}, ()),
        ({"started": None}, ()),
        ({"leaving": 1100.0}, ()),
        ({"ended": 1100.0, "state": JobState.FAILED}, ()),
    ],
)
def test_a_job_without_anything_to_wait_for_is_not_late(
    changes: dict[str, object], connected: tuple[str, ...], tmp_path: Path
) -> None:
    job = replace(JOB, **changes)  # type: ignore[arg-type]  # of several types
    assert SlowStarts(tmp_path).late(record_of(job), connected, 2000.0) == []


@pytest.mark.parametrize(
    "log, words",
    [
        (None, "does its node see the cluster's directory?"),
        ("gpc-abc123-1_0 on n1 since today\n", "environment.prologue or the imports"),
        ("on n1\nLmod is reading the cache\n\n", "its log ends with: Lmod is reading the cache"),
        ("on n1\ndistributed.worker - INFO - Waiting to connect to: tls://10.0.0.1:8786\n",
         "does not reach the scheduler; see network.interface (distributed.worker - INFO"),
        ("on n1\n\x1b[31mred\x1b[0m\n", "ends with: [31mred[0m"),
    ],
)  # fmt: skip
def test_it_is_said_how_far_the_start_has_got(log: str | None, words: str, tmp_path: Path) -> None:
    if log is not None:
        (tmp_path / f"{KEY}.log").write_text(log)
    [(_, told)] = SlowStarts(tmp_path).words([KEY])
    assert told.startswith(f"{KEY} has run for 2 min without a worker: ")
    assert words in told
