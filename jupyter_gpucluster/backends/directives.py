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
GPUS = {
    "#SBATCH": re.compile(r"(--gres[= ]gpu|--gpus[\w-]*|-G)[:= ]?(?:[A-Za-z][\w.-]*:)?(\d+)"),
    "#PBS": re.compile(r"(select|nodes)=[^+]*:n?gpus=(\d+)[^+]*$"),
    "#BSUB": re.compile(r"(-gpu) .*\bnum=(\d+)"),
    "#$": re.compile(r"(-l) \w*gpus?=(\d+)$"),
    "#CONDOR": re.compile(r"(request_gpus) *= *(\d+)$", re.IGNORECASE),
}
"""What a directive counts GPUs by, and their number; written otherwise, nobody can tell."""
PER_TASK, PER_JOB = ("--gpus-per-task",), ("--gpus", "-G")
IN_CHUNK = re.compile(r"#PBS -l (?:ncpus|ngpus|mem|mpiprocs|ompthreads|vnode|host)=")
"""What PBS takes inside of a chunk or for the whole job, but not both."""


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
        Two of the profile's own directives contradict each other, or one of them contradicts
        ``job.gpus``, by which workers are counted.
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
    kept = []
    for line in generated:
        own = added.get(request_of(line))
        if own is not None:
            agree(own, line, generated)
        elif not any(text in line for text in unwanted):
            kept.append(line)
    script = [*kept, *added.values()]
    if select := next((line for line in script if line.startswith("#PBS -l select=")), ""):
        for line in filter(IN_CHUNK.match, added.values()):
            raise InvalidInput(
                f"job.directives ask for {line!r}, which PBS refuses beside {select!r}.",
                hint="Use the keys of job, or write a whole select into job.directives.",
                detail="job.directives",
            )
    return script


def agree(own: str, generated: str, lines: Sequence[str]) -> None:
    """Refuse a directive that asks for other GPUs than the one that it replaces.

    Parameters
    ----------
    lines
        All that is generated: the numbers of nodes and of tasks are among them.

    Raises
    ------
    InvalidInput
        The numbers of GPUs differ.
    """
    given, wanted = gpus_of(own, lines), gpus_of(generated, lines)
    if given is not None and wanted is not None and given != wanted:
        raise InvalidInput(
            f"job.directives ask for {given:g} GPUs a node by {own!r}, job.gpus for {wanted:g}.",
            hint="Leave that directive out, or set job.gpus to what it asks for.",
            detail="job.directives",
        )


def gpus_of(line: str, lines: Sequence[str]) -> float | None:
    """Return the GPUs that a directive asks for, on each node; None where that cannot be told."""
    prefix = line.partition(" ")[0]
    found = GPUS[prefix].search(line) if prefix in GPUS else None
    if found is None:
        return None
    each = float(found[2])
    if prefix != "#SBATCH" or found[1] not in (*PER_TASK, *PER_JOB):
        return each
    nodes, tasks = (_amount(lines, option) for option in ("-N", "-n"))
    return each / nodes if found[1] in PER_JOB else each * tasks / nodes


def _amount(lines: Sequence[str], option: str) -> int:
    start = f"#SBATCH {option} "
    return next((int(line.removeprefix(start)) for line in lines if line.startswith(start)), 1)


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
