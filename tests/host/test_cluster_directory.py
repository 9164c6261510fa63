"""The cluster directory: private, whole or untouched, and honest about damage."""

from __future__ import annotations

import errno
import json
import os
import resource
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import RECORD_VERSION, Phase, Record, Spec, Target
from jupyter_gpucluster.core.errors import RecordError, StateError
from jupyter_gpucluster.core.serialize import to_json
from jupyter_gpucluster.core.summary import Event, Summary
from jupyter_gpucluster.host.cluster_directory import KEPT_SCRIPTS, ClusterDirectory
from jupyter_gpucluster.host.private_files import check_private, make_private, write_private
from tests.mounting import ROOT_ONLY, fill, fill_inodes, mounted

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to act as another user")


def a_record(**changes: object) -> Record:
    spec = Spec(profile="local", title="", backend="local", python="/usr/bin/python3")
    return replace(Record("abc123", "x", spec, Target(1, 1), created=1.0), **changes)  # type: ignore[arg-type]  # fields of Record by name


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def directory(tmp_path: Path) -> ClusterDirectory:
    made = ClusterDirectory(tmp_path / "abc123")
    made.create()
    return made


# Private.


def test_everything_in_a_new_directory_is_its_owner_s_alone(directory: ClusterDirectory) -> None:
    directory.write_record(a_record())
    directory.append_event(Event(1.0, "head", "runs"))
    directory.renew_lease()
    paths = [directory.path, *directory.path.rglob("*")]
    assert {mode(path) for path in paths if path.is_dir()} == {0o700}
    assert {mode(path) for path in paths if path.is_file()} == {0o600}


def test_files_are_private_under_a_generous_umask(directory: ClusterDirectory) -> None:
    before = os.umask(0)
    try:
        write_private(directory.path / "token", b"x")
        make_private(directory.path / "more")
    finally:
        os.umask(before)
    assert mode(directory.path / "token") == 0o600
    assert mode(directory.path / "more") == 0o700


def test_a_directory_of_that_name_is_never_taken_over(directory: ClusterDirectory) -> None:
    with pytest.raises(StateError):
        directory.create()


@pytest.mark.parametrize("bits", [0o770, 0o720, 0o707, 0o777])
def test_a_directory_that_others_can_write_is_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(bits)
    with pytest.raises(StateError, match="writable by others") as caught:
        make_private(path)
    assert "chmod 700" in caught.value.hint


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_refused_and_nothing_made_behind_it(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "elsewhere"
    if exists:
        target.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(StateError, match="symbolic link"):
        make_private(tmp_path / "link")
    assert target.exists() is exists


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(StateError, match="not a directory"):
        make_private(tmp_path / "state")


@needs_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    os.chown(path, 12345, 12345)
    with pytest.raises(StateError, match="belongs to user 12345"):
        check_private(path)


def test_a_directory_that_is_missing_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StateError) as caught:
        check_private(tmp_path / "missing")
    assert caught.value.hint


def test_a_draft_is_not_written_through_a_planted_link(directory: ClusterDirectory) -> None:
    victim = directory.path / "victim"
    victim.write_bytes(b"precious")
    draft = f".token.{os.getpid()}.{threading.get_ident()}.new"
    (directory.path / draft).symlink_to(victim)
    with pytest.raises(StateError):
        write_private(directory.path / "token", b"x")
    assert victim.read_bytes() == b"precious"


# Whole or untouched.


