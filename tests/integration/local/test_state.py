"""Unsafe, full or read-only state directories are refused; damaged records hide no others."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import GpuClusterError, RecordError, StateError
from jupyter_gpucluster.host.cluster_directory import PRIVATE, ClusterDirectory
from jupyter_gpucluster.host.processes import this_process
from jupyter_gpucluster.state.reader import START_SECONDS
from tests.mounting import ROOT_ONLY, fill, mounted

from .conftest import Start
from .driving import client_of, fixed, head_of, processes_of, until
from .tasks import double


@pytest.fixture
def unstarted(home: Path, temporary: Path) -> Clusters:
    """Return clusters of which none will start."""
    return Clusters()


def refusal(clusters: Clusters) -> StateError:
    """Return the error of a start that finds the state directory unusable."""
    with pytest.raises(StateError) as caught:
        clusters.start("local", target=fixed(1))
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_link_is_refused(unstarted: Clusters, home: Path) -> None:
    (home / "elsewhere").mkdir(mode=0o700)
    unstarted.root.parent.mkdir(parents=True)
    unstarted.root.symlink_to(home / "elsewhere")
    assert "link" in refusal(unstarted).message
    assert not list((home / "elsewhere").iterdir())
    with pytest.raises(StateError):
        unstarted.list()


def test_a_directory_that_others_can_write_is_refused(unstarted: Clusters) -> None:
    unstarted.root.mkdir(parents=True)
    unstarted.root.chmod(0o770)
    assert "0770" in refusal(unstarted).message
    assert not list(unstarted.root.iterdir())
    with pytest.raises(StateError):
        unstarted.list()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it gives a directory away")
def test_somebody_elses_directory_is_refused(unstarted: Clusters) -> None:
    unstarted.root.mkdir(parents=True, mode=0o755)
    os.chown(unstarted.root, 65534, 65534)
    assert "65534" in refusal(unstarted).message
    with pytest.raises(StateError):
        unstarted.list()


def test_a_file_in_its_place_is_refused(unstarted: Clusters) -> None:
    unstarted.root.parent.mkdir(parents=True)
    unstarted.root.write_text("")
    assert "not a directory" in refusal(unstarted).message


@ROOT_ONLY
def test_a_read_only_disk_is_refused(clusters: Clusters) -> None:
    for place in (clusters.root, clusters.root.parent):
        with mounted(place, "ro,mode=0700"):
            assert "Read-only" in refusal(clusters).message
            assert clusters.list() == []


@ROOT_ONLY
@pytest.mark.parametrize("free", [0, 4, 24])
def test_a_full_disk_is_told_and_nothing_is_left(
    clusters: Clusters, temporary: Path, free: int
) -> None:
    with mounted(clusters.root, "size=256k,mode=0700") as place:
        fill(place / "filler", leave=free * 1024)
        assert "No space left" in refusal(clusters).message
        assert {path.name for path in place.iterdir()} <= {"filler", ".lock"}
        assert clusters.list(ended=True) == []
    assert not list(temporary.glob("gpc-*"))


@ROOT_ONLY
def test_a_cluster_goes_on_while_its_disk_is_full_and_is_told_to_have_failed_afterwards(
    clusters: Clusters, start: Start
) -> None:
    with mounted(clusters.root, "size=4m,mode=0700") as place:
        view = start()
        fill(place / "filler")
        clusters.update(view.id, new_name="renamed")
        with client_of(view) as client:
            assert client.submit(double, 21).result() == 42
        os.kill(head_of(view), 9)
        until(lambda: not processes_of(view.id))
        assert clusters.get(view.id).phase is Phase.FAILED
        (place / "filler").unlink()
        assert clusters.get(view.id).phase is Phase.FAILED
        assert clusters.get(view.id).ended


def test_damaged_records_are_set_aside_and_hide_no_other(clusters: Clusters) -> None:
    sound = clusters.start("local", target=fixed(1))
    for text in (b"", b"{", b"[]", b'{"version": 1}', b'{"version": "x"}', b"\xff"):
        directory = broken_cluster(clusters, text)
        assert [view.id for view in clusters.list(ended=True)] == [sound.id]
        assert [view.id for view in clusters.list()] == [sound.id]
        [trouble] = clusters.survey(ended=True)[1]
        assert isinstance(trouble, RecordError)
        [aside] = directory.path.glob("record.json.damaged-*")
        assert aside.read_bytes() == text
        assert clusters.get(sound.name).id == sound.id
        directory.remove()


def test_nothing_is_deleted_that_does_not_bear_the_cluster_s_name(
    clusters: Clusters, home: Path
) -> None:
    view = clusters.start("local", target=fixed(1))
    directory = ClusterDirectory(Path(view.directory))
    kept = directory.read_record()
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=30)
    (home / "precious").mkdir()
    gone = replace(this_process(), start_time=1)
    spec = replace(kept.spec, scratch=str(home / "precious"))
    directory.write_record(replace(kept, head=gone, spec=spec))
    assert clusters.get(view.id).phase is Phase.FAILED
    assert (home / "precious").is_dir()


def test_logs_are_read_from_files_alone(clusters: Clusters) -> None:
    view = clusters.start("local", target=fixed(1))
    logs = ClusterDirectory(Path(view.directory)).logs
    os.mkfifo(logs / "pipe.log")
    (logs / "zero.log").symlink_to("/dev/zero")
    assert clusters.logs(view.id, "pipe") == "==> pipe.log <==\n"
    assert clusters.logs(view.id, "zero") == "==> zero.log <==\n"
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=30)
    shutil.rmtree(logs)
    assert clusters.logs(view.id) == ""


def test_a_relative_data_directory_is_found_from_everywhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("JUPYTER_DATA_DIR", "near")
    assert Clusters().root == home / "near" / "gpucluster" / "clusters"


def test_a_record_of_a_newer_version_is_refused_and_kept(clusters: Clusters) -> None:
    directory = broken_cluster(clusters, json.dumps({"version": 999, "new": True}).encode())
    assert clusters.list(ended=True) == []
    with pytest.raises(RecordError) as caught:
        clusters.get(directory.id)
    assert "999" in caught.value.message
    assert "Upgrade" in caught.value.hint
    assert (directory.path / "record.json").exists()


def test_one_unsafe_cluster_directory_hides_no_other(clusters: Clusters) -> None:
    sound = clusters.start("local", target=fixed(1))
    directory = broken_cluster(clusters, b"{}")
    directory.path.chmod(0o777)
    assert [view.id for view in clusters.list(ended=True)] == [sound.id]
    [trouble] = clusters.survey(ended=True)[1]
    assert isinstance(trouble, StateError)
    with pytest.raises(GpuClusterError):
        clusters.get(directory.id)


def test_what_a_starter_left_without_a_record_is_swept_away(
    clusters: Clusters, temporary: Path
) -> None:
    clusters.root.mkdir(parents=True, mode=0o700)
    directory = ClusterDirectory(clusters.root / "aaaaaa")
    directory.create()
    (directory.tls / "client-key.pem").write_text("secret")
    scratch = temporary / "gpc-aaaaaa-x"
    scratch.mkdir()
    assert clusters.list(ended=True) == []
    assert directory.path.exists()  # its starter may still be at work
    long_ago = directory.path.stat().st_mtime - START_SECONDS - 1
    os.utime(directory.path, (long_ago, long_ago))
    assert clusters.list(ended=True) == []
    assert not directory.path.exists()
    assert not scratch.exists()


def test_files_of_a_cluster_are_its_owners_alone(clusters: Clusters, start: Start) -> None:
    view = start()
    directory = Path(view.directory)
    for path in [clusters.root, directory, *directory.rglob("*")]:
        assert path.lstat().st_mode & 0o077 == 0, path
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=30)
    left = {path.name for path in directory.iterdir()}
    assert left == {"record.json", "summary.json", "events.jsonl", "logs", "jobs"}
    [mark] = ClusterDirectory(directory).marks()
    assert {path.name for path in (directory / "jobs").iterdir()} == {
        f"{mark}.sh",
        f"{mark}.command",
    }
    assert not left & set(PRIVATE)
    clusters.forget(view.id)
    assert not directory.exists()


def broken_cluster(clusters: Clusters, record: bytes) -> ClusterDirectory:
    clusters.root.mkdir(parents=True, mode=0o700, exist_ok=True)
    directory = ClusterDirectory(clusters.root / "broken")
    directory.create()
    (directory.path / "record.json").write_bytes(record)
    return directory
