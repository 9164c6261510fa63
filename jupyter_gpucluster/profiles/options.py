"""What users may set at start: values checked, and put into the profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import SchemaError, SchemaValidator, core_schema

from ..core.errors import InvalidInput
from .fields import home_expanded, one_line, whole_number
from .keys import SETTABLE, Path, covers, join, split, suggestion
from .model import Option, Profile
from .placeholders import filled, placeholders
from .units import format_duration, format_memory, parse_duration, parse_memory, shown

Value = str | int | bool

MAXIMUM_PATTERN = 200
MAXIMUM_MATCHED = 1024
AMOUNTS = ("integer", "duration", "memory")

VARIABLES = ("environment", "variables")
"""Their values are text, whatever the option's type is."""
_KINDS = {
    "string": "text on one line",
    "integer": "a whole number",
    "boolean": "true or false",
    "enum": "a choice",
    "duration": "a length of time such as 30 min",
    "memory": "an amount of memory such as 4 GiB",
    "path": "a path that starts with / or ~ or $",
}


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
        return Profile.model_validate(data)
    except ValidationError as error:
        raise _misfit(profile, settled, error) from None


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
        raise ValueError(f"{shown(value)} is no choice{suggestion(str(parsed), option.choices)}")
    if option.pattern is not None and not matches(option.pattern, str(parsed)):
        raise ValueError(f"{shown(value)} does not match {option.pattern}")
    return parsed


def parse_value(option: Option, value: object) -> Value:
    """Return a value of the option's type, whatever its bounds; raises ValueError."""
    return _PARSERS[option.type](value)


def bounds(option: Option) -> tuple[int | None, int | None]:
    """Return minimum and maximum, which only amounts have, as numbers; raises ValueError."""

    def number(bound: object) -> int | None:
        return None if bound is None else int(parse_value(option, bound))

    return number(option.minimum), number(option.maximum)


def matches(pattern: str, text: str) -> bool:
    """Tell whether a whole text matches; raises ValueError for a pattern that cannot be used."""
    if len(text) > MAXIMUM_MATCHED:
        return False
    try:
        _matcher(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


def allowed(option: Option) -> str:
    """Say in words what an option takes."""
    if option.type == "enum":
        return "one of " + ", ".join(option.choices)
    words = _KINDS[option.type]
    minimum, maximum = bounds(option)
    if minimum is not None:
        words += f", at least {written(option, minimum)}"
    if maximum is not None:
        words += f", at most {written(option, maximum)}"
    return words if option.pattern is None else f"{words} that matches {option.pattern}"


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
            f"{shown(pattern)} is no regular expression"
            " (look-around and back references are not supported)"
        ) from None


def _boolean(value: object) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError(f"{shown(value)} is neither true nor false")


def _file_path(value: object) -> str:
    text = one_line(value)
    if not text.startswith(("/", "~", "$")):
        raise ValueError(f"{shown(value)} is no absolute path")
    return home_expanded(text)


_PARSERS: dict[str, Callable[[object], Value]] = {
    "string": one_line,
    "enum": one_line,
    "integer": whole_number,
    "boolean": _boolean,
    "duration": parse_duration,
    "memory": parse_memory,
    "path": _file_path,
}


def _inserted(option: Option, value: Value) -> str:
    # Queueing systems read "4 GiB" as two words.
    text = written(option, value)
    return text.replace(" ", "") if option.type == "memory" else text