def test_a_crash_before_the_rename_leaves_the_old_record(
    directory: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.write_record(a_record(name="old"))

    def crash(self: Path, target: Path) -> None:
        raise SystemExit

    monkeypatch.setattr(Path, "replace", crash)
    with pytest.raises(SystemExit):
        directory.write_record(a_record(name="new"))
    assert directory.read_record().name == "old"


def test_two_threads_at_once_write_one_file_whole(
    directory: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.replace
    other = threading.Thread(target=directory.write_record, args=(a_record(name="other"),))

    def meanwhile(self: Path, target: Path) -> None:
        if other.ident is None:
            other.start()
            other.join()
        rename(self, target)

    monkeypatch.setattr(Path, "replace", meanwhile)
    directory.write_record(a_record(name="last"))
    assert directory.read_record().name == "last"
    assert not list(directory.path.glob(".*.new"))


def test_a_failing_rename_leaves_the_old_record_and_no_draft(
    directory: ClusterDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.write_record(a_record(name="old"))

    def fail(self: Path, target: Path) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(Path, "replace", fail)
    before = sorted(directory.path.iterdir())
    with pytest.raises(StateError, match="Disk quota exceeded") as caught:
        directory.write_record(a_record(name="new"))
    assert "Free some space" in caught.value.hint
    assert sorted(directory.path.iterdir()) == before
    assert directory.read_record().name == "old"


@ROOT_ONLY
def test_a_full_disk_is_reported_with_the_fix_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with mounted(tmp_path / "tiny", "size=64k,mode=0700") as place:
        directory = ClusterDirectory(place / "abc123")
        directory.create()
        directory.write_record(a_record(name="old"))
        before = sorted(directory.path.iterdir())
        with pytest.raises(StateError, match="No space left") as caught:
            directory.write_record(a_record(reason="x" * 200_000))
        assert "JUPYTER_DATA_DIR" in caught.value.hint
        assert sorted(directory.path.iterdir()) == before
        assert directory.read_record().name == "old"


def test_a_limit_on_the_size_of_files_is_reported_too(directory: ClusterDirectory) -> None:
    directory.write_record(a_record(name="old"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StateError) as caught:
            directory.write_record(a_record(reason="x" * 20_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.hint
    assert directory.read_record().name == "old"
    assert not list(directory.path.glob(".record*"))


def test_a_directory_that_has_gone_is_a_clear_error(tmp_path: Path) -> None:
    gone = ClusterDirectory(tmp_path / "gone1")
    with pytest.raises(StateError, match="No such file"):
        gone.write_record(a_record())
    with pytest.raises(StateError, match="No such file"):
        gone.append_event(Event(1.0, "x", "y"))
    with pytest.raises(StateError, match="No such file"):
        gone.renew_lease()


@ROOT_ONLY
def test_a_lease_is_renewed_on_a_full_file_system(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "nr_inodes=16,size=64k,mode=0700") as place:
        full = ClusterDirectory(place / "abc123")
        full.create()
        full.renew_lease()
        os.utime(full.lease, (1, 1))
        fill(place / "filler")
        fill_inodes(place)
        full.renew_lease()
        assert time.time() - full.lease.stat().st_mtime < 60
        full.lease.unlink()
        (place / "filler").unlink()
        full.renew_lease()
        fill_inodes(place)
        full.lease.rename(place / "another")
        with pytest.raises(StateError, match="No space left"):
            full.renew_lease()


def test_a_stop_is_noted_in_the_lease_and_in_no_file_that_a_link_names(
    directory: ClusterDirectory, tmp_path: Path
) -> None:
    directory.renew_lease()
    directory.note_stop("Stopped by you.")
    assert directory.noted_stop() == "Stopped by you."
    directory.lease.unlink()
    other = tmp_path / "other"
    other.write_text("kept")
    directory.lease.symlink_to(other)
    directory.note_stop("Stopped by you.")
    assert other.read_text() == "kept"


def test_a_lease_is_the_same_file_for_ever(directory: ClusterDirectory) -> None:
    directory.renew_lease()
    first = directory.lease.stat()
    os.utime(directory.lease, (1, 1))
    directory.renew_lease()
    assert directory.lease.stat().st_ino == first.st_ino
    assert directory.lease.stat().st_mtime >= first.st_mtime


# Reading.


def test_a_record_comes_back_as_it_was_written(directory: ClusterDirectory) -> None:
    record = a_record(reason="wörter \u2028 \udcff", phase=Phase.DEGRADED)
    directory.write_record(record)
    assert directory.read_record() == record


def test_an_older_record_is_read(directory: ClusterDirectory) -> None:
    data = {**to_json(a_record(name="old")), "version": RECORD_VERSION - 1}
    del data["request_id"], data["outcome"]
    (directory.path / "record.json").write_text(json.dumps(data))
    assert directory.read_record().name == "old"


def test_a_newer_record_is_refused_and_left_alone(directory: ClusterDirectory) -> None:
    path = directory.path / "record.json"
    text = json.dumps({"version": RECORD_VERSION + 1, "shape": "unknown"})
    path.write_text(text)
    with pytest.raises(RecordError, match="newer jupyter-gpucluster") as caught:
        directory.read_record()
    assert "Upgrade" in caught.value.hint
    assert path.read_text() == text


WHOLE = json.dumps(to_json(a_record())).encode()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(WHOLE[: len(WHOLE) // 2], id="torn"),
        pytest.param(b"\0" * 4096, id="zeros"),
        pytest.param(bytes(range(256)), id="binary"),
        pytest.param(b"[1, 2]", id="list"),
        pytest.param(b'"text"', id="text"),
        pytest.param(b"null", id="null"),
        pytest.param(b"{}", id="no version"),
        pytest.param(b'{"version": 1}', id="nothing but a version"),
        pytest.param(b'{"version": 1e999}', id="infinite version"),
        pytest.param(b'{"version": null}', id="no number"),
        pytest.param(WHOLE.replace(b'"abc123"', b"123"), id="wrong type"),
        pytest.param(WHOLE.replace(b'"starting"', b'"dancing"'), id="unknown phase"),
        pytest.param(b"[" * 200_000, id="deeply nested"),
    ],
)
def test_a_damaged_record_is_set_aside_and_reported(
    directory: ClusterDirectory, content: bytes
) -> None:
    path = directory.path / "record.json"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="damaged") as caught:
        directory.read_record()
    assert str(directory.path) in caught.value.hint
    assert not path.exists()
    [aside] = directory.path.glob("record.json.damaged-*")
    assert aside.read_bytes() == content
    directory.write_record(a_record(name="again"))
    assert directory.read_record().name == "again"


def test_a_missing_record_is_an_error_of_its_own(directory: ClusterDirectory) -> None:
    with pytest.raises(RecordError, match="Cannot read") as caught:
        directory.read_record()
    # Its head is gone, so nothing writes it again.
    assert caught.value.hint.startswith(f"Delete {directory.path} ")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"id": 5}', b"[" * 200_000])
def test_a_damaged_summary_is_as_good_as_none(directory: ClusterDirectory, content: bytes) -> None:
    assert directory.read_summary() is None
    (directory.path / "summary.json").write_bytes(content)
    assert directory.read_summary() is None


def test_a_summary_comes_back_as_it_was_written(directory: ClusterDirectory) -> None:
    summary = Summary("abc123", "x", "local", Phase.RUNNING, 1.0, "", "2 of 2", 3, 4.0)
    directory.write_summary(summary)
    assert directory.read_summary() == summary


# The timeline.


def test_events_come_back_in_order_whatever_is_in_them(directory: ClusterDirectory) -> None:
    events = [
        Event(1.0, "a", "one line\nand another"),
        Event(2.0, "b", "separators \u2028 \x85 \x1e"),
        Event(3.0, "c", "ünï", "gpc-abc123-1_0"),
    ]
    for event in events:
        directory.append_event(event)
    assert list(directory.events()) == events


def test_a_line_cut_short_by_a_crash_costs_only_itself(directory: ClusterDirectory) -> None:
    directory.append_event(Event(1.0, "a", "first"))
    with (directory.path / "events.jsonl").open("ab") as stream:
        stream.write(b'{"time": 2.0, "kind": "b", "mess')
    assert [event.message for event in directory.events()] == ["first"]
    directory.append_event(Event(3.0, "c", "third"))
    assert [event.message for event in directory.events()] == ["first", "third"]


def test_lines_that_are_no_events_are_passed_over(directory: ClusterDirectory) -> None:
    (directory.path / "events.jsonl").write_bytes(
        b'\xff\xfe\n[]\n5\n{"kind": "x"}\n{"time": 1.0, "kind": "k", "message": "good"}\n\n'
    )
    assert [event.message for event in directory.events()] == ["good"]


def test_no_timeline_is_an_empty_one(directory: ClusterDirectory) -> None:
    assert list(directory.events()) == []


# The end.


def test_keys_and_tokens_go_at_the_end_and_the_story_stays(directory: ClusterDirectory) -> None:
    directory.write_record(a_record())
    directory.append_event(Event(1.0, "a", "b"))
    (directory.logs / "head.log").write_text("log")
    for name in ("token", "scheduler.json", "process.json", "tls/ca.pem", "jobs/template.sh"):
        write_private(directory.path / name, b"secret")
    directory.renew_lease()
    directory.remove_private(a_record())
    left = {str(p.relative_to(directory.path)) for p in directory.path.rglob("*") if p.is_file()}
    assert left == {"record.json", "events.jsonl", "logs/head.log"}
    directory.remove_private(a_record())


def test_scripts_that_ran_stay_with_their_commands_and_nothing_else_of_jobs(
    directory: ClusterDirectory,
) -> None:
    id = directory.id
    for number in range(1, KEPT_SCRIPTS + 3):
        write_private(directory.script(f"gpc-{id}-{number}"), b"#!/bin/sh")
        write_private(directory.command(f"gpc-{id}-{number}"), b"sbatch")
    others = (f"gpc-{id}-9_0.rank.sh", f"gpc-{id}-9_0.hosts", "template.sh", "workerstart.py")
    for name in others:
        write_private(directory.jobs / name, b"x")
    directory.remove_private(a_record())
    left = {path.name for path in directory.jobs.iterdir()}
    numbers = range(3, KEPT_SCRIPTS + 3)
    assert left == {f"gpc-{id}-{n}.{end}" for n in numbers for end in ("sh", "command")}
    assert directory.marks() == [f"gpc-{id}-{n}" for n in numbers]
    directory.remove_private(a_record())
    assert len(directory.marks()) == KEPT_SCRIPTS


def test_exit_codes_are_read_by_job_and_drafts_passed_over(directory: ClusterDirectory) -> None:
    exits = directory.path / "exit"
    (exits / "gpc-abc123-1_0").write_text("0\n")
    (exits / "gpc-abc123-1_1").write_text("137\n")
    (exits / "gpc-abc123-1_2").write_text("")
    (exits / ".gpc-abc123-1_3").touch()
    assert directory.exit_codes() == {"gpc-abc123-1_0": 0, "gpc-abc123-1_1": 137}
