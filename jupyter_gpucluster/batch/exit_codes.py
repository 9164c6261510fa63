"""Exit codes of jobs in words, which are the same in every shell and language."""

from __future__ import annotations

MEANINGS = {126: "command cannot be executed", 127: "command not found"}
"""POSIX, Shell Command Language 2.8.2."""


def worded(code: int | None) -> str:
    """Return an exit code with its meaning, where it has one: ``127 (command not found)``."""
    meaning = MEANINGS.get(code) if code is not None else None
    return f"{code} ({meaning})" if meaning else str(code)


def ended_with(code: int | None) -> str:
    """Return the sentence about a job that ended with an exit code."""
    return f"It ended with exit code {worded(code)}."
