"""Amounts in words, tables, and how waiting shows."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest

from jupyter_gpucluster.cli.describe import cluster_facts, cluster_table, gpu_table, state
from jupyter_gpucluster.cli.output import (
    Table,
    ago,
    ahead,
    as_json,
    as_text,
    counted,
    hint_line,
    size,
    span,
    table_text,
)
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import GpuClusterError, InvalidInput
from jupyter_gpucluster.core.summary import Clock, GpuReading
from jupyter_gpucluster.profiles.model import Profile
from jupyter_gpucluster.profiles.options import resolve_options
from tests.views import NOW

from .doubles import Desk, Screen, a_view


@pytest.mark.parametrize(
    "seconds, words",
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (7200, "2 h"), (86400, "1 day"), (2e5, "2 days")],
)
def test_a_span_is_in_its_largest_unit(seconds: float, words: str) -> None:
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


@pytest.mark.parametrize(
    "given, hint",
    [
        ({}, "Give account: one line of text. As in: --option account=VALUE"),
        ({"acount": "x"}, "Options of this profile: account."),
    ],
)
def test_an_option_that_is_missing_comes_with_an_example(given: dict[str, str], hint: str) -> None:
    option = {"type": "string", "required": True}
    profile = Profile.model_validate(
        {"title": "GPUs", "backend": "slurm", "options": {"account": option}}
    )
    with pytest.raises(InvalidInput) as caught:
        resolve_options(profile, given)
    assert hint_line(caught.value) == hint


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
    text = table_text(cluster_facts(view))
    assert "0 to 4 workers (adaptive), at most 8 allowed" in text
    assert (
        "ends first  lifetime (1 min) now\nthen        idle time-out (30 min) does not run" in text
    )
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


HOSTILE = "\x1b]0;owned\x07 \x9b31m\r\x7f"
SHOWN = "\\x1b]0;owned\\x07 \\x9b31m\\x0d\\x7f"


def test_control_characters_do_not_reach_a_terminal() -> None:
    out, err = Screen(tty=True), Screen(tty=True)
    terminal = Terminal(out=out, err=err)
    terminal.write(f"a\tb\n{HOSTILE}\n")
    terminal.note(HOSTILE)
    terminal.complain(GpuClusterError(HOSTILE, hint=HOSTILE))
    with terminal.progress() as show:
        show(a_view("alpha", words=f"waits for {HOSTILE}"))
    assert f"\r\x1b[Kalpha: running: waits for {SHOWN[:10]}" in err.getvalue()
    err.truncate(err.getvalue().index("\r\x1b[Kalpha"))
    file = StringIO()
    Terminal(out=file).write(HOSTILE)
    assert file.getvalue() == HOSTILE
    assert out.getvalue() == f"a\tb\n{SHOWN}\n"
    assert err.getvalue().count("\\x1b]0;owned\\x07") == 3
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out.getvalue() + err.getvalue())


def test_json_keeps_control_characters_as_escapes() -> None:
    text = as_json({"name": HOSTILE + "\n"})
    assert json.loads(text) == {"name": HOSTILE + "\n"}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_an_error_is_one_line() -> None:
    err = StringIO()
    Terminal(err=err).complain(GpuClusterError("no\nhint: rm -rf ~", hint="yes\nno"))
    assert err.getvalue() == "error: no hint: rm -rf ~\nhint: yes no\n"


def test_what_each_gpu_does_is_a_line_and_its_troubles_are_named() -> None:
    reading = GpuReading(
        "w-0",
        host="node1",
        index=1,
        name="H100",
        utilization=73,
        memory_used=2**30,
        memory_total=2**33,
        power=74.6,
        temperature=46,
        slowed=("heat",),
        ecc_errors=1,
        xids=(79,),
    )
    table = gpu_table([reading, GpuReading("w-1", host="node1", trouble="no driver")])
    assert table.rows[0][:8] == (
        "w-0", "node1", "1", "H100", "73 %", "1.0 GiB of 8.0 GiB", "75 W", "46 °C",
    )  # fmt: skip
    assert table.rows[0][8] == "slowed by heat; 1 uncorrected memory error; XID 79"
    assert table.rows[1][2:] == ("", "", "", "", "", "", "no driver")
    assert as_text([gpu_table([])]) == ""


def test_gpu_hours_are_shown_with_their_maximum() -> None:
    view = a_view(unit="GPUs", gpu_hours=0.31, gpu_hours_estimate=16.0, gpu_words="8 GPUs held")
    text = table_text(cluster_facts(view))
    assert "GPU-hours  0.3 GPU-hours so far, at most 16 GPU-hours" in text
    assert "idle GPUs  8 GPUs held" in text
    assert "GPU-hours" not in table_text(cluster_facts(a_view()))
