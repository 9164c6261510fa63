"""The command that gives its user a shell, with what a profile's jobs ask for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from .directives import option_of, prefix_of

COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "slurm": (["salloc"], []),
    "pbs": (["qsub", "-I"], []),
    "torque": (["qsub", "-I"], []),
    "moab": (["msub", "-I"], []),
    "lsf": (["bsub", "-Is"], ["bash"]),
    # qlogin takes neither -cwd nor a variable list.
    "sge": (["qrsh"], []),
    "oar": (["oarsub", "-I"], []),
    "cobalt": (["qsub", "-I"], []),
}
"""What stands before and after the options of a job."""
BATCH_ONLY = {
    "#SBATCH": "--job-name --output --error --open-mode --array --requeue --no-requeue --export",
    "#PBS": "-N -o -e -j -r -J",
    "#BSUB": "-J -o -e -oo -eo -r",
    "#$": "-N -o -e -j -S -r -t",
    "#OAR": "-n -O -E",
    "#COBALT": "--jobname -o -e -O --mode",
}
"""Options that a job with somebody in it has no use for, or its command does not know."""


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
    if backend not in COMMANDS:
        return ""
    before, after = COMMANDS[backend]
    prefix = prefix_of(directives)
    unwanted = BATCH_ONLY.get(prefix, "").split()
    words = list(arguments)
    for line in directives:
        if line.startswith(f"{prefix} ") and option_of(line)[0] not in unwanted:
            words += _words(prefix, line.removeprefix(prefix).strip())
    return shlex.join([*before, *words, *after])


def _words(prefix: str, text: str) -> list[str]:
    """Return a directive's words as the system itself reads them in a script."""
    if prefix == "#OAR":
        # It takes off one pair of double quotes; single ones are part of a condition.
        option, _, value = text.partition(" ")
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        return [option, value[1:-1] if quoted else value] if value else [option]
    try:
        return shlex.split(text)
    except ValueError:  # a lone quote; the system reads its lines in a way of its own
        return [text]
