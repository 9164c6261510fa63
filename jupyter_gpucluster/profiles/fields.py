"""The kinds of values in a profile: text on one line, memory, duration, "auto", patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, WithJsonSchema

from .units import parse_duration, parse_memory, shown

Auto = Literal["auto"]
T = TypeVar("T")

MAXIMUM_TEXT = 4096
MAXIMUM_TITLE = 120
HOP = r"^([A-Za-z0-9_.${}-]+@)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
OPTION = r"^[a-z][a-z0-9_]{0,40}$"

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def one_line(value: object) -> str:
    """Accept text on one line; whole numbers count as text, since nothing of them is lost."""
    text = _text(value)
    if _CONTROL.search(text):
        raise ValueError("must be one line of text without control characters")
    return text


def title_line(value: object) -> str:
    """Accept a title: one line, neither empty nor longer than a line."""
    text = one_line(value).strip()
    if not 0 < len(text) <= MAXIMUM_TITLE:
        raise ValueError(f"must be 1 to {MAXIMUM_TITLE} characters long")
    return text


def lines(value: object) -> str:
    """Accept text of several lines, without the blanks around it."""
    text = _text(value).strip()
    if _CONTROL_BUT_LINES.search(text):
        raise ValueError("must be text without control characters")
    return text


def option_first(value: tuple[str, ...]) -> tuple[str, ...]:
    """Accept arguments of a command that begin with an option, not with what it is to work on."""
    if value and not value[0].startswith("-"):
        raise ValueError(f"must begin with an option, such as -name, not with {shown(value[0])}")
    return value


def whole_number(value: object) -> int:
    """Accept an integer, also one written as text, as a command line gives it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    raise ValueError(f"{shown(value)} is not a whole number")


def _text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, (bool, float)):
        raise ValueError(f"{shown(value)} is read as a number or truth value; put it in quotes")
    if not isinstance(value, str):
        raise ValueError(f"must be text, not {kind_of(value)}")
    if len(value) > MAXIMUM_TEXT:
        raise ValueError(f"is longer than {MAXIMUM_TEXT} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("contains half of a surrogate pair, which is no character") from None
    return value


def kind_of(value: object) -> str:
    """Name the kind of a YAML or JSON value."""
    if value is None:
        return "empty"
    kinds: list[tuple[Any, str]] = [
        (bool, "true or false"),
        ((int, float), "a number"),
        (str, "text"),
        ((list, tuple), "a list"),
        (dict, "a mapping"),
    ]
    return next((words for kind, words in kinds if isinstance(value, kind)), "something else")


def _or_auto(parse: Callable[[object], T]) -> Callable[[object], T | Auto]:
    def parse_or_auto(value: object) -> T | Auto:
        return "auto" if value == "auto" else parse(value)

    return parse_or_auto


def _or_none(parse: Callable[[object], T]) -> Callable[[object], T | None]:
    def parse_or_none(value: object) -> T | None:
        return None if value is None else parse(value)

    return parse_or_none


def _at_least(minimum: int) -> Callable[[object], int]:
    def bounded(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{shown(value)} is not a whole number")
        if not minimum <= value < 10**9:
            raise ValueError(f"must be {minimum} or more, not {shown(value)}")
        return value

    return bounded


def port_range(value: object) -> str:
    """Accept ``40000`` or ``40000-40100``."""
    match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", one_line(value), re.ASCII)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 0 < first <= last < 65536:
        raise ValueError(f'{shown(value)} is no range of ports; write "40000-40100"')
    return str(value)


def login_hop(value: object) -> str:
    """Accept ``user@host:port``, user and port being optional."""
    text = one_line(value)
    if not re.search(HOP, text):
        raise ValueError(f'{shown(value)} is no host to log in to; write "user@login.example.org"')
    return text


def python_path(value: object) -> str:
    """Accept ``kernel`` or the absolute path of a Python."""
    text = one_line(value)
    if text != "kernel" and not text.startswith(("/", "~/")):
        raise ValueError(f'{shown(value)} is neither "kernel" nor the absolute path of a Python')
    return home_expanded(text)


def home_expanded(path: str) -> str:
    """Return a path with the home directory in place of ``~`` or ``~user`` at its beginning."""
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError:
        raise ValueError(f"{shown(path)} names a home directory that does not exist") from None


def variable_name(value: object) -> str:
    """Accept the name of an environment variable."""
    text = one_line(value)
    if not re.search(VARIABLE, text):
        raise ValueError(f"{shown(value)} cannot be the name of an environment variable")
    return text


def option_name(value: object) -> str:
    """Accept the name of an option: small letters, digits and underscores."""
    text = one_line(value)
    if not re.search(OPTION, text):
        raise ValueError(
            f"{shown(value)} cannot be the name of an option;"
            " use small letters, digits and underscores"
        )
    return text


def default_value(value: object) -> object:
    """Accept one value: text, a number, true, false or nothing."""
    if isinstance(value, str):
        return one_line(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise ValueError(f"must be one value, not {kind_of(value)}")


MEMORY_PATTERN = r"^\s*[0-9]+([.][0-9]+)?\s*(([kKmMgGtT][iI]?)?[bB])?\s*$"
DURATION_PATTERN = (
    r"^\s*(([0-9]+-)?[0-9]+:[0-9]+:[0-9]+|[0-9]+-[0-9]+(:[0-9]+)?"
    r"|[0-9]+|([0-9]+([.][0-9]+)?\s*[A-Za-z]+\s*)+)\s*$"
)

_LINE_SCHEMA = {"type": ["string", "integer"], "maxLength": MAXIMUM_TEXT}
_MEMORY: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1},
    {"type": "string", "format": "memory", "pattern": MEMORY_PATTERN},
]
_DURATION: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1},
    {"type": "string", "format": "duration", "pattern": DURATION_PATTERN},
]
_NULL: list[dict[str, Any]] = [{"type": "null"}]
_AUTO: list[dict[str, Any]] = [{"const": "auto"}]


