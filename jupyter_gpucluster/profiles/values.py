"""Kinds of values in a profile: text on one line, memory, duration, "auto", patterns."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, WithJsonSchema

MEMORY_UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}

_SECONDS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}

_MAXIMUM = 2**63 - 1  # what JSON Schema readers and the systems behind us still count with
_MEMORY = re.compile(r"(\d{1,19}(?:\.\d{1,9})?)\s*([A-Za-z]*)", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,6})-)?(\d{1,6}):([0-5]?\d):([0-5]?\d)", re.ASCII)
_DAYS = re.compile(r"(\d{1,6})-(\d{1,2})(?::([0-5]?\d))?", re.ASCII)
_PART = re.compile(r"(\d{1,19}(?:\.\d{1,9})?)\s*([A-Za-z]+)\s*", re.ASCII)

MEMORY_EXAMPLES = "write 4 GiB, 512 MB or a number of bytes"
DURATION_EXAMPLES = 'write "00:30:00", "1-12:00:00", 30 min, 12 h or a number of seconds'


def parse_memory(value: object) -> int:
    """Turn ``4 GiB``, ``512MB`` or a number of bytes into bytes.

    Raises
    ------
    ValueError
        The value is none; the message says how to write one.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _positive(Decimal(value), value, MEMORY_EXAMPLES)
    match = _MEMORY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{shown(value)} is not an amount of memory; {MEMORY_EXAMPLES}")
    number, unit = match.groups()
    amount = Decimal(number) * _memory_unit(number, unit or "B", value)
    return _positive(amount, value, MEMORY_EXAMPLES)


