"""The progress bar."""

from __future__ import annotations

import io

from jupyter_gpucluster.benchmark import Progress, ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_how_far_the_run_is_and_what_is_left() -> None:
    terminal = Terminal()
    ProgressBar(terminal)(Progress("gpu", 1, 3, done=10, total=40, seconds=3.2))
    assert terminal.getvalue() == (
        "\rgpu 1/3 [#######.......................] 10/40 chunks, 3 s, 10 s left"
    )


def test_nothing_is_left_of_the_bar_when_the_run_ends() -> None:
    terminal = Terminal()
    bar = ProgressBar(terminal)
    bar(Progress("gpu", 1, 1, done=0, total=4, seconds=1))
    drawn = len(terminal.getvalue()) - 1
    bar(Progress("gpu", 1, 1, done=4, total=4, seconds=2))
    assert terminal.getvalue().endswith("\r" + " " * drawn + "\r")


def test_an_interrupted_bar_can_be_wiped() -> None:
    terminal = Terminal()
    bar = ProgressBar(terminal)
    bar.close()
    assert terminal.getvalue() == ""
    bar(Progress("cpu", 1, 1, done=1, total=4, seconds=1))
    bar.close()
    assert terminal.getvalue().endswith(" \r")


def test_a_file_gets_nothing() -> None:
    stream = io.StringIO()
    ProgressBar(stream)(Progress("gpu", 1, 1, done=1, total=4, seconds=1))
    assert stream.getvalue() == ""
