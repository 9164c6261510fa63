"""The JSON Schema of options: valid, of one mind with the check at start, and told to forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_jsonable_python

from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.launch.profile_catalog import places
from jupyter_gpucluster.profiles import (
    Profile,
    apply_options,
    load_profiles,
    options_schema,
    resolve_options,
)
from jupyter_gpucluster.profiles.model import Option
from jupyter_gpucluster.profiles.options import matches
from jupyter_gpucluster.profiles.search import DEMO_SWITCH
from tests.profiles.test_options import PLACE, profile_of

ALL_KINDS = profile_of(
    PLACE
    + """
      exclusive: {type: boolean, field: environment.variables.EXCLUSIVE}
      ticket: {type: string, pattern: "T[0-9]{3,5}(-x)?", field: environment.variables.TICKET}
    """.rstrip()
)

TEXTS = {
    "duration": ["30 min", "00:30:00", "1-12:00:00", "1:30", "1.5 s", "0", "3 weeks", " 12 h "],
    "memory": ["4 GiB", "512MB", "1G", "0 B", "1.5 TiB", "lots", "", "7"],
    "path": ["/scratch", "~/x", "$TMPDIR", "scratch", " /x", "~nobody-there/x"],
}


def _pattern(validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Any]:
    # JSON Schema's "$" is that of ECMA-262, which sees no end before a last line feed.
    if validator.is_type(value, "string") and not re.search(
        pattern.removesuffix("$") + r"\Z", value
    ):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


CHECKER = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern})


def schema_takes(profile: Profile, values: dict[str, Any]) -> bool:
    return bool(CHECKER(options_schema(profile)).is_valid(values))


def start_takes(profile: Profile, values: dict[str, Any]) -> bool:
    try:
        resolve_options(profile, values)
    except InvalidInput:
        return False
    return True


@pytest.fixture(scope="module")
def profiles() -> dict[str, Profile]:
    """Return all profiles that are shipped, and one with options of every type."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DEMO_SWITCH, "1")
        found = load_profiles(all_sites=True)
    shipped = {name: loaded.profile for name, loaded in found.profiles.items()}
    assert {"local", "demo-quick", "nersc-perlmutter-gpu"} <= set(shipped)
    return {**shipped, "all kinds": ALL_KINDS}


def values_of(option: Option) -> st.SearchStrategy[Any]:
    """Return values of the type that a form gives for an option, blank text excepted."""
    if option.type == "boolean":
        return st.booleans()
    if option.type == "integer":
        return st.integers() | st.integers(-1, 9)
    written = [*option.choices, *TEXTS.get(option.type, ["m1234", "a1", "T123", "T123-x", "a\n"])]
    given_text = st.sampled_from(written) | st.text() | st.from_regex(r"[~$/]?[a-z0-9:. -]{1,9}")
    return given_text.filter(lambda text: text.strip() != "")


def told_exactly(option: Option) -> bool:
    """Return whether JSON Schema has words for all that a start checks."""
    return option.type in ("boolean", "integer", "enum") or (
        option.type == "string" and "(" not in (option.pattern or "")
    )


def test_the_schema_of_every_shipped_profile_is_valid(profiles: dict[str, Profile]) -> None:
    assert {option.type for option in ALL_KINDS.options.values()} == {
        *("string", "integer", "boolean", "enum", "duration", "memory", "path")
    }
    for name, profile in profiles.items():
        schema = options_schema(profile)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert to_jsonable_python(schema) == schema, name
        shown = {n: o["default"] for n, o in schema["properties"].items() if "default" in o}
        needed = dict.fromkeys(schema["required"], "m1234")
        assert schema_takes(profile, {**needed, **shown}), name


@given(st.data())
def test_a_schema_and_a_start_take_the_same_values(
    profiles: dict[str, Profile], data: st.DataObject
) -> None:
    profile = profiles[
        data.draw(st.sampled_from(sorted(n for n, p in profiles.items() if p.options)))
    ]
    name = data.draw(st.sampled_from(sorted(profile.options)))
    value = data.draw(values_of(profile.options[name]))
    others = {other: "m1234" for other in options_schema(profile)["required"] if other != name}
    taken = start_takes(profile, {**others, name: value})
    if told_exactly(profile.options[name]):
        assert schema_takes(profile, {**others, name: value}) is taken
    elif taken:
        assert schema_takes(profile, {**others, name: value})


@given(st.dictionaries(st.sampled_from([*ALL_KINDS.options, "zzz"]), st.just("a1")))
def test_what_is_needed_and_what_is_unknown_is_the_same(values: dict[str, Any]) -> None:
    known = {"account", "zzz"}
    part = {name: value for name, value in values.items() if name in known}
    assert schema_takes(ALL_KINDS, part) is start_takes(ALL_KINDS, part)


