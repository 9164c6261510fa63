"""Slurm's dialect against recorded answers of version 22.05."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.slurm import ACCOUNTED, LISTED, Slurm
from jupyter_gpucluster.core.job import CommandResult, JobState, JobStatus
from tests.batch.golden import example_of, golden, script_of
from tests.batch.recorded import Recording, meaning_of_listing, meaning_of_submission, recordings

SLURM = Slurm()


class OurColumns(Recording):
    """A recorded listing with those of its columns, in their order, for which we ask."""

    @property
    def result(self) -> CommandResult:
        whole = super().result
        wanted = LISTED if self.call == "status" else ACCOUNTED
        there = [word for word in whole.argv if "," in word]
        columns = [name.partition(":")[0] for name in there[-1].split(",")] if there else []
        if not set(wanted) <= set(columns):
            return whole
        rows = [line.split("|") for line in whole.stdout.splitlines()]
        kept = ["|".join(row[columns.index(name)] for name in wanted) for row in rows]
        return replace(whole, stdout="".join(f"{row}\n" for row in kept))


def listings(call: str) -> list[Recording]:
    return [OurColumns(r.system, r.file, r.call, r.rows) for r in recordings("slurm", call)]


@pytest.mark.parametrize(
    "recording", listings("status") + listings("history"), ids=lambda recording: recording.file
)
def test_every_recorded_listing_is_read(recording: Recording) -> None:
    read, expected = meaning_of_listing(SLURM, recording)
    assert read == expected


@pytest.mark.parametrize(
    "recording", recordings("slurm", "submit"), ids=lambda recording: recording.file
)
def test_every_recorded_submission_is_understood(recording: Recording) -> None:
    read, expected = meaning_of_submission(SLURM, recording, 1)
    assert read == expected


@pytest.mark.parametrize("name", ["CLUSTER: cm2\n", "CLUSTER: cm2\n\nCLUSTER: cm3\n"])
def test_a_listing_of_other_clusters_names_them_and_may_be_empty(name: str) -> None:
    argv = tuple(SLURM.status("ann", ()))
    assert SLURM.parse_status(CommandResult(argv, 0, name)) == {}
    row = "|".join({"JobArrayID": "7_0", "State": "RUNNING"}.get(field, "") for field in LISTED)
    assert list(SLURM.parse_status(CommandResult(argv, 0, f"{name}{row}\n"))) == ["7_0"]


@pytest.mark.parametrize(
    "state, reason, hopeless",
    [
        ("PENDING", "DependencyNeverSatisfied", True),
        ("CANCELLED", "DependencyNeverSatisfied", False),
        ("PENDING", "Dependency", False),
        ("PENDING", "PartitionTimeLimit", False),
    ],
)
def test_what_it_depends_on_may_never_happen(state: str, reason: str, hopeless: bool) -> None:
    known = {"JobArrayID": "7_0", "State": state, "Reason": reason}
    row = "|".join(known.get(field, "") for field in LISTED)
    [status] = SLURM.parse_status(CommandResult(("squeue",), 0, f"{row}\n")).values()
    assert status.hopeless is hopeless
    assert (reason != "DependencyNeverSatisfied") or "--dependency" in SLURM.explain(status)


def test_tasks_of_an_array_are_cancelled_together() -> None:
    ids = ["7_0", "7_1", "7_2", "9", "7_5", "8_3"]
    assert SLURM.cancel(ids) == ["scancel", "7_[0-2,5]", "9", "8_3"]
    assert SLURM.cancel(["7_4"]) == ["scancel", "7_4"]


@pytest.mark.parametrize(
    "code,words",
    [
        (-53, "could not start it"),
        (-9, "killed by signal 9, as where it uses more memory"),
        (-15, "killed by signal 15."),
        (3, "exit code 3"),
    ],
)
def test_a_failure_is_told_by_what_ended_the_job(code: int, words: str) -> None:
    assert words in SLURM.explain(JobStatus("1", JobState.FAILED, exit_code=code))


def test_the_documented_example_renders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    text = script_of(example_of("slurm"), tmp_path)
    assert text == golden("slurm_example.sh", text)
