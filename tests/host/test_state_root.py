"""Entries of the state root: a cluster directory, or a file that names it elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target
from jupyter_gpucluster.core.errors import ClusterNotFound, GpuClusterError, StateError
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.private_files import make_private
from jupyter_gpucluster.host.state_root import cluster_at, make_entry
from jupyter_gpucluster.state.reader import Memory, directories, find, look_at

SPEC = Spec(profile="local", title="", backend="local", python="/usr/bin/python3")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to act as another user")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_private(tmp_path / "clusters")
    return tmp_path / "clusters"


def an_ended_cluster(directory: ClusterDirectory, name: str) -> ClusterDirectory:
    directory.create()
    directory.write_record(
        Record(directory.id, name, SPEC, Target(1, 1), created=1.0, phase=Phase.STOPPED)
    )
    return directory


@pytest.fixture
def elsewhere(root: Path, tmp_path: Path) -> ClusterDirectory:
    """Return an ended cluster whose directory lies outside the state root."""
    make_private(tmp_path / "scratch")
    return an_ended_cluster(make_entry(root, tmp_path / "scratch" / "abc123"), "far")


def test_a_cluster_elsewhere_is_listed_and_found_like_the_others(
    root: Path, elsewhere: ClusterDirectory
) -> None:
    an_ended_cluster(cluster_at(root, "def456"), "near")
    assert [each.path for each in directories(root)] == [elsewhere.path, root / "def456"]
    for _ in range(2):  # the second time from memory
        views = [view for _, view in Memory().looks(root, ended=True, troubles=[])]
        assert [(view.name, view.directory) for view in views] == [
            ("far", str(elsewhere.path)),
            ("near", str(root / "def456")),
        ]
    for name in ("abc123", "far"):
        assert find(root, name).directory.path == elsewhere.path


def test_who_opens_a_directory_elsewhere_learns_its_root_from_the_record(
    root: Path, elsewhere: ClusterDirectory
) -> None:
    record = elsewhere.read_record()
    elsewhere.write_record(replace(record, spec=replace(SPEC, root=str(root))))
    opened = ClusterDirectory(elsewhere.path)
    assert opened.root == elsewhere.path.parent
    opened.read_record()
    assert opened.root == root
    root.rename(root.with_name("unmounted"))
    assert opened.root == elsewhere.path.parent


def test_its_entry_is_its_owners_alone_and_goes_with_it(
    root: Path, elsewhere: ClusterDirectory
) -> None:
    assert (root / "abc123").stat().st_mode & 0o7777 == 0o600
    with pytest.raises(StateError):
        make_entry(root, elsewhere.path)
    cluster_at(root, "abc123").remove()
    assert not elsewhere.path.exists()
    assert list(root.iterdir()) == []


def test_an_entry_whose_directory_is_gone_is_reported(
    root: Path, elsewhere: ClusterDirectory
) -> None:
    ClusterDirectory(elsewhere.path).remove()
    troubles: list[GpuClusterError] = []
    assert Memory().looks(root, ended=True, troubles=troubles) == []
    assert [str(elsewhere.path) in trouble.message for trouble in troubles] == [True]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda entry: entry.write_text("../scratch/abc123"), id="relative"),
        pytest.param(
            lambda entry: entry.write_text(f"{entry.parent}/../scratch/abc123"), id="climbing"
        ),
        pytest.param(lambda entry: entry.write_text("/scratch/def456"), id="another name"),
        pytest.param(lambda entry: entry.write_text(""), id="empty"),
        pytest.param(
            lambda entry: entry.write_text("/scratch\n/abc123\n/more/abc123 "), id="lines"
        ),
        pytest.param(lambda entry: entry.chmod(0o620), id="writable"),
        pytest.param(lambda entry: os.chown(entry, 12345, 12345), id="foreign", marks=needs_root),
    ],
)
def test_a_bad_entry_is_refused_and_kept_and_hides_no_other_cluster(
    root: Path, elsewhere: ClusterDirectory, damage: Callable[[Path], object]
) -> None:
    an_ended_cluster(cluster_at(root, "def456"), "near")
    entry, memory = root / "abc123", Memory()
    good = entry.read_bytes()
    damage(entry)
    troubles: list[GpuClusterError] = []
    assert [v.name for _, v in memory.looks(root, ended=True, troubles=troubles)] == ["near"]
    assert [str(entry) in trouble.message for trouble in troubles] == [True]
    with pytest.raises(StateError, match="refusing to use it"):
        find(root, "abc123")
    cluster_at(root, "abc123").remove()
    assert entry.exists()
    # A server that has reported it sees the repaired one.
    entry.unlink()
    entry.touch(0o600)
    entry.write_bytes(good)
    assert [v.name for _, v in memory.looks(root, ended=True, troubles=[])] == ["far", "near"]


def test_a_link_is_no_entry(root: Path, elsewhere: ClusterDirectory) -> None:
    (root / "abc123").unlink()
    (root / "abc123").symlink_to(elsewhere.path)
    with pytest.raises(StateError, match="symbolic link"):
        look_at(cluster_at(root, "abc123"))
    with pytest.raises(ClusterNotFound):
        find(root, "zzz999")