@pytest.mark.parametrize(
    "option, fine, wrong",
    [
        ("walltime", "2 h", "two hours"),
        ("walltime", "1-12", "half past"),
        ("memory", "1.5 GiB", "4 Gig"),
        ("memory", "512 MB", "-1 GB"),
        ("scratch", "/x", "x"),
        ("ticket", "T1234-x", "T\t1"),
    ],
)
def test_what_is_plainly_wrong_is_told_without_a_start(option: str, fine: str, wrong: str) -> None:
    assert schema_takes(ALL_KINDS, {"account": "a", option: fine})
    assert not schema_takes(ALL_KINDS, {"account": "a", option: wrong})
    assert not start_takes(ALL_KINDS, {"account": "a", option: wrong})


@pytest.mark.parametrize(
    "pattern",
    ["[a-z][a-z0-9]*", "T[0-9]{3,5}", "a|b|[c-e]+", r"x\.y-[\[\]._-]?", "[A-Za-z0-9_-]{1,8}"],
)
def test_a_plain_pattern_is_published(pattern: str) -> None:
    assert published(pattern) == f"^(?:{pattern})$"


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+",
        "(?i)abc",
        "(a+)+b",
        "[[:alpha:]]+",
        "[a-z&&[^b]]",
        "[a--]+",
        "a.c",
        "[^,]+",
        r"\pL",
        "a*a*a*a*b",
    ],
)
def test_a_pattern_that_others_may_read_otherwise_is_left_to_the_start(pattern: str) -> None:
    assert matches(pattern, "") in (True, False)
    assert "(?:" not in published(pattern)


def published(pattern: str) -> str:
    option = Option(type="string", pattern=pattern)
    profile = ALL_KINDS.model_copy(update={"options": {"x": option}})
    told: str = options_schema(profile)["properties"]["x"]["pattern"]
    return told


PARTS = st.sampled_from([*"ab1-_,.|*+?{}[]\\^$() &~", "[a-c]", "[a-", "{2}", "{1,3}", r"\.", r"\d"])


@given(st.lists(PARTS, max_size=8).map("".join), st.text("ab1-_,.|*+?{}[]\\^$() &~\n", max_size=6))
def test_published_patterns_mean_the_same_to_the_server(pattern: str, text: str) -> None:
    try:
        taken = matches(pattern, text)
    except ValueError:
        return  # no profile may have it
    told = published(pattern)
    if "(?:" in told:
        assert bool(re.search(told.removesuffix("$") + r"\Z", text)) is taken


def test_a_form_learns_type_bounds_choices_and_words() -> None:
    schema = options_schema(ALL_KINDS)
    properties = schema["properties"]
    assert schema["required"] == ["account"]
    assert schema["additionalProperties"] is False
    assert properties["account"] == {
        "kind": "string",
        "type": "string",
        "title": "Project",
        "description": "",
        "allowed": "one line of text that matches the pattern [a-z][a-z0-9]*",
        "pattern": "^(?:[a-z][a-z0-9]*)$",
        "maxLength": 1024,
    }
    assert properties["kind"]["enum"] == ["a100", "h100"]
    assert properties["kind"]["default"] == "a100"
    assert properties["walltime"]["kind"] == "duration"
    assert properties["walltime"]["title"] == "Walltime"
    assert properties["walltime"]["default"] == "00:30:00"
    assert properties["walltime"]["allowed"] == (
        "a length of time such as 30 min, at least 00:05:00, at most 04:00:00"
    )
    assert properties["gpus"] == {
        "kind": "integer",
        "type": "integer",
        "title": "Gpus",
        "description": "",
        "allowed": "a whole number, at least 1, at most 4",
        "minimum": 1,
        "maximum": 4,
    }
    assert properties["memory"]["default"] == "100 GiB"


def test_an_option_with_a_default_need_not_be_given() -> None:
    place = profile_of(
        """
        title: x
        backend: slurm
        options: {account: {type: string, required: true, default: m1}}
        """
    )
    assert options_schema(place)["required"] == []
    assert apply_options(place, {}).job.account == "m1"


def test_what_the_form_shows_as_default_is_accepted_when_sent_back() -> None:
    properties = options_schema(ALL_KINDS)["properties"]
    shown = {name: told["default"] for name, told in properties.items() if "default" in told}
    given_alone = {"account": "a"}
    assert apply_options(ALL_KINDS, {**given_alone, **shown}) == apply_options(
        ALL_KINDS, given_alone
    )


def test_front_ends_get_the_schema_with_the_profile() -> None:
    for place in places()["profiles"]:
        assert place["options"] == options_schema(load_profiles().profiles[place["name"]].profile)
