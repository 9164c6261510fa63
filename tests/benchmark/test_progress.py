"""The progress bar."""

from __future__ import annotations

import io
import itertools

import pytest

from jupyter_gpucluster.benchmark import Progress, progress_bar
from tests.cli.doubles import Screen

QUARTER = Progress("gpu", 1, 3, done=10, total=40, seconds=3.2)
DRAWN = "\rgpu 1/3 [#######.......................] 10/40 chunks, 3 s, 10 s left"
WIPED = f"\r{' ' * (len(DRAWN) - 1)}\r"
END = Progress("gpu", 1, 3, done=40, total=40, seconds=13)


@pytest.mark.parametrize(
    "steps, tty, drawn",
    [
        ([QUARTER], True, [DRAWN, WIPED]),
        ([QUARTER, END], True, [DRAWN, WIPED, ""]),
        ([], True, [""]),
        ([QUARTER], False, ["", ""]),
    ],
    ids=["interrupted", "ended", "never drawn", "a file"],
)
def test_a_terminal_shows_the_state_of_the_run_and_nothing_is_left_of_it(
    steps: list[Progress], tty: bool, drawn: list[str]
) -> None:
    stream: io.StringIO = Screen(tty=tty)
    seen = [""]
    with progress_bar(stream) as show:
        for step in steps:
            show(step)
            seen.append(stream.getvalue())
    seen.append(stream.getvalue())
    added = [now[len(before) :] for before, now in itertools.pairwise(seen)]
    assert added == drawn
