"""Options: values of every type checked, and put in their places."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.profiles import Profile, apply_options, find_profile, resolve_options
from jupyter_gpucluster.profiles.reader import read_text
from jupyter_gpucluster.profiles.validation import validate

HEAD = "title: x\nbackend: slurm\n"
PLACE = """
    title: Place
    backend: slurm
    job:
      account: "{account}_g"
      directives: ["-C {kind}", "--reservation={reservation}", "--mem={memory}"]
      gpus: 4
    workers: {local_directory: "$TMPDIR/{account}"}
    environment:
      prologue: ["module load {module}", "echo ${account} {{account}} {account}"]
      variables: {LICENSE: "{licence}", PLACE: here}
    options:
      account: {type: string, title: Project, required: true, pattern: "[a-z][a-z0-9]*"}
      kind: {type: enum, choices: [a100, h100], default: a100}
      reservation: {type: string}
      module: {type: string, default: cuda}
      licence: {type: string}
      walltime: {type: duration, minimum: 5 min, maximum: "04:00:00", default: 30 min}
      memory: {type: memory, minimum: 1 GiB, maximum: 500 GiB, default: 100 GiB}
      gpus: {type: integer, minimum: 1, maximum: 4}
      idle: {type: duration, field: policy.idle_timeout}
      scratch: {type: path, field: environment.variables.SCRATCH}
