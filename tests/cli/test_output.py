"""Amounts in words, tables, and how waiting shows."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.cli.describe import cluster_facts, cluster_table, state
from jupyter_gpucluster.cli.output import (
    Table,
    ago,
    ahead,
    as_text,
    counted,
    facts_text,
    size,
    span,
    table_text,
)
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.records import Clock, Phase, Target

from .doubles import NOW, Desk, Screen, a_view


@pytest.mark.parametrize(
    "seconds, words",
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7200, "2 h"), (86400, "1 day"), (2e5, "2 days")],
)
def test_a_span_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_times_are_relative() -> None:
    assert ago(100.0, 102.0) == "just now"
    assert ago(100.0, 300.0) == "3 min ago"
    assert ago(None) == ""
    assert ahead(300.0, 100.0) == "in 3 min"
    assert ahead(100.0, 300.0) == "now"


@pytest.mark.parametrize(
    "count, words",
    [(0, ""), (512, "512 B"), (2048, "2.0 KiB"), (2_000_000_000, "1.9 GiB"), (2**43, "8.0 TiB")],
)
def test_sizes_have_binary_units(count: int, words: str) -> None:
    assert size(count) == words


def test_one_is_singular() -> None:
    assert (counted(1, "GPUs"), counted(2, "GPUs")) == ("1 GPU", "2 GPUs")


def test_columns_are_aligned_and_long_lines_cut_on_a_terminal() -> None:
    table = Table(("A", "B"), (("xx", "one"), ("y", "two\nthree")))
    assert table_text(table) == "A   B\nxx  one\ny   two three"
    assert table_text(table, width=6).splitlines()[2] == "y   t…"


def test_an_empty_table_says_so_and_nothing_is_nothing() -> None:
    assert as_text([Table(("A",), (), empty="no clusters")]) == "no clusters"
    assert as_text([Table(("A",), (), title="Jobs")]) == ""


def test_a_line_of_the_list_says_what_matters() -> None:
    view = a_view(simulated=True, encrypted=False, reason="the queue is long")
    [row] = cluster_table([view], "").rows
    assert row[4] == "2 of 2 workers ready; the queue is long; simulated; NOT ENCRYPTED"


def test_an_ended_cluster_tells_its_reason_instead_of_its_words() -> None:
    view = a_view(phase=Phase.FAILED, words="failed", reason="The head was killed.")
    assert state(view) == "failed: The head was killed."
    assert state(a_view(phase=Phase.STARTING, words="starting")) == "starting"


def test_facts_tell_target_clocks_and_memory() -> None:
    view = a_view(
        target=Target(0, 4), clocks=(Clock("idle time-out", 1800.0), Clock("lifetime", 60.0, NOW))
    )
    text = facts_text(cluster_facts(view))
    assert "0 to 4 workers (adaptive), at most 8 allowed" in text
    assert "idle time-out (30 min) does not run now; lifetime (1 min) now" in text
    assert "1000 B of 1.9 GiB" in text


def test_waiting_on_a_terminal_is_one_live_line_that_goes_away() -> None:
    err = Screen(tty=True)
    with Terminal(err=err).progress() as progress:
        progress(a_view(phase=Phase.STARTING, words="0 of 2 workers ready"))
        progress(a_view())
    assert "\n" not in err.getvalue()
    assert "\r\x1b[Kalpha: running: 2 of 2 workers ready" in err.getvalue()
    assert err.getvalue().endswith("\r\x1b[K")


def test_waiting_elsewhere_is_a_line_for_each_change() -> None:
    err = Screen()
    with Terminal(err=err).progress() as progress:
        for _ in range(3):
            progress(a_view(phase=Phase.STARTING, words="0 of 2 workers ready"))
        progress(a_view())
    assert err.getvalue().splitlines() == [
        "alpha: starting: 0 of 2 workers ready",
        "alpha: running: 2 of 2 workers ready",
    ]


def test_lines_are_cut_at_the_width_of_the_terminal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    desk.tty = True
    desk.types("list")
    assert max(map(len, desk.out.splitlines())) <= 30
