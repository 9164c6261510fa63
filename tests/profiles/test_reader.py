"""The reader: every kind of bad file has its place, nothing but our own error comes out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jupyter_gpucluster.profiles.reader import (
    MAXIMUM_BYTES,
    MAXIMUM_DEPTH,
    MAXIMUM_VALUES,
    Branch,
    Items,
    Mark,
    Unreadable,
    plain,
    read_file,
    read_text,
)
from tests.profiles.conftest import as_nobody

BOMB = "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

BAD = {
    "empty": ("", 1, 1, "is empty"),
    "only comments": ("# nothing\n", 1, 1, "is empty"),
    "null": ("~\n", 1, 1, "is empty"),
    "a list": ("\n- a\n- b\n", 2, 1, "must be a mapping of keys"),
    "a text": ("hello\n", 1, 1, "must be a mapping of keys"),
    "tab as indentation": ("job:\n\tgpus: 4\n", 2, 1, "a tab; indent with spaces"),
    "two colons": ("title: a: b\n", 1, 9, "quote the value"),
    "key without colon": ("title: x\nbackend\njob: {}\n", 2, 1, "a `:` is missing after this key"),
    "last key without colon": ("title: x\nbackend\n", 2, 1, "a `:` is missing after this key"),
    "unclosed quote": ("title: 'x\nbackend: local\n", 1, 8, "these quotes are not closed"),
    "unclosed bracket": (
        "hosts: [a, b\ntitle: x\n",
        1,
        8,
        "a comma or ] is missing",
    ),
    "wrong indentation": ("job:\n  gpus: 4\n nodes: 1\n", 3, 2, "wrong indentation"),
    "starts with @": ("title: @home\n", 1, 8, "cannot start with @; quote it"),
    "starts with %": ("title: %foo\n", 1, 8, "cannot start with %"),
    "text after the end": ("{title: x} y\n", 1, 12, "the mapping above has ended"),
    "unknown escape": ('title: "a\\q"\n', 1, 11, "unknown escape"),
    "duplicate key": (
        "title: x\nbackend: local\ntitle: y\n",
        3,
        1,
        "key `title` is given twice; the first is in line 1",
    ),
    "nested duplicate key": ("job: {gpus: 1, gpus: 2}\n", 1, 16, "first is in line 1"),
    "second document": ("title: x\n---\ntitle: y\n", 2, 1, "a file holds one profile"),
    "python tag": ("title: !!python/object/apply:os.system [id]\n", 1, 8, "tags such as"),
    "own tag": ("title: !include other.yaml\n", 1, 8, "tags such as !include"),
    "plain tag": ("title: !!str 3\n", 1, 8, "tags such as"),
    "merge key": ("a: &a {b: 1}\nc:\n  <<: *a\n", 3, 3, "merge keys"),
    "unknown alias": ("title: *name\n", 1, 8, "alias *name has no anchor &name before it"),
    "alias of itself": ("a: &a [*a]\n", 1, 8, "refers to a value that contains it"),
    "alias as key": ("a: &a b\n*a : c\n", 2, 1, "a key must be plain text"),
    "list as key": ("? [a, b]\n: c\n", 1, 3, "a key must be plain text"),
    "anchor on a key": ("&a b: c\n", 1, 1, "an anchor on a key"),
    "alias bomb": (BOMB, 5, None, f"more than {MAXIMUM_VALUES} values"),
    "deep nesting": ("a: " + "[" * 5000, 1, 3 + MAXIMUM_DEPTH, "nested deeper than"),
    "deep indentation": (
        "".join(f"{' ' * n}k:\n" for n in range(30)) + " " * 30 + "k: 1",
        MAXIMUM_DEPTH + 1,
        MAXIMUM_DEPTH + 1,
        "nested deeper than",
    ),
    "many values": ("a: [" + "1, " * (MAXIMUM_VALUES + 1) + "]", 1, None, "more than"),
    "control character": ("title: x\nsummary: a\x07b\n", 2, 11, "character #x0007"),
    "not UTF-8": ("title: x\nsummary: Universität\n".encode("latin-1"), 2, 19, "not UTF-8"),
    "UTF-16": ("title: x\n".encode("utf-16"), 1, 1, "not UTF-8"),
    "no character": ('title: "\\UFFFFFFFF"\n', 1, 1, "is not YAML"),
    "a number of 5000 digits": ("%YAML 1." + "9" * 5000 + "\n---\na: 1\n", 1, 1, "is not YAML"),
}


@pytest.mark.parametrize("text,line,column,words", BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_told_with_line_column_and_way_out(
    text: str | bytes, line: int, column: int | None, words: str
) -> None:
    with pytest.raises(Unreadable) as caught:
        read_text(text, "site.yaml")
    mark = caught.value.mark
    assert words in caught.value.message
    assert (mark.file, mark.line) == ("site.yaml", line)
    assert column is None or mark.column == column
    assert "\n" not in caught.value.message


def test_words_and_numbers_are_read_as_people_mean_them() -> None:
    text = """
        norway: no
        switch: on
        walltime: 12:00:00
        project: 0123
        version: "3.10"
        day: 2026-01-31
        hex: 0x10
        nothing:
        tilde: ~
        yes_: true
        count: -3
        share: 0.5
        quoted: 'true'
    """
    assert plain(read_text(text, "f")) == {
        "norway": "no",
        "switch": "on",
        "walltime": "12:00:00",
        "project": "0123",
        "version": "3.10",
        "day": "2026-01-31",
        "hex": "0x10",
        "nothing": None,
        "tilde": None,
        "yes_": True,
        "count": -3,
        "share": 0.5,
        "quoted": "true",
    }


def test_keys_and_values_know_their_places() -> None:
    tree = read_text("job:\n  gpus: 4\n  directives: [-C gpu]\n", "f.yaml")
    job = tree.entries["job"]
    assert isinstance(job, Branch)
    directives = job.entries["directives"]
    assert isinstance(directives, Items)
    assert tree.keys["job"] == Mark("f.yaml", 1, 1)
    assert job.keys["gpus"] == Mark("f.yaml", 2, 3)
    assert job.entries["gpus"].mark == Mark("f.yaml", 2, 9)
    assert directives.items[0].mark == Mark("f.yaml", 3, 16)


def test_an_alias_repeats_its_anchor() -> None:
    tree = read_text("a: &lines [x, y]\nb: *lines\nc: &one 1\nd: [*one]\n", "f")
    assert plain(tree) == {"a": ["x", "y"], "b": ["x", "y"], "c": 1, "d": [1]}


def test_windows_line_ends_and_a_byte_order_mark_are_accepted() -> None:
    assert plain(read_text(b"\xef\xbb\xbftitle: x\r\nbackend: local\r\n", "f")) == {
        "title": "x",
        "backend": "local",
    }


def test_a_file_at_the_size_limit_is_read_and_one_above_is_not(tmp_path: Path) -> None:
    file = tmp_path / "big.yaml"
    file.write_text("title: x\n" + "#" * (MAXIMUM_BYTES - 9))
    assert plain(read_file(file)) == {"title": "x"}
    file.write_text("title: x\n" + "#" * (MAXIMUM_BYTES - 8))
    with pytest.raises(Unreadable, match="is larger than 256 KiB"):
        read_file(file)


def test_a_pipe_a_device_and_a_directory_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    (tmp_path / "directory.yaml").mkdir()
    for name in ("pipe", "device", "directory"):
        with pytest.raises(Unreadable, match="is not a regular file"):
            read_file(tmp_path / f"{name}.yaml")


def test_a_missing_file_and_a_broken_link_are_told(tmp_path: Path) -> None:
    (tmp_path / "link.yaml").symlink_to(tmp_path / "gone.yaml")
    for name in ("gone", "link"):
        with pytest.raises(Unreadable, match="cannot be read: No such file or directory"):
            read_file(tmp_path / f"{name}.yaml")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to give up the right to read")
def test_a_file_of_somebody_else_is_told(home: Path) -> None:
    file = home / "secret.yaml"
    file.write_text("title: x\n")
    file.chmod(0o600)
    with as_nobody(home), pytest.raises(Unreadable, match="cannot be read: Permission denied"):
        read_file(file)


PIECES = [*"abc:-?!&*%@`'\"|>[]{},#~ \n\t\\", "\n  ", "- ", ": "]
PIECES += ["<<", "---\n", "!!", "&a ", "*a", "\\x"]
YAML_PIECES = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@given(st.text() | st.binary() | YAML_PIECES)
@example("\ud800: x")
@example("a: '\ufeff'")
@example("a: \x85b")
@example("%TAG ! !\n--- a")
def test_any_text_is_a_tree_or_our_own_error(text: str | bytes) -> None:
    try:
        mark = read_text(text, "f").mark
    except Unreadable as error:
        mark = error.mark
    assert mark.line >= 1
    assert mark.column >= 1