def parse_duration(value: object) -> int:
    """Turn ``00:30:00``, ``1-12:00:00``, ``30 min`` or a number of seconds into seconds.

    ``H:MM`` is refused: batch systems disagree whether it means hours or minutes.

    Raises
    ------
    ValueError
        The value is none; the message says how to write one.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _positive(Decimal(value), value, DURATION_EXAMPLES)
    text = value.strip() if isinstance(value, str) else ""
    if match := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    elif match := _DAYS.fullmatch(text):
        days, hours, minutes = (int(part or 0) for part in match.groups())
        seconds = 0
    elif re.fullmatch(r"\d+:\d+", text):
        raise ValueError(
            f"{shown(value)} may mean hours and minutes or minutes and seconds; "
            f'write all three parts, as "00:30:00", or 30 min'
        )
    else:
        return _positive(_words(text, value), value, DURATION_EXAMPLES)
    total = Decimal(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    return _positive(total, value, DURATION_EXAMPLES)


def format_memory(size: int) -> str:
    """Write bytes in the largest unit that loses nothing."""
    units = sorted(MEMORY_UNITS.items(), key=lambda unit: -unit[1])
    name, factor = next(unit for unit in units if size % unit[1] == 0 and size >= unit[1])
    return f"{size // factor} {name}"


def format_duration(seconds: int) -> str:
    """Write seconds as ``HH:MM:SS``, with days in front where there are any."""
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock


def shown(value: object) -> str:
    """Quote a value for a message: one line, and short."""
    text = repr(value) if isinstance(value, str) else str(value)
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    return text if len(text) <= 60 else text[:57] + "..."


def _positive(amount: Decimal, value: object, examples: str) -> int:
    if not 0 < amount <= _MAXIMUM:
        raise ValueError(f"{shown(value)} is out of range: it must be more than 0; {examples}")
    return int(amount)


def _memory_unit(number: str, unit: str, value: object) -> int:
    for name, factor in MEMORY_UNITS.items():
        if unit.lower() == name.lower():
            return factor
    # Dask reads "4G" as 4 * 10**9 bytes, Slurm as 4 * 2**30.
    if (letter := unit.upper()) in {"K", "M", "G", "T"}:
        choices = f"{number} {letter}B or {number} {letter}iB"
        raise ValueError(f"{shown(value)} is ambiguous: write {choices}")
    known = ", ".join(MEMORY_UNITS)
    raise ValueError(f"{shown(value)} has an unknown unit {unit!r}; use one of {known}")


def _words(text: str, value: object) -> Decimal:
    if text.isascii() and text.isdigit() and len(text) <= 19:
        return Decimal(text)
    total, position = Decimal(0), 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or match[2].lower() not in _SECONDS:
            break
        total += Decimal(match[1]) * _SECONDS[match[2].lower()]
        position = match.end()
    if position < len(text) or not text:
        raise ValueError(f"{shown(value)} is not a length of time; {DURATION_EXAMPLES}")
    if total != int(total):
        raise ValueError(f"{shown(value)} is not a whole number of seconds; {DURATION_EXAMPLES}")
    return total


Auto = Literal["auto"]

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
    kinds = {
        type(None): "empty",
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        tuple: "a list",
        dict: "a mapping",
    }
    return kinds.get(type(value), "something else")


def _or(parse: Callable[[object], object], *others: object) -> Callable[[object], object]:
    def parse_or_other(value: object) -> object:
        return value if value in others else parse(value)

    return parse_or_other


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
        raise ValueError(f'{shown(value)} is not a range of ports; write "40000-40100"')
    return str(value)


def _matching(pattern: str, words: str) -> Callable[[object], str]:
    def matching(value: object) -> str:
        text = one_line(value)
        if not re.search(pattern, text):
            raise ValueError(f"{shown(value)} {words}")
        return text

    return matching


login_hop = _matching(HOP, 'is not a host to log in to; write "user@login.example.org"')
variable_name = _matching(VARIABLE, "cannot be the name of an environment variable")
option_name = _matching(
    OPTION,
    "cannot be the name of an option; use small letters, digits and underscores",
)


def python_path(value: object) -> str:
    """Accept ``kernel`` or the absolute path of a Python."""
    text = one_line(value)
    if text != "kernel" and not text.startswith(("/", "~/")):
        raise ValueError(f'must be "kernel" or the absolute path of a Python, not {shown(value)}')
    return home_expanded(text)


def home_expanded(path: str) -> str:
    """Return a path with the home directory in place of ``~`` or ``~user`` at its beginning."""
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError:
        raise ValueError(f"{shown(path)} names a home directory that does not exist") from None


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

_MEMORY_FORMS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1},
    {"type": "string", "format": "memory", "pattern": MEMORY_PATTERN},
]
_DURATION_FORMS: list[dict[str, Any]] = [
    {"type": "integer", "minimum": 1},
    {"type": "string", "format": "duration", "pattern": DURATION_PATTERN},
]

Kind = tuple[BeforeValidator, WithJsonSchema]
"""The two readers of a value: ours, and that of an editor."""


def _kind(parse: Callable[[object], object], **schema: object) -> Kind:
    return BeforeValidator(parse), WithJsonSchema(dict(schema))


def _amount(
    parse: Callable[[object], object], forms: list[dict[str, Any]], *others: str | None
) -> Kind:
    auto = [{"const": "auto"}] if "auto" in others else []
    null = [{"type": "null"}] if None in others else []
    return _kind(_or(parse, *others), anyOf=[*auto, *forms, *null])


def _count(minimum: int, *others: str | None) -> Kind:
    form = {"type": "integer", "minimum": minimum, "maximum": 10**9 - 1}
    return _amount(_at_least(minimum), [form], *others)


_LINE = ["string", "integer"]
Title = Annotated[str, *_kind(title_line, type=_LINE, minLength=1, maxLength=MAXIMUM_TITLE)]
PortRange = Annotated[str, *_kind(port_range, type=_LINE, pattern="^[0-9]{1,5}(-[0-9]{1,5})?$")]
LoginHop = Annotated[str, *_kind(login_hop, type="string", pattern=HOP)]
PythonPath = Annotated[str, *_kind(python_path, type="string", pattern="^(kernel$|/|~/)")]
VariableName = Annotated[str, *_kind(variable_name, type="string", pattern=VARIABLE)]
OptionName = Annotated[str, *_kind(option_name, type="string", pattern=OPTION)]
OneValue = Annotated[Any, *_kind(default_value, type=["string", "number", "boolean", "null"])]
Text = Annotated[str, *_kind(one_line, type=_LINE, maxLength=MAXIMUM_TEXT)]
Lines = Annotated[str, *_kind(lines, type=_LINE, maxLength=MAXIMUM_TEXT)]
Arguments = Annotated[tuple[Text, ...], AfterValidator(option_first)]
Flag = Annotated[StrictBool, Field()]
MemoryOrNone = Annotated[int | None, *_amount(parse_memory, _MEMORY_FORMS, None)]
MemoryAutoOrNone = Annotated[int | Auto | None, *_amount(parse_memory, _MEMORY_FORMS, None, "auto")]
Duration = Annotated[int, *_amount(parse_duration, _DURATION_FORMS)]
DurationOrNone = Annotated[int | None, *_amount(parse_duration, _DURATION_FORMS, None)]
Natural = Annotated[int, *_count(0)]
Positive = Annotated[int, *_count(1)]
PositiveOrNone = Annotated[int | None, *_count(1, None)]
PositiveOrAuto = Annotated[int | Auto, *_count(1, "auto")]
NaturalOrAuto = Annotated[int | Auto, *_count(0, "auto")]
