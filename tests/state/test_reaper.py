"""The end of a cluster whose head was killed is the same for everybody who finds it dead."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target
from jupyter_gpucluster.core.errors import HeadUnreachable
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.core.summary import Summary
from jupyter_gpucluster.head.process import fail
from jupyter_gpucluster.head.state_files import StateFiles
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.processes import this_process
from jupyter_gpucluster.state.reaper import (
    ASKED_TO_STOP,
    BY_FORCE,
    WHILE_STOPPING,
    end_head,
    record_death,
)
from tests.commands import put_command

DENIED = "slurm_load_jobs error: Invalid job id specified"
LISTED = "7|RUNNING|None|node1|N/A|N/A|0|gpc-abc123-1"
SUMMARY = Summary("abc123", "x", "p", Phase.RUNNING, 1.0, "", "", revision=0, written=1.0)


@pytest.fixture
def directory(tmp_path: Path) -> ClusterDirectory:
    made = ClusterDirectory(tmp_path / "abc123")
    made.create()
    return made


@pytest.fixture
def record(directory: ClusterDirectory) -> Record:
    spec = Spec(profile="local", title="", backend="local", python="/usr/bin/python3")
    made = Record("abc123", "x", spec, Target(1, 1), created=1.0, phase=Phase.RUNNING)
    directory.write_record(made)
    return made


def test_a_head_that_died_by_itself_is_a_failure(
    directory: ClusterDirectory, record: Record
) -> None:
    assert record_death(directory, record).phase is Phase.FAILED


def test_who_finds_a_head_dead_while_it_is_ended_by_force_tells_the_same_end(
    directory: ClusterDirectory, record: Record
) -> None:
    end_head(directory, record)
    record_death(directory, record)  # by somebody who had read the record before
    told = directory.read_record()
    assert (told.phase, told.reason) == (Phase.STOPPED, BY_FORCE)


def test_a_head_that_could_not_be_ended_was_not_ended_by_force(
    directory: ClusterDirectory, record: Record
) -> None:
    elsewhere = replace(record, head=replace(this_process(), host="another-host"))
    with pytest.raises(HeadUnreachable, match="another-host"):
        end_head(directory, elsewhere)
    assert record_death(directory, record).phase is Phase.FAILED


def test_a_head_that_died_while_the_cluster_stopped_is_no_failure(
    directory: ClusterDirectory, record: Record
) -> None:
    stopping = replace(record, stop_requested=2.0, reason="Maximum lifetime reached.")
    over = record_death(directory, stopping)
    assert over.phase is Phase.STOPPED
    assert over.reason == f"Maximum lifetime reached. {WHILE_STOPPING}"


def test_who_asked_for_the_end_of_a_dying_head_has_got_it(
    directory: ClusterDirectory, record: Record
) -> None:
    (directory.path / ASKED_TO_STOP).touch()  # the head may not have written it down
    over = record_death(directory, record)
    assert (over.phase, over.reason) == (Phase.STOPPED, WHILE_STOPPING)
    assert not (directory.path / ASKED_TO_STOP).exists()


def test_a_cluster_that_stopped_because_it_failed_has_failed(
    directory: ClusterDirectory, record: Record
) -> None:
    failing = replace(record, stop_requested=2.0, outcome=Phase.FAILED, reason="No job started.")
    over = record_death(directory, failing)
    assert over.phase is Phase.FAILED
    assert over.reason.startswith("No job started.")


def test_a_head_that_fails_while_it_stops_has_stopped(
    directory: ClusterDirectory, record: Record
) -> None:
    fail(directory, replace(record, stop_requested=2.0), "", OSError("a disk is broken"))
    told = directory.read_record()
    assert told.phase is Phase.STOPPED
    assert "a disk is broken" in told.reason


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("age,ended", [(60, False), (600, True)])
def test_a_cluster_of_another_host_is_ended_from_here_once_its_lease_has_lapsed(
    age: float, ended: bool, force: bool, directory: ClusterDirectory, record: Record,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    put_command(tmp_path, monkeypatch, "scontrol", f"echo {DENIED} >&2; exit 1")
    cancels = put_command(tmp_path, monkeypatch, "scancel", "exit 0")
    put_command(tmp_path, monkeypatch, "squeue", f"[ -e {cancels} ] || echo '{LISTED}'")
    job = Job("gpc-abc123-1", 0, JobState.RUNNING, id="7")
    head = replace(this_process(), host="another-host")
    spec = replace(record.spec, backend="slurm")
    directory.write_record(
        replace(record, spec=spec, head=head, jobs=(job,), http_address="127.0.0.1:1")
    )
    directory.renew_lease()
    os.utime(directory.lease, (time.time() - age,) * 2)
    clusters = Clusters(tmp_path)
    if not ended:
        with pytest.raises(HeadUnreachable, match="another-host"):
            clusters.stop("abc123", force=force)
        assert not cancels.exists()
        return
    assert clusters.stop("abc123", force=force).phase is Phase.STOPPED
    assert cancels.read_text() == "7\n"
    # The head ends, too, if it lives after all.
    files = StateFiles(directory, SUMMARY)
    assert asyncio.run(files.look_for_record(time.time()))
