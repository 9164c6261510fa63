"""Declarations of options: each mistake has its place and a fix."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.profiles.reader import Mark, read_text
from jupyter_gpucluster.profiles.validation import validate

HEAD = "title: x\nbackend: slurm\n"

WRONG = {
    "braces that name nothing": (
        'job: {account: "{acount}"}\noptions: {account: {type: string}}',
        3,
        16,
        "`job.account`: {acount} names no option; did you mean `account`?",
    ),
    "braces without options": (
        "environment: {prologue: ['echo {x}']}",
        3,
        26,
        "{x} names no option; declare `options.x`, or double the braces to keep them",
    ),
    "option without type": (
        "options:\n  queue: {title: Queue}",
        4,
        3,
        "`options.queue.type` is missing; add it",
    ),
    "option of an unknown type": (
        "options:\n  queue: {type: strnig}",
        4,
        17,
        "did you mean `string`?",
    ),
    "option with a bad name": (
        "options:\n  My-Queue: {type: string}",
        4,
        3,
        "'My-Queue' cannot be the name of an option",
    ),
    "option that goes nowhere": (
        "options:\n  interface: {type: string}",
        4,
        3,
        "`options.interface` goes nowhere: give it `field:`",
    ),
    "option to a misspelt field": (
        "options:\n  q: {type: string, field: job.quee}",
        4,
        28,
        "not 'job.quee'; did you mean `job.queue`?",
    ),
    "option to a limit": (
        "options:\n  n: {type: integer, field: limits.workers}",
        4,
        29,
        "`field` must be a key below job, workers,",
    ),
    "option to a whole section": (
        "options:\n  n: {type: string, field: job}",
        4,
        28,
        "`field` must be a key below job",
    ),
    "enum without choices": ("options:\n  queue: {type: enum}", 4, 3, "needs `choices`"),
    "choices of a string": (
        "options:\n  queue: {type: string, choices: [a]}",
        4,
        34,
        "`choices` are for type enum only",
    ),
    "choice that is empty": (
        "options:\n  queue: {type: enum, choices: [a, '']}",
        4,
        32,
        "an empty choice means that none was made",
    ),
    "default that is no choice": (
        "options:\n  queue: {type: enum, choices: [a, b], default: c}",
        4,
        49,
        "`default`: 'c' is no choice",
    ),
    "default above the maximum": (
        "options:\n  walltime: {type: duration, maximum: 4 h, default: 5 h}",
        4,
        53,
        "'5 h' is more than 04:00:00",
    ),
    "minimum above the maximum": (
        "options:\n  gpus: {type: integer, minimum: 4, maximum: 2}",
        4,
        34,
        "`minimum` is more than `maximum`",
    ),
    "maximum of a string": (
        "options:\n  queue: {type: string, maximum: 4}",
        4,
        34,
        "`maximum` is for types integer, duration, memory only",
    ),
    "maximum that is no duration": (
        "options:\n  walltime: {type: duration, maximum: long}",
        4,
        39,
        "`maximum`: 'long' is not a length of time",
    ),
    "pattern of a number": (
        "options:\n  gpus: {type: integer, pattern: a}",
        4,
        34,
        "`pattern` is for types string and path only",
    ),
    "broken pattern": (
        "options:\n  queue: {type: string, pattern: '(a'}",
        4,
        34,
        "'(a' is no regular expression",
    ),
    "pattern with a back reference": (
        "options:\n  queue: {type: string, pattern: '(a)\\1'}",
        4,
        34,
        "look-around and back references are not supported",
    ),
    "pattern of a screenful": (
        f"options:\n  queue: {{type: string, pattern: {'a' * 300}}}",
        4,
        34,
        "pattern is longer than 200 characters",
    ),
    "type that does not fit the field": (
        "options:\n  gpus: {type: duration, default: 1 h, field: job.queue}\n"
        "  nodes: {type: string, default: many}",
        5,
        34,
        "`options.nodes`: 'many' does not fit `job.nodes`: 'many' is not a whole number",
    ),
    "option to a list": (
        "options:\n  hop: {type: string, field: job.directives, default: a}",
        4,
        55,
        "does not fit `job.directives`",
    ),
}


@pytest.mark.parametrize("text,line,column,words", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_declaration_is_told_with_line_column_and_way_out(
    text: str, line: int, column: int, words: str
) -> None:
    profile, findings = validate(read_text(HEAD + text + "\n", "site.yaml"))
    assert profile is None
    [finding] = findings
    assert words in finding.message
    assert finding.mark == Mark("site.yaml", line, column)
    assert "\n" not in finding.message
