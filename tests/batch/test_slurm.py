"""Slurm's dialect against recorded answers of version 22.05."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch.slurm import LISTED, Slurm
from jupyter_gpucluster.core.job import CommandResult, JobState, JobStatus

SLURM = Slurm()


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
    assert status.unsatisfiable is hopeless
    assert (reason != "DependencyNeverSatisfied") or "--dependency" in SLURM.explain(status)


def test_tasks_of_an_array_are_cancelled_together() -> None:
    ids = ["7_0", "7_1", "7_2", "9", "7_1", "7_5", "8_3"]
    assert SLURM.cancel(ids) == ["scancel", "7_[0,1,2,5]", "9", "8_3"]
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
