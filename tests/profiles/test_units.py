"""Amounts of memory and time, as sites write them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpucluster.profiles.values import (
    format_duration,
    format_memory,
    parse_duration,
    parse_memory,
)


@pytest.mark.parametrize(
    "text,size",
    [
        ("229 GiB", 229 * 2**30),
        ("512MB", 512 * 10**6),
        (1024, 1024),
        ("1024", 1024),
        ("1024 B", 1024),
        ("1.5 GiB", 3 * 2**29),
        ("2tib", 2 * 2**40),
        (" 4 kB ", 4000),
        ("0.3 KiB", 307),
    ],
    ids=repr,
)
def test_memory_is_read_as_bytes(text: object, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    "text,words",
    [
        ("4G", "is ambiguous: write 4 GB or 4 GiB"),
        ("4 XB", "unknown unit 'XB'; use one of B, kB"),
        ("much", "is not an amount of memory; write 4 GiB"),
        ("", "is not an amount of memory"),
        ("-4 GiB", "is not an amount of memory"),
        (0, "out of range"),
        (-1, "out of range"),
        ("0 GiB", "out of range"),
        ("999999999999999 TiB", "out of range"),
        (True, "true is not an amount of memory"),
        (1.5, "1.5 is not an amount of memory"),
        (None, "null is not an amount of memory"),
        ([4], "is not an amount of memory"),
        ("٤ GiB", "is not an amount of memory"),
        ("4 GiB\n5", "is not an amount of memory"),
    ],
    ids=repr,
)
def test_what_is_no_memory_is_told_with_the_way_to_write_it(text: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_memory(text)


@pytest.mark.parametrize(
    "text,seconds",
    [
        ("00:30:00", 1800),
        ("1-00:00:00", 86400),
        ("1-12:30", 86400 + 45000),
        ("2-06", 2 * 86400 + 6 * 3600),
        ("72:00:00", 259200),
        ("30 min", 1800),
        ("12 h", 43200),
        ("12h", 43200),
        ("1 h 30 min", 5400),
        ("1h30min", 5400),
        ("1.5 hours", 5400),
        ("1 day", 86400),
        ("90 s", 90),
        ("90", 90),
        (90, 90),
    ],
    ids=repr,
)
def test_a_duration_is_read_as_seconds(text: object, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text,words",
    [
        ("1:00", "may mean hours and minutes or minutes and seconds"),
        ("00:70:00", "is not a length of time"),
        ("soon", 'is not a length of time; write "00:30:00"'),
        ("5 fortnights", "is not a length of time"),
        ("30 min later", "is not a length of time"),
        ("", "is not a length of time"),
        ("0.5 s", "no whole number of seconds"),
        ("0 min", "out of range"),
        (0, "out of range"),
        (-5, "out of range"),
        (False, "false is not a length of time"),
        (1.5, "1.5 is not a length of time"),
        (None, "null is not a length of time"),
    ],
    ids=repr,
)
def test_what_is_no_duration_is_told_with_the_way_to_write_it(text: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_duration(text)


@given(st.integers(1, 2**62))
def test_bytes_survive_being_written_and_read(size: int) -> None:
    assert parse_memory(format_memory(size)) == size


@given(st.integers(1, 10**9))
def test_seconds_survive_being_written_and_read(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.text()))
def test_any_value_is_an_amount_or_a_value_error(value: object) -> None:
    for parse in (parse_memory, parse_duration):
        words = ""
        try:
            assert parse(value) > 0
        except ValueError as error:
            words = str(error)
        assert "\n" not in words
        assert len(words) < 250
