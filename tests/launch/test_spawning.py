"""Arguments and variables of a new head, and the lock of its starter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import Record, Spec, Target
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.core.job import JobShape
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch import create
from jupyter_gpucluster.launch.spawning import spawn


@pytest.mark.parametrize(
    "backend, directives, clusters",
    [
        ("slurm", ("-M cm2",), "cm2"),
        ("slurm", ("-p gpu", "--clusters=cm2,cm3"), "cm2,cm3"),
        ("slurm", (), "here"),
        ("lsf", ("-M 5000",), "here"),
    ],
)
def test_a_head_looks_for_jobs_on_the_cluster_of_slurm_s_that_their_script_names(
    backend: str,
    directives: tuple[str, ...],
    clusters: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLURM_CLUSTERS", "here")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nprintf %s "$SLURM_CLUSTERS" >{tmp_path}/clusters\n')
    python.chmod(0o700)
    directory = ClusterDirectory(tmp_path / "abc123")
    directory.create()
    shape = JobShape(directives=directives)
    spec = Spec(profile="p", title="P", backend=backend, python=str(python), job=shape)
    record = Record("abc123", "c", spec, Target(1, 1), created=0.0)
    spawn(directory, tmp_path / "scratch", record, ())
    assert (tmp_path / "clusters").read_text() == clusters


def test_a_starter_does_not_wait_for_another_one_for_ever_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(create, "LOCK_SECONDS", 0.1)
    with create.one_starter(tmp_path), pytest.raises(StateError, match=f"process {os.getpid()} on"):
        with create.one_starter(tmp_path):
            raise AssertionError
    with create.one_starter(tmp_path):
        pass


def test_a_pipe_in_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(StateError, match="No such device"):
        with create.one_starter(tmp_path):
            raise AssertionError
