"""A cluster whose record is damaged while it runs stays in its head's hands, and the user's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import (
    ClusterNotFound,
    GpuClusterError,
    NewerRecord,
    RecordError,
)
from jupyter_gpucluster.core.lease import LEASE_SECONDS
from jupyter_gpucluster.state.reader import START_SECONDS
from jupyter_gpucluster.state.view import ClusterView

from .conftest import StartHead
from .driving import ended, head_of, processes_of, until
from .test_silent_heads import stopped

REWRITTEN = LEASE_SECONDS + 15.0


def text(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def lack(path: Path) -> None:
    path.write_text(json.dumps({"version": 1, "id": "abc123"}))


def newer(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 999}))


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": truncate,
    "empty": text(b""),
    "binary": text(b"\xff\xfe\0\x01" * 100),
    "zeros": text(bytes(4096)),
    "a list": text(b"[]"),
    "a field missing": lack,
    "a directory": directory,
    "a pipe": pipe,
    "deleted": Path.unlink,
    "newer": newer,
}
each_damage = pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))


def damaged(view: ClusterView, damage: Callable[[Path], object]) -> Path:
    record = Path(view.directory) / "record.json"
    damage(record)
    return record


def aside(view: ClusterView) -> list[Path]:
    return list(Path(view.directory).glob("record.json.damaged-*"))


@each_damage
def test_a_running_cluster_is_stopped_by_its_id(
    clusters: Clusters, start_head: StartHead, damage: Callable[[Path], object]
) -> None:
    view = start_head()
    with stopped(head_of(view)):  # lest it writes the record again before we look
        damaged(view, damage)
        # As if nobody had looked for a while: no look may take it for what a starter left.
        then = Path(view.directory).stat().st_mtime - START_SECONDS - 1
        os.utime(view.directory, (then, then))
        clusters.list()
        [trouble] = clusters.survey(ended=True)[1]
        assert isinstance(trouble, RecordError)
        assert f"jupyter gpucluster stop {view.id}" in trouble.hint
        assert not aside(view)
        assert not clusters.orphans()
        with pytest.raises(RecordError):
            clusters.get(view.id)
    assert clusters.stop(view.id).id == view.id
    until(lambda: not processes_of(view.id))
    if damage is not newer:
        assert clusters.get(view.id).phase is Phase.STOPPED


@each_damage
def test_a_running_cluster_is_stopped_by_force(
    clusters: Clusters, start_head: StartHead, damage: Callable[[Path], object]
) -> None:
    view = start_head()
    with stopped(head_of(view)):
        damaged(view, damage)
        over = clusters.stop(view.id, force=True)
        assert over.phase is Phase.STOPPED
        until(lambda: not processes_of(view.id))
    if damage is newer:
        with pytest.raises(NewerRecord):
            clusters.get(view.id)
    else:
        assert "by force" in clusters.get(view.id).reason


def test_a_running_cluster_is_stopped_by_its_name(
    clusters: Clusters, start_head: StartHead
) -> None:
    view = start_head()
    with stopped(head_of(view)):
        damaged(view, truncate)
        with pytest.raises(ClusterNotFound) as caught:
            clusters.get(view.name)
    assert f"stop {view.id}" in caught.value.hint
    assert clusters.stop(view.name).name == view.name
    assert until(lambda: ended(clusters, view)).phase is Phase.STOPPED


def test_the_head_writes_its_record_again(clusters: Clusters, start_head: StartHead) -> None:
    views = [start_head() for _ in range(3)]
    with stopped(*map(head_of, views)):
        for view, name in zip(views, ("truncated", "deleted", "a directory"), strict=True):
            damaged(view, DAMAGE[name])
        assert not clusters.list()
    until(lambda: len(clusters.list()) == 3, REWRITTEN)
    assert not clusters.survey(ended=True)[1]
    until(lambda: all(clusters.get(view.name).phase is Phase.RUNNING for view in views))
    assert all(clusters.jobs(view.id) for view in views)


def test_a_damaged_record_of_a_dead_head_is_set_aside(
    clusters: Clusters, start_head: StartHead
) -> None:
    view = start_head()
    os.kill(head_of(view), 9)
    until(lambda: not processes_of(view.id))
    damaged(view, truncate)
    with pytest.raises(GpuClusterError):
        clusters.stop(view.id)
    assert aside(view)
