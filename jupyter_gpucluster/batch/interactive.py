"""The command that gives its user a shell, with what a profile's jobs ask for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from . import find_backend
from .directives import option_of, prefix_of


def interactive_line(backend: str, directives: Sequence[str], arguments: Sequence[str] = ()) -> str:
    """Return what to type for an allocation as large as one job of a profile.

    Parameters
    ----------
    directives
        The lines of the job's script.
    arguments
        What the profile adds to the command that submits.

    Returns
    -------
    A line for a shell; empty where the system has no such command, or begins sessions otherwise
    (HTCondor's are described in a file).
    """
    dialect = find_backend(backend)
    if dialect.interactive is None:
        return ""
    before, after = dialect.interactive
    prefix, words = prefix_of(directives), list(arguments)
    for line in directives:
        if line.startswith(f"{prefix} ") and option_of(line)[0] not in dialect.batch_only:
            words += dialect.directive_words(line.removeprefix(prefix).strip())
    return shlex.join([*before, *words, *after])
