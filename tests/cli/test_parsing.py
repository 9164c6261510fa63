"""The command line accepts correct usage, and explains wrong usage."""

from __future__ import annotations

import json
import re

import pytest

from .doubles import Desk


@pytest.mark.parametrize(
    "words, message, hint",
    [
        (["strat"], "Unknown command 'strat'.", "Did you mean start?"),
        (["frobnicate"], "Unknown command 'frobnicate'.", "The commands are: setup, profiles"),
        (["start"], "Missing: PROFILE.", "See: jupyter gpucluster start --help"),
        (["start", "local", "--wrkers", "2"], "There is no option --wrkers.", "--workers?"),
        (["start", "local", "--wrkers=2"], "There is no option --wrkers.", "--workers?"),
        (["start", "local", "--work", "2"], "There is no option --work.", "--workers?"),
        (["start", "local", "spare"], "Unexpected argument 'spare'.", "--help"),
        (["start", "local", "--workers", "0"], "--workers takes 1 or more, not 0.", "--adapt 0"),
        (["start", "local", "--workers", "-1"], "--workers takes 1 or more, not -1.", ""),
        (["start", "local", "--workers", "1.5"], "takes a whole number, not '1.5'.", ""),
        (["start", "local", "--workers", "abc"], "takes a whole number, not 'abc'.", ""),
        (["start", "local", "--workers", "٣"], "takes a whole number, not '٣'.", ""),
        (["start", "local", "--workers", "1_0"], "takes a whole number, not '1_0'.", ""),
        (["start", "local", "--workers", ""], "takes a whole number, not ''.", ""),
        (["start", "local", "--workers"], "--workers: expected one argument.", "--help"),
        (["start", "local", "--workers", "1", "--gpus", "1"], "not allowed with", ""),
        (["start", "local", "--adapt", "3", "2"], "the maximum must be at least 3.", ""),
        (["start", "local", "--adapt", "0", "0"], "the maximum must be at least 1.", ""),
        (["start", "local", "--option", "account"], "takes NAME=VALUE, not 'account'.", "abc123"),
        (["start", "local", "--option", "a=1", "--option", "a=2"], "a is given twice.", ""),
        (["start", "local", "--python", "p", "--kernel", "k"], "not allowed with", ""),
        (["start", "local", "--wait", "-1"], "--wait takes seconds, 0 or more, not -1.", ""),
        (["start", "local", "--wait=nan"], "--wait takes seconds, 0 or more, not nan.", ""),
        (["start", "local", "--wait=soon"], "--wait takes seconds, not 'soon'.", ""),
        (["start", "local", "--allocation", ""], "--allocation takes the id of a job.", ""),
        (["scale", "alpha"], "--workers --gpus --adapt is required.", "--help"),
        (["scale", "alpha", "--workers", "-1"], "--workers takes 0 or more, not -1.", ""),
        (["scale", "alpha", "--gpus", "1"], "Cluster alpha has CPU workers", "--workers 1"),
        (["stop"], "Name a cluster.", "--all"),
        (["stop", "alpha", "--all"], "Give names or --all, not both.", ""),
        (["forget"], "Name a cluster.", "forget NAME..."),
        (["forget", "--older-than", "x"], "takes a whole number, not 'x'.", ""),
        (["connect", "alpha", "--form", "daks"], "--form: invalid choice: 'daks'", "--help"),
        (["list", "--", "x"], "The command list takes no -- ARGS.", "--help"),
        (["logs", "alpha", "--lines", "0"], "--lines takes 1 or more, not 0.", ""),
        (["run", "missing.py"], "There is no file missing.py.", "path"),
        (["environment"], "Missing: PATH.", "See: jupyter gpucluster environment --help"),
        (["environment", "a", "--cuda", "11"], "--cuda: invalid choice: '11'", ""),
        (["environment", "a", "--index", "x"], "There is no option --index.", ""),
        (["environment", "a", "--option", "a=1"], "--option sets options of a --profile", ""),
        (["kernel"], "Missing: PATH.", "See: jupyter gpucluster kernel --help"),
        (["kernel", "a"], "A kernel needs a title of one line.", "--title"),
        (["kernel", "a", "--remove", "--replace"], "--remove takes --name and --prefix only.", ""),
        (["bench", "smu"], "WORKLOAD: invalid choice: 'smu'", "--help"),
        (["bench", "sum", "--workers", "0"], "--workers takes 1 or more, not 0.", ""),
        (["bench", "sum", "--compare", "a.json"], "Cannot read a.json: No such file", ""),
        (["bench", "sum", "--against", "a.json"], "Cannot read a.json: No such file", ""),
        (["bench", "sum", "--plots", __file__], f"Cannot write plots to {__file__}", "--plots"),
    ],
)
def test_wrong_usage_is_one_clear_line_and_exit_code_2(
    desk: Desk, words: list[str], message: str, hint: str
) -> None:
    assert desk.types(*words) == 2
    lines = desk.err.splitlines()
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert hint in "".join(lines[1:])
    assert len(lines) <= 2
    assert desk.out == ""
    assert not desk.clusters.started


def test_an_error_is_one_json_document_where_json_is_asked_for(desk: Desk) -> None:
    assert desk.types("start", "local", "--workers", "0", "--json") == 2
    assert json.loads(desk.out)["message"] == "--workers takes 1 or more, not 0."
    assert desk.err.startswith("error: ")


def test_following_a_log_has_no_json(desk: Desk) -> None:
    assert desk.types("logs", "alpha", "--follow", "--json") == 2
    assert "--follow has no end" in json.loads(desk.out)["message"]


def test_even_an_unreadable_command_line_is_answered_in_json(desk: Desk) -> None:
    assert desk.types("strat", "--json") == 2
    assert json.loads(desk.out) == {
        "message": "Unknown command 'strat'.",
        "hint": "Did you mean start?",
        "detail": "",
    }


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_lists_the_commands(desk: Desk, words: list[str]) -> None:
    assert desk.types(*words) == 0
    assert re.search("^  profiles +list the profiles", desk.out, re.MULTILINE)


def test_no_command_is_wrong_usage(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.types() == 2
    assert "usage:" in capsys.readouterr().err


def test_a_command_lists_its_options(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.types("start", "--help") == 0
    assert "--adapt MIN MAX" in capsys.readouterr().out
    assert not desk.clusters.started


def test_a_bare_wait_does_not_swallow_the_next_word(desk: Desk) -> None:
    assert desk.types("start", "--wait", "local") == 0
    assert desk.clusters.started[0].profile == "local"


def test_wait_takes_seconds(desk: Desk) -> None:
    assert desk.types("start", "local", "--wait", "0") == 3
    assert desk.types("stop", "--wait", "0.0", "alpha") == 3
