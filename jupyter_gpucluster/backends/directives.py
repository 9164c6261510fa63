"""Merge what a dialect asks for with a profile's own directives: never two that contradict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..errors import InvalidInput

SAME = {
    "#SBATCH": {
        "-A": "--account", "-C": "--constraint", "-J": "--job-name", "-L": "--licenses",
        "-N": "--nodes", "-a": "--array", "-c": "--cpus-per-task", "-d": "--dependency",
        "-e": "--error", "-n": "--ntasks", "-o": "--output", "-p": "--partition", "-q": "--qos",
        "-t": "--time", "-w": "--nodelist", "-x": "--exclude",
        # Of these Slurm takes one: https://slurm.schedmd.com/sbatch.html#OPT_gpus-per-task.
        "-G": "GPUs", "--gpus": "GPUs", "--gpus-per-node": "GPUs", "--gpus-per-task": "GPUs",
        "--mem": "memory", "--mem-per-cpu": "memory", "--mem-per-gpu": "memory",
    },
    "#OAR": {
        "--name": "-n", "--queue": "-q", "--resource": "-l", "--property": "-p", "--type": "-t",
        "--stdout": "-O", "--stderr": "-E",
    },
    "#COBALT": {
        "--project": "-A", "--queue": "-q", "--time": "-t", "--nodecount": "-n",
    },
}  # fmt: skip
"""Spellings of one request, by the word that begins a directive."""
REPEATED = {
    "#PBS": {"-l", "-W"},
    "#$": {"-l", "-v"},
    "#OAR": {"-l", "-p", "-t"},
    "#BSUB": {"-R"},
    "#COBALT": {"--env", "--attrs"},
}
"""Options that may stand several times, each time for a resource of its own."""
RESOURCE = re.compile(r"[\w./-]+")


def merge(generated: Sequence[str], extra: Iterable[str], skip: Iterable[str]) -> list[str]:
    """Return the directives of a script.

    Parameters
    ----------
    generated
        What the dialect asks for, each line with the system's prefix.
    extra
        The profile's own directives, without prefix; they replace what asks for the same thing,
        and are never skipped.
    skip
        Generated lines that contain one of these texts are left out; blanks count.

    Raises
    ------
    InvalidInput
        Two of the profile's own directives contradict each other.
    """
    if not generated:
        return []
    prefix = generated[0].split(" ", 1)[0]
    added: dict[str, str] = {}
    for text in extra:
        line = f"{prefix} {text}"
        other = added.setdefault(request_of(line), line)
        if other != line:
            raise InvalidInput(
                f"job.directives ask for the same thing twice: {other!r} and {line!r}.",
                hint="Keep one of them.",
                detail="job.directives",
            )
    unwanted = tuple(skip)
    kept = [
        line
        for line in generated
        if request_of(line) not in added and not any(text in line for text in unwanted)
    ]
    return [*kept, *added.values()]


def request_of(line: str) -> str:
    """Return what a directive asks for, however it is spelled."""
    prefix, _, rest = line.partition(" ")
    if prefix == "#CONDOR":
        return rest.partition("=")[0].strip().lower()
    option, value = _split(rest.strip())
    option = SAME.get(prefix, {}).get(option, option)
    if prefix == "#SBATCH" and option == "--gres" and "gpu" in value:
        return "GPUs"
    if option in REPEATED.get(prefix, ()):
        resource = RESOURCE.match(value)
        return f"{option} {resource.group() if resource else value}"
    return option


def _split(text: str) -> tuple[str, str]:
    """Split ``--gres=gpu:4`` and ``-p gpu`` into option and value."""
    match = re.match(r"(--[\w-]+|-\w+)[= ]?(.*)", text)
    return (match.group(1), match.group(2).strip()) if match else (text, "")