"""


def profile_of(text: str) -> Profile:
    profile, findings = validate(read_text(dedent(text), "place.yaml"))
    assert findings == []
    assert profile is not None
    return profile


@pytest.fixture
def place() -> Profile:
    """Return a profile with an option of every type."""
    return profile_of(PLACE)


def test_values_go_to_fields_braces_and_the_keys_of_their_names(place: Profile) -> None:
    done = apply_options(
        place, {"account": "abc", "walltime": "2 h", "gpus": "2", "idle": "1 h", "licence": "x y"}
    )
    assert done.job.account == "abc_g"
    assert done.job.walltime == 7200
    assert done.job.gpus == 2
    assert done.job.memory is None
    assert done.policy.idle_timeout == 3600
    assert done.workers.local_directory == "$TMPDIR/abc"
    assert done.environment.variables == {"LICENSE": "x y", "PLACE": "here"}
    assert done.options == {}


def test_text_of_an_option_without_a_value_is_left_out_or_empty(place: Profile) -> None:
    done = apply_options(place, {"account": "abc"})
    assert done.job.directives == ("-C a100", "--mem=100GiB")
    assert done.environment.variables == {"PLACE": "here"}
    done = apply_options(place, {"account": "abc", "reservation": "r1"})
    assert done.job.directives == ("-C a100", "--reservation=r1", "--mem=100GiB")
    named = profile_of(HEAD + 'job: {queue: "{queue}"}\noptions: {queue: {type: string}}\n')
    assert apply_options(named, {}).job.queue == ""
    assert apply_options(named, {"queue": "gpu"}).job.queue == "gpu"


def test_a_value_in_a_shell_line_is_one_word_beside_shell_variables(place: Profile) -> None:
    done = apply_options(place, {"account": "abc", "module": "x; touch $HOME/y"})
    assert done.environment.prologue == (
        "module load 'x; touch $HOME/y'", "echo ${account} {account} abc",
    )  # fmt: skip


@pytest.mark.parametrize("value", ["a --exclusive", "a;b", "a'b", 'a"b', "a\\b", "a #b"])
def test_a_value_cannot_bring_a_directive_of_its_own(place: Profile, value: str) -> None:
    with pytest.raises(InvalidInput, match="would start another directive") as caught:
        apply_options(place, {"account": "abc", "reservation": value})
    assert caught.value.detail == "options.reservation"


@pytest.mark.parametrize(
    "values,message,hint",
    [
        ({}, "option `account` is required", "Give account: one line of text that matches"),
        ({"account": ""}, "option `account` is required", "Give account: "),
        ({"account": None}, "option `account` is required", "Give account: "),
        (
            {"account": "a", "waltime": "1 h"},
            "unknown option 'waltime'; did you mean `walltime`?",
            "Options of this profile: account, kind, reservation, ",
        ),
        (
            {"account": "A1"},
            "option `account`: 'A1' does not match [a-z][a-z0-9]*",
            "Give one line of text that matches the pattern [a-z][a-z0-9]*.",
        ),
        ({"account": "a1-"}, "option `account`: 'a1-' does not match", ""),
        ({"account": "a\n"}, "option `account`: must be one line of text", ""),
        ({"account": "a\x1b[31m"}, "option `account`: must be one line of text", ""),
        ({"account": ["a"]}, "option `account`: must be text, not a list", ""),
        ({"account": "a" * 2000}, "option `account`: 'aaaa", "matches"),
        ({"account": "a" * 5000}, "option `account`: is longer than 4096 characters", ""),
        (
            {"account": "a", "kind": "h200"},
            "option `kind`: 'h200' is not a choice; did you mean `h100`?",
            "Give one of a100, h100.",
        ),
        (
            {"account": "a", "walltime": "6 h"},
            "option `walltime`: '6 h' is more than 04:00:00",
            "Give a length of time such as 30 min, at least 00:05:00, at most 04:00:00.",
        ),
        ({"account": "a", "walltime": 60}, "option `walltime`: 60 is less than 00:05:00", ""),
        ({"account": "a", "walltime": "1:00"}, "option `walltime`: '1:00' may mean", ""),
        ({"account": "a", "memory": "1 TiB"}, "'1 TiB' is more than 500 GiB", "at least 1 GiB"),
        (
            {"account": "a", "gpus": "5"},
            "option `gpus`: '5' is more than 4",
            "at least 1, at most 4",
        ),
        ({"account": "a", "gpus": 1.5}, "option `gpus`: 1.5 is not a whole number", ""),
        ({"account": "a", "gpus": True}, "option `gpus`: true is not a whole number", ""),
        ({"account": "a", "gpus": "0x2"}, "option `gpus`: '0x2' is not a whole number", ""),
        ({"account": "a", "gpus": "9" * 5000}, "is not a whole number", ""),
        ({"account": "a", "scratch": "tmp"}, "option `scratch`: 'tmp' is not an absolute path", ""),
        ({"account": "a", "scratch": "~nobody1/x"}, "names a home directory that does not", ""),
    ],
)
def test_a_bad_value_says_which_option_what_was_given_and_what_is_allowed(
    place: Profile, values: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        apply_options(place, values)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.detail.startswith("options.")
    assert caught.value.status == 422
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "given,kept",
    [("true", True), ("No", False), (True, True), ("1", True), (False, False), ("0", False)],
    ids=repr,
)
def test_a_boolean_is_read_from_words_and_json(given: object, kept: bool) -> None:
    place = profile_of(
        HEAD + 'environment: {variables: {DEBUG: "{debug}"}}\noptions: {debug: {type: boolean}}\n'
    )
    done = apply_options(place, {"debug": given})
    assert done.environment.variables == {"DEBUG": "true" if kept else "false"}
    with pytest.raises(InvalidInput, match="'maybe' is not true or false"):
        apply_options(place, {"debug": "maybe"})


def test_a_path_begins_at_home_on_this_machine(
    place: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    done = apply_options(place, {"account": "a", "scratch": "~/scratch"})
    assert done.environment.variables["SCRATCH"] == "/home/someone/scratch"
    done = apply_options(place, {"account": "a", "scratch": "$TMPDIR"})
    assert done.environment.variables["SCRATCH"] == "$TMPDIR"


def test_a_pattern_matches_the_whole_value_and_in_linear_time() -> None:
    place = profile_of(HEAD + 'options: {account: {type: string, pattern: "(a+)+b|c"}}\n')
    assert apply_options(place, {"account": "aab"}).job.account == "aab"
    for value in ("a" * 1000, "aabc", "xc", "cb"):
        with pytest.raises(InvalidInput, match="does not match"):
            apply_options(place, {"account": value})


def test_settled_values_are_seconds_bytes_numbers_and_defaults(place: Profile) -> None:
    assert resolve_options(place, {"account": "a", "gpus": "3"}) == {
        "account": "a",
        "kind": "a100",
        "module": "cuda",
        "walltime": 1800,
        "memory": 100 * 2**30,
        "gpus": 3,
    }


def test_a_variable_gets_text_of_any_option_and_braces_in_it_mean_nothing() -> None:
    profile = Profile.model_validate(
        {
            "title": "x",
            "backend": "slurm",
            "options": {
                "exclusive": {"type": "boolean", "field": "environment.variables.EXCLUSIVE"},
                "count": {"type": "integer", "field": "environment.variables.COUNT"},
                "label": {"type": "string", "field": "environment.variables.LABEL"},
            },
        }
    )
    done = apply_options(profile, {"exclusive": True, "count": 3, "label": "{count} {nobody}"})
    assert done.environment.variables == {
        "EXCLUSIVE": "true",
        "COUNT": "3",
        "LABEL": "{count} {nobody}",
    }


def test_a_text_option_cannot_set_what_is_no_text() -> None:
    place = profile_of(HEAD + "options: {nodes: {type: string}}\n")
    with pytest.raises(InvalidInput, match=r"`job\.nodes`: 'two' is not a whole number") as caught:
        apply_options(place, {"nodes": "two"})
    assert caught.value.detail == "options.nodes"


def test_the_options_of_this_machine_set_threads_and_memory() -> None:
    local = find_profile("local").profile
    done = apply_options(local, {"threads": "3", "memory": "2 GiB"})
    assert done.workers.threads == 3
    assert done.workers.memory_limit == 2 * 2**30
    assert apply_options(local, {}).workers == local.workers


READ_ONCE = profile_of(PLACE)


@given(
    st.dictionaries(
        st.sampled_from(["account", "walltime", "memory", "gpus", "kind", "scratch", "zzz"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
def test_any_values_give_a_profile_or_invalid_input(values: dict[str, Any]) -> None:
    try:
        done = apply_options(READ_ONCE, values)
    except InvalidInput:
        return
    assert done.options == {}
