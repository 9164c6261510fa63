"""Options of a start: values checked and put into the profile, and their JSON Schema."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import SchemaError, SchemaValidator, core_schema

from ..core.errors import InvalidInput
from .model import SETTABLE, Option, Path, Profile, covers, join, split, suggestion
from .values import (
    DURATION_PATTERN,
    MAXIMUM_TEXT,
    MEMORY_PATTERN,
    format_duration,
    format_memory,
    home_expanded,
    one_line,
    parse_duration,
    parse_memory,
    shown,
    whole_number,
)

Value = str | int | bool

MAXIMUM_PATTERN = 200
MAXIMUM_MATCHED = 1024
AMOUNTS = ("integer", "duration", "memory")

VARIABLES = ("environment", "variables")
"""Their values are text, for an option of any type."""
PLACEHOLDER = re.compile(r"\{(\{[a-z][a-z0-9_]*\})\}|(?<!\$)\{([a-z][a-z0-9_]*)\}")
"""``{name}``, not ``${name}``, which shells know; ``{{name}}`` stands for ``{name}`` itself."""
JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"

_PRINTABLE = r"[^\u0000-\u001f\u007f-\u009f\u2028\u2029]"
_LINE = f"^{_PRINTABLE}*$"
_PATH = f"^[/~$]{_PRINTABLE}*$"

# Characters, sets of characters, how often, and "or": what all dialects of regular expressions read
# alike.  The server's own engine takes linear time; others get only few choices of how often.
_PLAIN = re.compile(
    r"(?: (?: [\w ,:;@%=/~\#!\"'<>&-] | \\[$^.*+?()\[\]{}|]"
    r"  | \[ (?: [\w .,:;@%=/]-? | \\[-.\[\]] )+ -? \] )"
    r"  (?: [*+?] | \{\d+(?:,\d*)?\} )? | \| )*",
    re.ASCII | re.VERBOSE,
)
_MANY = 4


def apply_options(profile: Profile, values: Mapping[str, Any]) -> Profile:
    """Return the profile with these options in their places, and no options left.

    Parameters
    ----------
    profile
        As loaded.
    values
        Text, as from ``--option K=V``, or JSON values.  None and empty text mean "not given".

    Raises
    ------
    InvalidInput
        An unknown option, a missing or bad value; ``detail`` is ``options.<name>``.
    """
    settled = resolve_options(profile, values)
    data = profile.model_dump()
    texts = {name: _inserted(profile.options[name], value) for name, value in settled.items()}
    # First, so that braces in what a user gives mean nothing.
    for section in SETTABLE:
        data[section] = filled(data[section], (section,), texts)
    for name, option in profile.options.items():
        for path in targets(profile, name, option):
            if name in settled:
                put(data, path, texts[name] if path[:2] == VARIABLES else settled[name])
    data["options"] = {}
    try:
        return scaled(Profile.model_validate(data))
    except ValidationError as error:
        raise _misfit(profile, settled, error) from None


def scaled(profile: Profile) -> Profile:
    """Return the profile with cores and memory for the number of its GPUs."""
    job = profile.job
    if not isinstance(job.gpus, int) or not job.gpus:
        return profile
    amounts = {"cpus": job.cpus_per_gpu, "memory": job.memory_per_gpu}
    scaled = {key: each * job.gpus for key, each in amounts.items() if each is not None}
    return profile.model_copy(update={"job": job.model_copy(update=scaled)}) if scaled else profile


def resolve_options(profile: Profile, values: Mapping[str, Any]) -> dict[str, Value]:
    """Return the checked value of each option that has one, defaults included.

    Durations come in seconds, memory in bytes.  Raises as `apply_options` does.
    """
    for name in values:
        if name not in profile.options:
            known = ", ".join(profile.options) or "none"
            raise InvalidInput(
                f"unknown option {shown(name)}{suggestion(str(name), profile.options)}",
                hint=f"Options of this profile: {known}.",
                detail=f"options.{name}",
            )
    settled: dict[str, Value] = {}
    for name, option in profile.options.items():
        given = values.get(name)
        value = option.default if _nothing(given) else given
        if not _nothing(value):
            settled[name] = _checked(name, option, value)
        elif option.required:
            raise InvalidInput(
                f"option `{name}` is required",
                hint=f"Give {name}: {allowed(option)}.",
                detail=f"options.{name}",
            )
    return settled


def check_value(option: Option, value: object) -> Value:
    """Return a value as the option's type has it; raises ValueError with what is wrong."""
    parsed = parse_value(option, value)
    minimum, maximum = bounds(option)
    if minimum is not None and int(parsed) < minimum:
        raise ValueError(f"{shown(value)} is less than {written(option, minimum)}")
    if maximum is not None and int(parsed) > maximum:
        raise ValueError(f"{shown(value)} is more than {written(option, maximum)}")
    if option.type == "enum" and parsed not in option.choices:
        raise ValueError(f"{shown(value)} is not a choice{suggestion(str(parsed), option.choices)}")
    if option.pattern is not None and not matches(option.pattern, str(parsed)):
        raise ValueError(f"{shown(value)} does not match {option.pattern}")
    return parsed


