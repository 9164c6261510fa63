"""Amounts of memory and time, as sites write them."""

from __future__ import annotations

import re
from collections.abc import Callable

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
    "parse,text,amount",
    [
        (parse_memory, "229 GiB", 229 * 2**30),
        (parse_memory, "512MB", 512 * 10**6),
        (parse_memory, 1024, 1024),
        (parse_memory, "1024", 1024),
        (parse_memory, "1024 B", 1024),
        (parse_memory, "1.5 GiB", 3 * 2**29),
        (parse_memory, "2tib", 2 * 2**40),
        (parse_memory, " 4 kB ", 4000),
        (parse_memory, "0.3 KiB", 307),
        (parse_duration, "00:30:00", 1800),
        (parse_duration, "1-00:00:00", 86400),
        (parse_duration, "1-12:30", 86400 + 45000),
        (parse_duration, "2-06", 2 * 86400 + 6 * 3600),
        (parse_duration, "72:00:00", 259200),
        (parse_duration, "30 min", 1800),
        (parse_duration, "12 h", 43200),
        (parse_duration, "12h", 43200),
        (parse_duration, "1 h 30 min", 5400),
        (parse_duration, "1h30min", 5400),
        (parse_duration, "1.5 hours", 5400),
        (parse_duration, "1 day", 86400),
        (parse_duration, "90 s", 90),
        (parse_duration, "90", 90),
        (parse_duration, 90, 90),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_an_amount_is_read_as_bytes_or_seconds(
    parse: Callable[[object], int], text: object, amount: int
) -> None:
    assert parse(text) == amount


@pytest.mark.parametrize(
    "parse,text,words",
    [
        (parse_memory, "4G", "is ambiguous: write 4 GB or 4 GiB"),
        (parse_memory, "4 XB", "unknown unit 'XB'; use one of B, kB"),
        (parse_memory, "much", "is not an amount of memory; write 4 GiB"),
        (parse_memory, "", "is not an amount of memory"),
        (parse_memory, "-4 GiB", "is not an amount of memory"),
        (parse_memory, 0, "out of range"),
        (parse_memory, -1, "out of range"),
        (parse_memory, "0 GiB", "out of range"),
        (parse_memory, "999999999999999 TiB", "out of range"),
        (parse_memory, True, "true is not an amount of memory"),
        (parse_memory, 1.5, "1.5 is not an amount of memory"),
        (parse_memory, None, "null is not an amount of memory"),
        (parse_memory, [4], "is not an amount of memory"),
        (parse_memory, "٤ GiB", "is not an amount of memory"),
        (parse_memory, "4 GiB\n5", "is not an amount of memory"),
        (parse_duration, "1:00", "may mean hours and minutes or minutes and seconds"),
        (parse_duration, "00:70:00", "is not a length of time"),
        (parse_duration, "soon", 'is not a length of time; write "00:30:00"'),
        (parse_duration, "5 fortnights", "is not a length of time"),
        (parse_duration, "30 min later", "is not a length of time"),
        (parse_duration, "", "is not a length of time"),
        (parse_duration, "0.5 s", "not a whole number of seconds"),
        (parse_duration, "0 min", "out of range"),
        (parse_duration, 0, "out of range"),
        (parse_duration, -5, "out of range"),
        (parse_duration, False, "false is not a length of time"),
        (parse_duration, 1.5, "1.5 is not a length of time"),
        (parse_duration, None, "null is not a length of time"),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_a_wrong_amount_is_refused_with_the_way_to_write_it(
    parse: Callable[[object], int], text: object, words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse(text)


@pytest.mark.parametrize(
    "parse,write,most",
    [(parse_memory, format_memory, 2**62), (parse_duration, format_duration, 10**9)],
)
@given(data=st.data())
def test_an_amount_survives_being_written_and_read(
    parse: Callable[[object], int], write: Callable[[int], str], most: int, data: st.DataObject
) -> None:
    amount = data.draw(st.integers(1, most))
    assert parse(write(amount)) == amount


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
