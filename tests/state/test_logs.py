"""Logs of jobs are found where they are: ours, and what systems write under names of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import Record, Spec, Target
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.state.logs import find_logs, logs_of
from jupyter_gpucluster.state.view import Look

ONE, TWO = "gpc-abc123-1", "gpc-abc123-2"


@pytest.fixture
def look(home: Path) -> Look:
    """Return a cluster on PBS with two arrays, one of whose jobs is dead."""
    directory = ClusterDirectory(home / "clusters" / "abc123")
    directory.logs.mkdir(parents=True)
    work = home / "work"
    work.mkdir()
    spec = Spec("pbs", "PBS", "pbs", "/usr/bin/python3", started_in=str(work))
    jobs = (
        Job(ONE, 0, JobState.FAILED, "12[0].server", ended=1.0),
        Job(ONE, 1, JobState.RUNNING, "12[1].server"),
        Job(TWO, 0, JobState.PENDING, "13.server"),
    )
    record = Record("abc123", "mine", spec, Target(3, 3), 0.0, jobs=jobs)
    return Look(directory, record, None)


def put(look: Look, *names: str, elsewhere: bool = False) -> None:
    place = Path(look.record.spec.started_in) if elsewhere else look.directory.logs
    for name in names:
        (place / name).write_text("words\n")


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_the_heads_log_comes_first_and_only_logs_are_shown(look: Look) -> None:
    put(look, f"{ONE}_0.log", "head.log", f"{ONE}.out", "core.1234", "notes.txt")
    assert names(find_logs(look)) == ["head.log", f"{ONE}.out", f"{ONE}_0.log"]


def test_what_a_system_wrote_before_the_log_was_open_belongs_to_the_job(look: Look) -> None:
    put(look, f"{ONE}_0.log", f"{ONE}_1.log", f"{ONE}.out", f"{ONE}.0.out", f"{ONE}.out.1")
    paths, jobs = find_logs(look), look.record.jobs
    assert names(logs_of(f"{ONE}_0", paths, jobs)) == [f"{ONE}.0.out", f"{ONE}.out", f"{ONE}_0.log"]
    assert names(logs_of(f"{ONE}_1", paths, jobs)) == [f"{ONE}.out", f"{ONE}.out.1", f"{ONE}_1.log"]
    assert names(logs_of(ONE, paths, jobs)) == [f"{ONE}.out"]


def test_files_under_the_systems_own_names_are_found_where_the_job_was_submitted(
    look: Look,
) -> None:
    put(look, f"{ONE}.o12.0", f"{ONE}.e12.1", f"{TWO}.o13", elsewhere=True)
    put(look, f"{ONE}.o99", "other.o12", f"{TWO}.o131", elsewhere=True)
    assert names(find_logs(look)) == [f"{ONE}.e12.1", f"{ONE}.o12.0", f"{TWO}.o13"]
    dead = logs_of(f"{ONE}_0", find_logs(look), look.record.jobs)
    assert f"{ONE}.o12.0" in names(dead)


@pytest.mark.parametrize(
    "backend, id, name",
    [
        ("slurm", "77_0", "slurm-77_0.out"),
        ("slurm", "77", "slurm-77.out"),
        ("sge", "77.1", f"{ONE}.o77.1"),
        ("torque", "77[0].server", f"{ONE}.o77-0"),
        ("oar", "77", f"OAR.{ONE}.77.stderr"),
        ("cobalt", "77", "77.cobaltlog"),
    ],
)
def test_each_system_has_its_names(look: Look, backend: str, id: str, name: str) -> None:
    record = look.record
    jobs = (replace(record.jobs[0], id=id),)
    spec = replace(record.spec, backend=backend)
    changed = replace(look, record=replace(record, spec=spec, jobs=jobs))
    put(look, name, elsewhere=True)
    assert names(find_logs(changed)) == [name]
    assert names(logs_of(f"{ONE}_0", find_logs(changed), jobs)) == [name]


def test_a_job_without_an_id_claims_no_files(look: Look) -> None:
    jobs = (Job(ONE, 0),)
    put(look, f"{ONE}.o12", "slurm-1.out", elsewhere=True)
    assert find_logs(replace(look, record=replace(look.record, jobs=jobs))) == []
