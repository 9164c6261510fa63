"""Explain the last lines of a job's log where they hide the cause (``log_diagnosis.toml``)."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

ERROR_LINE = re.compile(
    r"(command not found|: not found$|No such file|Permission denied|No module named"
    r"|[A-Za-z.]*(Error|Exception)\b)"
)
"""A line of a log that names an error."""
LOG_END = 3
"""Number of last lines to show of a log without a known sign."""


@functools.cache
def explanations(table: str) -> tuple[tuple[str, str], ...]:
    """Return the signs of a table, ``gpu_causes``, ``job_causes`` or ``remarks``, and sentences."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return tuple((row["sign"], row["means"]) for row in tables[table])


def remarks(log: str) -> list[str]:
    """Return explanations of the warnings in the log of a worker that runs."""
    known = explanations("remarks")
    found = ((re.search(sign, log, re.MULTILINE), means) for sign, means in known)
    return [match.expand(means) for match, means in found if match]


def diagnose(log: str) -> str:
    """Return the cause and its fix, or empty text if the log has no known sign."""
    known = (*explanations("gpu_causes"), *explanations("job_causes"))
    return next((means for sign, means in known if re.search(sign, log)), "")


def first_error(lines: Sequence[str]) -> str:
    """Return the last line of a log that names an error, and what is behind it."""
    found = next((line for line in reversed(lines) if ERROR_LINE.search(line)), "")
    shown = "".join(c for c in found.strip() if c.isprintable())[:200]
    meant = diagnose("\n".join(lines))
    return f"{meant} ({shown})" if meant and shown else meant or shown


def log_end(lines: Sequence[str]) -> str:
    """Return the last lines of a log as one sentence, empty where it has none."""
    shown = ("".join(c for c in line.strip() if c.isprintable())[:200] for line in lines)
    last = [line for line in shown if line][-LOG_END:]
    return f"Its log ends: {' | '.join(last)}" if last else ""
