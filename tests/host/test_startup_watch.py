"""Jobs that run for minutes before their workers come, or without end."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.core.summary import Summary
from jupyter_gpucluster.head.reconcile.model import Observation, active
from jupyter_gpucluster.head.summary import summarise
from jupyter_gpucluster.host.startup_watch import SlowStarts, read_phase
from jupyter_gpucluster.launch.script.launchers import phase_line

SPEC = Spec(profile="p", title="P", backend="slurm", python="python")
JOB = Job("gpc-abc123-1", 0, JobState.RUNNING, id="7", started=1000.0)
KEY = "gpc-abc123-1_0"
STACK = """\
gpucluster: stack, innermost first:
  File "<frozen importlib._bootstrap_external>", line 1127 in get_data
  File "<frozen importlib._bootstrap>", line 1027 in _find_and_load
  File "/envs/x/numpy/__init__.py", line {line} in <module>
  File "<frozen importlib._bootstrap>", line 1027 in _find_and_load
  File "/usr/lib/python3.11/importlib/__init__.py", line 126 in import_module
  File "/c/jobs/workerstart.py", line 36 in main
"""


def record_of(*jobs: Job) -> Record:
    return Record("abc123", "c", SPEC, Target(1, 1), created=0.0, jobs=jobs)


def summary_of(record: Record) -> Summary:
    return summarise(record, Observation(), 1200.0)


def phase(what: str, since: float) -> str:
    return f"gpucluster: {what} since {datetime.fromtimestamp(since).astimezone().isoformat()}\n"


def clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%H:%M")


def test_a_job_is_late_two_minutes_after_its_start_and_its_log_is_read_each_minute(
    tmp_path: Path,
) -> None:
    starts = SlowStarts(tmp_path)
    assert starts.due(active(record_of(JOB)), (), 1100.0) == []
    assert starts.due(active(record_of(JOB)), (), 1121.0) == [JOB]
    starts.look([JOB], 1121.0)
    assert starts.due(active(record_of(JOB)), (), 1150.0) == []
    assert starts.due(active(record_of(JOB)), (), 1181.0) == [JOB]


@pytest.mark.parametrize(
    "changes, connected",
    [
        ({"connected": True}, ()),
        ({}, (KEY,)),
        ({"state": JobState.PENDING}, ()),
        ({"state": JobState.SUSPENDED}, ()),
        ({"started": None}, ()),
        ({"retiring_since": 1100.0}, ()),
        ({"ended": 1100.0, "state": JobState.FAILED}, ()),
    ],
)
def test_a_job_that_waits_for_nothing_is_not_late_and_is_no_longer_reported(
    changes: dict[str, object], connected: tuple[str, ...], tmp_path: Path
) -> None:
    starts = SlowStarts(tmp_path)
    starts.look([JOB], 1121.0)
    job = replace(JOB, **changes)  # type: ignore[arg-type]  # of several types
    assert starts.due(active(record_of(job)), connected, 2000.0) == []
    assert starts.add_to(summary_of(record_of(job))).reason == ""


@pytest.mark.parametrize(
    "log, words",
    [
        (None, "there is no log of it; does its node see the cluster's directory?"),
        ("", "its log is empty"),
        ("on n1 since today\n", "its log ends with: on n1 since today"),
        (phase("in environment.prologue", 1000), "in environment.prologue since {1000} (5 min)"),
        (f"{phase('in environment.prologue', 1000)}Lmod is reading the cache\n\n",
         "in environment.prologue since {1000} (5 min); its log ends with: Lmod is reading the"),
        (f"{phase('in environment.prologue', 1000)}loaded\n{phase('starting Python', 1060)}",
         "starting Python since {1060} (4 min)"),
        (phase("importing distributed", 1060) + STACK.format(line=24) + STACK.format(line=25),
         "importing distributed since {1060} (4 min), at line 25 of /envs/x/numpy/__init__.py"),
        (f"on n1\n{phase('importing distributed', 1060)}{STACK.format(line=24)}"
         f"{phase('starting workers', 1290)}", "starting workers since {1290} (0 min)"),
        ("on n1\ndistributed.worker - INFO - Waiting to connect to: tls://10.0.0.1:8786\n",
         "it does not reach the scheduler; see network.interface (distributed.worker - INFO"),
        ("on n1\n\x1b[31mred\x1b[0m\n", "its log ends with: [31mred[0m"),
        ("gpucluster: in a hurry since ever\n", "its log ends with: gpucluster: in a hurry since"),
    ],
)  # fmt: skip
def test_it_is_said_how_far_the_start_has_got_and_since_when(
    log: str | None, words: str, tmp_path: Path
) -> None:
    if log is not None:
        (tmp_path / f"{KEY}.log").write_text(log)
    for time in (1000, 1060, 1290):
        words = words.replace(f"{{{time}}}", clock(time))
    [(key, told)] = SlowStarts(tmp_path).look([JOB], 1300.0)
    assert key == KEY
    assert told.startswith(f"{KEY} has run for 5 min without a worker: {words}")
    assert told.endswith(words[-1]) or "ends with" in words or "reach" in words


def test_a_start_that_moves_on_is_reported_again_and_the_summary_has_the_last_text(
    tmp_path: Path,
) -> None:
    starts, log, record = SlowStarts(tmp_path), tmp_path / f"{KEY}.log", record_of(JOB)
    log.write_text(phase("in environment.prologue", 1000))
    assert len(starts.look([JOB], 1121.0)) == 1
    assert starts.look([JOB], 1181.0) == []
    assert "(3 min)" in starts.add_to(summary_of(record)).reason
    log.write_text(log.read_text() + phase("importing distributed", 1200))
    assert len(starts.look([JOB], 1241.0)) == 1
    assert "importing distributed since" in starts.add_to(summary_of(record)).reason


def test_what_else_is_to_be_said_goes_before_a_slow_start(tmp_path: Path) -> None:
    starts = SlowStarts(tmp_path)
    starts.look([JOB], 1121.0)
    summary = replace(summary_of(record_of(JOB)), phase=Phase.FAILED, reason="Refused.")
    assert starts.add_to(summary).reason == "Refused."


def test_a_line_of_a_script_is_read_as_the_shell_writes_it() -> None:
    line = subprocess.check_output(["sh", "-c", phase_line("starting Python")], text=True)
    found = read_phase(line.strip())
    assert found is not None
    assert found[0] == "starting Python"
    assert abs(found[1] - datetime.now().timestamp()) < 3600
