"""Amounts of memory and time: text in, bytes and seconds out, and back."""

from __future__ import annotations

import re
from decimal import Decimal

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

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_TIME_WORDS = {
    "s": "s",
    "sec": "s",
    "second": "s",
    "seconds": "s",
    "min": "min",
    "minute": "min",
    "minutes": "min",
    "h": "h",
    "hour": "h",
    "hours": "h",
    "d": "d",
    "day": "d",
    "days": "d",
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
        With a sentence that tells what is wrong and how to write it.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _positive(Decimal(value), value, MEMORY_EXAMPLES)
    match = _MEMORY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{shown(value)} is not an amount of memory; {MEMORY_EXAMPLES}")
    number, unit = match.groups()
    return _positive(Decimal(number) * _memory_unit(unit or "B", value), value, MEMORY_EXAMPLES)


def parse_duration(value: object) -> int:
    """Turn ``00:30:00``, ``1-12:00:00``, ``30 min`` or a number of seconds into seconds.

    ``H:MM`` is refused: queueing systems disagree whether it means hours or minutes.

    Raises
    ------
    ValueError
        With a sentence that tells what is wrong and how to write it.
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
        raise ValueError(
            f"{shown(value)} is out of range: it must be more than nothing; {examples}"
        )
    return int(amount)


def _memory_unit(unit: str, value: object) -> int:
    for name, factor in MEMORY_UNITS.items():
        if unit.lower() == name.lower():
            return factor
    # Dask reads "4G" as 4 * 10**9 bytes, Slurm as 4 * 2**30.
    if unit.upper() in {"K", "M", "G", "T"}:
        raise ValueError(
            f"{shown(value)} may mean {unit.upper()}B or {unit.upper()}iB; write which"
        )
    known = ", ".join(MEMORY_UNITS)
    raise ValueError(f"{shown(value)} has an unknown unit {unit!r}; use one of {known}")


def _words(text: str, value: object) -> Decimal:
    if text.isascii() and text.isdigit() and len(text) <= 19:
        return Decimal(text)
    total, position = Decimal(0), 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or match[2].lower() not in _TIME_WORDS:
            break
        total += Decimal(match[1]) * _SECONDS[_TIME_WORDS[match[2].lower()]]
        position = match.end()
    if position < len(text) or not text:
        raise ValueError(f"{shown(value)} is not a length of time; {DURATION_EXAMPLES}")
    if total != int(total):
        raise ValueError(f"{shown(value)} is no whole number of seconds; {DURATION_EXAMPLES}")
    return total