def takes(option: Option, value: object) -> bool:
    """Return whether an option accepts a value."""
    try:
        check_value(option, value)
    except ValueError:
        return False
    return True


def parse_value(option: Option, value: object) -> Value:
    """Return a value of the option's type, whatever its bounds; raises ValueError."""
    return _TYPES[option.type][0](value)


def bounds(option: Option) -> tuple[int | None, int | None]:
    """Return minimum and maximum, which only amounts have, as numbers; raises ValueError."""

    def number(bound: object) -> int | None:
        return None if bound is None else int(parse_value(option, bound))

    return number(option.minimum), number(option.maximum)


def matches(pattern: str, text: str) -> bool:
    """Return whether a whole text matches; raises ValueError for a pattern that cannot be used."""
    if len(text) > MAXIMUM_MATCHED:
        return False
    try:
        _matcher(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


def allowed(option: Option) -> str:
    """Return the values that an option takes, in words."""
    if option.type == "enum":
        return "one of " + ", ".join(option.choices)
    words = _TYPES[option.type][1]
    minimum, maximum = bounds(option)
    if minimum is not None:
        words += f", at least {written(option, minimum)}"
    if maximum is not None:
        words += f", at most {written(option, maximum)}"
    return words if option.pattern is None else f"{words} that matches the pattern {option.pattern}"


def written(option: Option, value: Value) -> str:
    """Return a checked value as users write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and option.type == "duration":
        return format_duration(value)
    if isinstance(value, int) and option.type == "memory":
        return format_memory(value)
    return str(value)


def targets(profile: Profile, name: str, option: Option) -> list[Path]:
    """Return the keys that an option sets as a whole; none if it only fills placeholders."""
    if option.field is not None:
        return [split(option.field)]
    return [] if name in placeholders(profile) else [("job", name)]


def put(data: dict[str, Any], path: Path, value: object) -> None:
    """Set the value at a path, making mappings on the way."""
    for part in path[:-1]:
        below = data.get(part)
        data[part] = below if isinstance(below, dict) else {}
        data = data[part]
    data[path[-1]] = value


def _misfit(profile: Profile, settled: Iterable[str], error: ValidationError) -> InvalidInput:
    problem = error.errors(include_url=False)[0]
    path = tuple(str(part) for part in problem["loc"])
    fillers = [name for name, places in placeholders(profile).items() if path in places]
    setters = [
        name
        for name in settled
        if any(covers(target, path) for target in targets(profile, name, profile.options[name]))
    ]
    name = (setters + fillers)[0]
    words = problem["msg"].removeprefix("Value error, ")
    return InvalidInput(
        f"option `{name}` does not fit `{join(path)}`: {words}", detail=f"options.{name}"
    )


def _nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _checked(name: str, option: Option, value: object) -> Value:
    try:
        return check_value(option, value)
    except ValueError as error:
        raise InvalidInput(
            f"option `{name}`: {error}", hint=f"Give {allowed(option)}.", detail=f"options.{name}"
        ) from None


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> SchemaValidator:
    # The Rust engine matches in linear time, so that no pattern can stop the server.
    if len(pattern) > MAXIMUM_PATTERN:
        raise ValueError(f"pattern is longer than {MAXIMUM_PATTERN} characters")
    try:
        return SchemaValidator(core_schema.str_schema(pattern=rf"\A(?:{pattern})\z"))
    except SchemaError:
        raise ValueError(
            f"{shown(pattern)} is not a regular expression"
            " (look-around and back references are not supported)"
        ) from None


def _boolean(value: object) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError(f"{shown(value)} is not true or false")


def _file_path(value: object) -> str:
    text = one_line(value)
    if not text.startswith(("/", "~", "$")):
        raise ValueError(f"{shown(value)} is not an absolute path")
    return home_expanded(text)


_TYPES: dict[str, tuple[Callable[[object], Value], str, dict[str, Any]]] = {
    "string": (one_line, "one line of text", {"pattern": _LINE, "maxLength": MAXIMUM_TEXT}),
    "integer": (whole_number, "a whole number", {"type": "integer"}),
    "boolean": (_boolean, "true or false", {"type": "boolean"}),
    "enum": (one_line, "a choice", {}),
    "duration": (parse_duration, "a length of time such as 30 min", {"pattern": DURATION_PATTERN}),
    "memory": (parse_memory, "an amount of memory such as 4 GiB", {"pattern": MEMORY_PATTERN}),
    "path": (
        _file_path,
        "a path that starts with / or ~ or $",
        {"pattern": _PATH, "maxLength": MAXIMUM_TEXT},
    ),
}
"""The parser of each type of option, its name in messages, and the words of its JSON Schema."""


def _inserted(option: Option, value: Value) -> str:
    # Batch systems read "4 GiB" as two words.
    text = written(option, value)
    return text.replace(" ", "") if option.type == "memory" else text


# Names in braces


def placeholders(profile: Profile) -> dict[str, list[Path]]:
    """Return the names in braces and where each stands."""
    return placeholders_in(profile.model_dump(include=set(SETTABLE)))


def placeholders_in(value: object) -> dict[str, list[Path]]:
    """Return the names in braces in mappings and lists, and where each stands."""
    found: dict[str, list[Path]] = {}
    _collect(value, (), found)
    return found


def _collect(value: object, path: Path, found: dict[str, list[Path]]) -> None:
    if isinstance(value, dict):
        for key, below in value.items():
            _collect(below, (*path, key), found)
    elif isinstance(value, (list, tuple)):
        for index, below in enumerate(value):
            _collect(below, (*path, str(index)), found)
    elif isinstance(value, str):
        for match in PLACEHOLDER.finditer(value):
            if match[2]:
                found.setdefault(match[2], []).append(path)


def filled(value: Any, path: Path, texts: Mapping[str, str]) -> Any:
    """Return a section's values with these texts in place of names in braces.

    A list item or variable whose option has no value is left out; other text becomes empty.
    """
    if isinstance(value, dict):
        if path == ("environment", "variables"):
            value = {key: text for key, text in value.items() if not _lacking(text, texts)}
        return {key: filled(below, (*path, key), texts) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_fill(item, path, texts) for item in value if not _lacking(item, texts)]
    if isinstance(value, str):
        return "" if _lacking(value, texts) else _fill(value, path, texts)
    return value


def _lacking(text: str, texts: Mapping[str, str]) -> bool:
    return any(match[2] and match[2] not in texts for match in PLACEHOLDER.finditer(text))


def _fill(text: str, path: Path, texts: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        value, name = texts[match[2]], match[2]
        if path == ("environment", "prologue"):
            return shlex.quote(value)
        if path == ("job", "directives") and re.search(r"[\s'\"\\;#]", value):
            raise InvalidInput(
                f"option `{name}`: {shown(value)} holds a blank, quote or other sign"
                " that would start another directive",
                hint="Leave these signs out.",
                detail=f"options.{name}",
            )
        return value

    return PLACEHOLDER.sub(replacement, text)


# JSON Schema


def options_schema(profile: Profile) -> dict[str, Any]:
    """Return the JSON Schema of the options that a start of this profile takes.

    Of values of the types that it names, it refuses only what a start refuses, too.  The reverse is
    left to the start where JSON Schema has no words: for bounds of durations and memory, for
    patterns that other readers might take for something else, and for homes of other users.

    Besides the words of JSON Schema a property has ``kind``, the option's type, ``allowed``,
    what may be given, in words, and perhaps ``values``, as in the profile.  Defaults are written as
    users write them.
    """
    return {
        "$schema": JSON_SCHEMA,
        "type": "object",
        "properties": {name: _property(name, option) for name, option in profile.options.items()},
        "required": [
            name
            for name, option in profile.options.items()
            if option.required and option.default is None
        ],
        "additionalProperties": False,
    }


def _property(name: str, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "kind": option.type,
        "title": option.title or name.replace("_", " ").capitalize(),
        "description": option.help,
        "allowed": allowed(option),
        "type": "string",
        **_TYPES[option.type][2],
    }
    if option.pattern is not None:
        schema |= _text(option.pattern)
    if option.type == "enum":
        schema["enum"] = list(option.choices)
    if option.values:
        schema["values"] = option.values
    if option.type == "integer":
        named = zip(("minimum", "maximum"), bounds(option), strict=True)
        schema |= {key: value for key, value in named if value is not None}
    if option.default is not None:
        default = check_value(option, option.default)
        plain = option.type in ("integer", "boolean")
        schema["default"] = default if plain else written(option, default)
    return schema


def _text(pattern: str) -> dict[str, Any]:
    few = len(re.findall(r"[*+?{]", pattern)) < _MANY
    # Between the characters of a set "--" is a range to some, and a difference to others.
    plain = few and "--" not in pattern and _PLAIN.fullmatch(pattern)
    return {"pattern": f"^(?:{pattern})$" if plain else _LINE, "maxLength": MAXIMUM_MATCHED}
