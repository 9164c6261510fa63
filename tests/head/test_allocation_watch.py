"""The head notices the end of the allocation whose nodes its workers use."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import HeldJob
from jupyter_gpucluster.core.job import JobState, JobStatus
from jupyter_gpucluster.head.own_job import FIRST, PERIOD, HeldJobWatch
from jupyter_gpucluster.head.reconcile.model import Observation, clocks

from ..commands import put_command
from .world import a_record

HELD = HeldJob("slurm", "65", "Slurm job 65", "n[1-2]", ends=500.0)
RUNS = {"gpc-abc123-1_0": JobStatus("gpc-abc123-1_0", JobState.RUNNING)}
ENDED = {"gpc-abc123-1_0": JobStatus("gpc-abc123-1_0", JobState.FAILED)}
LINE = (
    "JobId=65 JobName=x UserId=ann(1) JobState={} Reason=None NodeList=n[1-2] NumNodes=2 NumCPUs=2"
)
NEW_END = " StartTime=2026-11-28T00:00:00 EndTime=2026-11-28T01:00:00"


class System:
    """A program in place of scontrol."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answer_file = place / "answer"
        self.calls = put_command(place, monkeypatch, "scontrol", f". {self.answer_file}")
        self.calls.touch()

    def answer(self, state: str, more: str = "") -> None:
        self.answer_file.write_text(f"echo '{LINE.format(state)}{more}'\n")

    def asked(self) -> int:
        return len(self.calls.read_text().splitlines())


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    return System(tmp_path, monkeypatch)


def look(watch: HeldJobWatch, listing: dict[str, JobStatus], now: float) -> str:
    return asyncio.run(watch.look(listing, now))


def test_it_asks_now_and_then_and_learns_a_new_end(system: System) -> None:
    watch = HeldJobWatch(HELD, system.calls.parent)
    system.answer("RUNNING", NEW_END)
    assert look(watch, RUNS, 1000.0) == ""
    assert (watch.ends, system.asked()) == (500.0, 0)
    assert look(watch, RUNS, 1000.0 + FIRST) == ""
    assert watch.ends is not None
    assert watch.ends > 500.0
    assert look(watch, RUNS, 1001.0 + FIRST) == ""
    assert system.asked() == 1
    look(watch, RUNS, 1000.0 + FIRST + PERIOD)
    assert system.asked() == 2


def test_workers_that_are_lost_are_a_reason_to_ask_at_once_but_once(system: System) -> None:
    watch = HeldJobWatch(HELD, system.calls.parent)
    system.answer("RUNNING")
    look(watch, RUNS, 1000.0)
    assert look(watch, ENDED, 1001.0) == ""
    assert look(watch, ENDED, 1002.0) == ""
    assert system.asked() == 1


@pytest.mark.parametrize(
    "state, words", [("COMPLETING", ""), ("TIMEOUT", " It reached its walltime")]
)
def test_the_end_of_the_allocation_is_reported(system: System, state: str, words: str) -> None:
    system.answer(state)
    told = look(HeldJobWatch(HELD, system.calls.parent), ENDED, 1000.0)
    assert told.startswith(f"Slurm job 65, whose nodes it used, has ended.{words}")


def test_a_job_that_slurm_has_forgotten_has_ended(system: System) -> None:
    system.answer_file.write_text(
        "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
    )
    assert "has ended" in look(HeldJobWatch(HELD, system.calls.parent), ENDED, 1000.0)


def test_silence_changes_nothing(system: System) -> None:
    system.answer_file.write_text("exit 1")
    watch = HeldJobWatch(HELD, system.calls.parent)
    assert look(watch, ENDED, 1000.0) == ""
    assert watch.ends == 500.0


def test_a_cluster_without_an_allocation_runs_no_command(system: System) -> None:
    assert look(HeldJobWatch(None, Path()), ENDED, 1000.0) == ""
    assert system.asked() == 0


def test_the_end_of_the_allocation_is_a_clock_of_the_cluster() -> None:
    record = a_record()
    record = replace(record, spec=replace(record.spec, allocation=HELD))
    [clock] = clocks(record, Observation(allocation_ends=500.0))
    assert (clock.name, clock.ends, clock.job) == ("end of Slurm job 65", 500.0, "")
    assert clocks(record, Observation()) == []
