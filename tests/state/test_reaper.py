"""The end of a cluster whose head was killed is the same for everybody who finds it dead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target
from jupyter_gpucluster.core.errors import HeadUnreachable
from jupyter_gpucluster.head.process import fail
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.processes import this_process
from jupyter_gpucluster.state.reaper import ASKED_TO_STOP, BY_FORCE, WHILE_STOPPING, bury, end_head


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
    assert bury(directory, record).phase is Phase.FAILED


def test_who_finds_a_head_dead_while_it_is_ended_by_force_tells_the_same_end(
    directory: ClusterDirectory, record: Record
) -> None:
    end_head(directory, record)
    bury(directory, record)  # by somebody who had read the record before
    told = directory.read_record()
    assert (told.phase, told.reason) == (Phase.STOPPED, BY_FORCE)


def test_a_head_that_could_not_be_ended_was_not_ended_by_force(
    directory: ClusterDirectory, record: Record
) -> None:
    elsewhere = replace(record, head=replace(this_process(), host="another-host"))
    with pytest.raises(HeadUnreachable, match="another-host"):
        end_head(directory, elsewhere)
    assert bury(directory, record).phase is Phase.FAILED


def test_a_head_that_died_while_the_cluster_stopped_is_no_failure(
    directory: ClusterDirectory, record: Record
) -> None:
    over = bury(directory, replace(record, stop_requested=2.0, reason="Maximum lifetime reached."))
    assert over.phase is Phase.STOPPED
    assert over.reason == f"Maximum lifetime reached. {WHILE_STOPPING}"


def test_who_asked_for_the_end_of_a_dying_head_has_got_it(
    directory: ClusterDirectory, record: Record
) -> None:
    (directory.path / ASKED_TO_STOP).touch()  # the head may not have written it down
    over = bury(directory, record)
    assert (over.phase, over.reason) == (Phase.STOPPED, WHILE_STOPPING)
    assert not (directory.path / ASKED_TO_STOP).exists()


def test_a_cluster_that_stopped_because_it_failed_has_failed(
    directory: ClusterDirectory, record: Record
) -> None:
    failing = replace(record, stop_requested=2.0, outcome=Phase.FAILED, reason="No job started.")
    over = bury(directory, failing)
    assert over.phase is Phase.FAILED
    assert over.reason.startswith("No job started.")


def test_a_head_that_fails_while_it_stops_has_stopped(
    directory: ClusterDirectory, record: Record
) -> None:
    fail(directory, replace(record, stop_requested=2.0), "", OSError("a disk is broken"))
    told = directory.read_record()
    assert told.phase is Phase.STOPPED
    assert "a disk is broken" in told.reason