def _integers(minimum: int) -> list[dict[str, Any]]:
    return [{"type": "integer", "minimum": minimum, "maximum": 10**9 - 1}]


Title = Annotated[
    str,
    BeforeValidator(title_line),
    WithJsonSchema({"type": ["string", "integer"], "minLength": 1, "maxLength": MAXIMUM_TITLE}),
]
PortRange = Annotated[
    str,
    BeforeValidator(port_range),
    WithJsonSchema({"type": ["string", "integer"], "pattern": "^[0-9]{1,5}(-[0-9]{1,5})?$"}),
]
LoginHop = Annotated[
    str, BeforeValidator(login_hop), WithJsonSchema({"type": "string", "pattern": HOP})
]
PythonPath = Annotated[
    str,
    BeforeValidator(python_path),
    WithJsonSchema({"type": "string", "pattern": "^(kernel$|/|~/)"}),
]
VariableName = Annotated[
    str, BeforeValidator(variable_name), WithJsonSchema({"type": "string", "pattern": VARIABLE})
]
OptionName = Annotated[
    str, BeforeValidator(option_name), WithJsonSchema({"type": "string", "pattern": OPTION})
]
OneValue = Annotated[
    Any,
    BeforeValidator(default_value),
    WithJsonSchema({"type": ["string", "number", "boolean", "null"]}),
]
Text = Annotated[str, BeforeValidator(one_line), WithJsonSchema(_LINE_SCHEMA)]
Lines = Annotated[str, BeforeValidator(lines), WithJsonSchema(_LINE_SCHEMA)]
Arguments = Annotated[tuple[Text, ...], AfterValidator(option_first)]
Flag = Annotated[StrictBool, Field()]
MemoryOrNone = Annotated[
    int | None,
    BeforeValidator(_or_none(parse_memory)),
    WithJsonSchema({"anyOf": [*_MEMORY, *_NULL]}),
]
MemoryAutoOrNone = Annotated[
    int | Auto | None,
    BeforeValidator(_or_none(_or_auto(parse_memory))),
    WithJsonSchema({"anyOf": [*_AUTO, *_MEMORY, *_NULL]}),
]
DurationOrNone = Annotated[
    int | None,
    BeforeValidator(_or_none(parse_duration)),
    WithJsonSchema({"anyOf": [*_DURATION, *_NULL]}),
]
Natural = Annotated[int, BeforeValidator(_at_least(0)), WithJsonSchema({"anyOf": _integers(0)})]
Positive = Annotated[int, BeforeValidator(_at_least(1)), WithJsonSchema({"anyOf": _integers(1)})]
PositiveOrNone = Annotated[
    int | None,
    BeforeValidator(_or_none(_at_least(1))),
    WithJsonSchema({"anyOf": [*_integers(1), *_NULL]}),
]
PositiveOrAuto = Annotated[
    int | Auto,
    BeforeValidator(_or_auto(_at_least(1))),
    WithJsonSchema({"anyOf": [*_AUTO, *_integers(1)]}),
]
NaturalOrAuto = Annotated[
    int | Auto,
    BeforeValidator(_or_auto(_at_least(0))),
    WithJsonSchema({"anyOf": [*_AUTO, *_integers(0)]}),
]
