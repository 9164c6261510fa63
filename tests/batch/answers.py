"""Answers of commands, and values for them, as the tests of several dialects need them."""

from __future__ import annotations

from hypothesis import strategies as st

from jupyter_gpucluster.core.job import CommandResult

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def answer(stdout: str = "", code: int | None = 0, stderr: str = "") -> CommandResult:
    """Return the answer of a command."""
    return CommandResult(("command", "argument"), code, stdout, stderr)
