"""Lists of a process that looks again and again: what is remembered, and what never is."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Process, Record, Spec, Target
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.private_files import make_private
from jupyter_gpucluster.host.processes import this_process


@pytest.fixture
def clusters(tmp_path: Path) -> Clusters:
    root = tmp_path / "state" / "clusters"
    make_private(root.parent)
    make_private(root)
    return Clusters(root)


def put(clusters: Clusters, cluster_id: str, **changes: object) -> Record:
    """Put a cluster on disk whose head is this process."""
    record = Record(
        id=cluster_id,
        name=f"name-{cluster_id}",
        spec=Spec("p", "P", "slurm", "/usr/bin/python3"),
        phase=Phase.RUNNING,
        phase_since=time.time(),
        created=time.time(),
        target=Target(1, 1),
        jobs=(Job(mark=f"gpc-{cluster_id}-1", task=0, state=JobState.DONE),),
        head=this_process(),
        revision=1,
    )
    record = dataclasses.replace(record, **changes)  # type: ignore[arg-type]  # fields of a record
    directory = ClusterDirectory(clusters.root / cluster_id)
    if not directory.path.exists():
        directory.create()
    directory.write_record(record)
    return record


def test_what_has_not_changed_is_the_same_view(clusters: Clusters) -> None:
    put(clusters, "aaaaaa")
    put(clusters, "bbbbbb")
    first, second = clusters.list(), clusters.list()
    assert [view.id for view in first] == ["aaaaaa", "bbbbbb"]
    assert all(one is other for one, other in zip(first, second, strict=True))
    put(clusters, "bbbbbb", name="other", revision=2)
    third = clusters.list()
    assert third[0] is first[0]
    assert (third[1].name, third[1].revision) == ("other", 2)


def test_a_head_that_has_died_since_is_noticed_though_no_file_changed(clusters: Clusters) -> None:
    dead = Process(this_process().host, this_process().boot_id, this_process().pid, 1)
    put(clusters, "aaaaaa")
    [view] = clusters.list()
    assert view.phase is Phase.RUNNING
    [(files, look, known)] = clusters.memory._looks.values()
    gone = dataclasses.replace(look, record=put(clusters, "aaaaaa", head=dead))
    files = gone.directory.files()
    clusters.memory._looks["aaaaaa"] = (files, gone, known)
    [view] = clusters.list()
    assert view.phase is Phase.FAILED
    assert clusters.jobs("aaaaaa"), "burying a cluster keeps its jobs on record"


def test_what_ended_is_shown_only_when_asked_for_however_often(clusters: Clusters) -> None:
    put(clusters, "aaaaaa", phase=Phase.STOPPED, ended=time.time())
    for _ in range(2):
        assert clusters.list() == []
        [view] = clusters.list(ended=True)
        assert view.phase is Phase.STOPPED


def test_what_is_forgotten_is_gone_from_memory(clusters: Clusters) -> None:
    put(clusters, "aaaaaa")
    put(clusters, "bbbbbb", phase=Phase.STOPPED, ended=time.time())
    clusters.list()
    clusters.list(ended=True)
    for cluster_id in ("aaaaaa", "bbbbbb"):
        ClusterDirectory(clusters.root / cluster_id).remove()
    assert clusters.list(ended=True) == []
    assert not clusters.memory._looks


def test_what_cannot_be_read_is_told_each_time(clusters: Clusters) -> None:
    put(clusters, "aaaaaa")
    (clusters.root / "aaaaaa" / "record.json").write_text('{"version": 999}')
    for _ in range(2):
        views, troubles = clusters.survey()
        assert (list(views), len(troubles)) == ([], 1)


def test_a_list_reads_no_jobs_and_a_question_for_them_does(clusters: Clusters) -> None:
    put(clusters, "aaaaaa")
    [view] = clusters.list()
    assert clusters.memory._looks[view.id][1].record.jobs == ()
    assert len(clusters.jobs("aaaaaa")) == 1
