"""Merge what a dialect asks for with a profile's own directives: never two that contradict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..core.errors import InvalidInput

LONG = {
    "#SBATCH": {
        "-A": "--account", "-C": "--constraint", "-G": "--gpus", "-J": "--job-name",
        "-L": "--licenses", "-M": "--clusters", "-N": "--nodes", "-W": "--wait", "-a": "--array",
        "-b": "--begin", "-c": "--cpus-per-task", "-d": "--dependency", "-e": "--error",
        "-n": "--ntasks", "-o": "--output", "-p": "--partition", "-q": "--qos",
        "-s": "--oversubscribe", "-t": "--time", "-w": "--nodelist", "-x": "--exclude",
    },
    "#OAR": {
        "--name": "-n", "--queue": "-q", "--resource": "-l", "--property": "-p", "--type": "-t",
        "--stdout": "-O", "--stderr": "-E",
    },
    "#COBALT": {
        "--project": "-A", "--queue": "-q", "--time": "-t", "--nodecount": "-n",
    },
    "#CONDOR": {"jobbatchname": "batchname"},
}  # fmt: skip
"""Other spellings of an option, by the word that begins a directive."""
ALIKE = {
    "#SBATCH": {
        # Of these Slurm takes one: https://slurm.schedmd.com/sbatch.html#OPT_gpus-per-task.
        "--gpus": "GPUs", "--gpus-per-node": "GPUs", "--gpus-per-task": "GPUs",
        "--gpus-per-socket": "GPUs", "--mem": "memory", "--mem-per-cpu": "memory",
        "--mem-per-gpu": "memory", "--cpus-per-gpu": "--cpus-per-task",
        "--no-requeue": "--requeue", "--oversubscribe": "--exclusive",
    },
    "#PBS": {"-l nodes": "-l select"},
    "#BSUB": {"-gpu": "GPUs"},
}  # fmt: skip
"""Options that ask for one thing in ways of which a system takes only one."""
GLUED = ("#SBATCH", "#PBS", "#OAR", "#COBALT")
"""Where a value may follow its option without a blank."""
GLUED_OPTION, OPTION = re.compile(r"(-[A-Za-z])([^\s=].*)"), re.compile(r"(--[\w-]+|-\w+)[= ]?(.*)")
REPEATED = {
    "#PBS": {"-l", "-W"},
    "#$": {"-l", "-v"},
    "#OAR": {"-t"},
    "#BSUB": {"-R"},
}
"""Options that may stand several times, each time for a resource of its own."""
JOINED = {
    ("#SBATCH", "--gres"): "#SBATCH --gres={0},{1}",
    ("#OAR", "-p"): '#OAR -p "{0} AND {1}"',
    ("#CONDOR", "periodicremove"): "#CONDOR periodic_remove = ({0}) || ({1})",
    ("#CONDOR", "requiregpus"): "#CONDOR require_gpus = ({0}) && ({1})",
    ("#COBALT", "--attrs"): "#COBALT --attrs {0}:{1}",
    ("#COBALT", "--env"): "#COBALT --env {0}:{1}",
}
"""Options of which the last one would replace the others, though all of them are meant."""
RESOURCE = re.compile(r"[\w./-]+")
SECTIONS = re.compile(r"\b(select|order|rusage|span|same|cu|affinity)\[")
IN_CHUNK = re.compile(
    r"#PBS -l (ncpus|ngpus|mem|mpiprocs|ompthreads|vnode|host)=([\w.]*)", re.ASCII
)
"""What PBS takes inside of a chunk or once for the whole job, and then takes no ``select``."""


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
    prefix = prefix_of(generated)
    added: dict[str, str] = {}
    for text in filter(str.strip, extra):
        line = f"{prefix} {text}"
        for request in requests_of(line):
            other = added.setdefault(request, line)
            if other != line:
                raise InvalidInput(
                    f"job.directives ask for the same thing twice: {other!r} and {line!r}.",
                    hint="Keep one of them.",
                    detail="job.directives",
                )
    kept = [
        line
        for line in without_skipped(generated, skip)
        if not added.keys() & set(requests_of(line))
    ]
    return _joined(_chunked([*kept, *dict.fromkeys(added.values())], len(kept)))


def prefix_of(lines: Sequence[str]) -> str:
    """Return the word with which a system's directives begin."""
    return lines[0].split(" ", 1)[0] if lines else ""


def without_skipped(generated: Iterable[str], skip: Iterable[str]) -> list[str]:
    """Return the generated lines that the profile wants."""
    unwanted = tuple(skip)
    return [line for line in generated if not any(text in line for text in unwanted)]


def requests_of(line: str) -> tuple[str, ...]:
    """Return the things that a directive asks for, however they are spelled."""
    prefix = prefix_of([line])
    option, value = option_of(line)
    if prefix == "#SBATCH" and (option == "--gres" or option.startswith("--tres-per-")):
        return tuple(
            "GPUs" if re.match(r"(gres[:/])?gpu\b", each) else f"{option} {each}"
            for each in value.split(",")
        )
    if prefix == "#BSUB" and option == "-R":
        if re.search(r"\brusage\[[^]]*\bngpus", value):
            return ("GPUs",)
        # LSF puts several together; only where tasks go can be said once.
        return ("-R span",) if SECTIONS.findall(value) == ["span"] else (f"-R {value}",)
    if prefix == "#COBALT" and (prefix, option) in JOINED:
        return tuple(f"{option} {each.partition('=')[0]}" for each in value.split(":"))
    if (prefix, option) in JOINED and option != "--gres":
        return (f"{option} {value}",)
    alike = ALIKE.get(prefix, {})
    if option not in REPEATED.get(prefix, ()):
        return (alike.get(option, option),)
    parts = value.split(",") if prefix in ("#PBS", "#$") else [value]
    names = (match.group() if (match := RESOURCE.match(part)) else part for part in parts)
    return tuple(alike.get(f"{option} {name}", f"{option} {name}") for name in names)


def option_of(line: str) -> tuple[str, str]:
    """Return a directive's option in its one spelling, and its value: ``--gres``, ``gpu:4``."""
    prefix, _, text = line.partition(" ")
    if prefix in ("#CONDOR", "#KUBERNETES"):
        name, _, value = text.partition("=")
        option = name.strip()
        # HTCondor reads RequestCpus and request_cpus alike.
        option = option.lower().replace("_", "") if prefix == "#CONDOR" else option
    else:
        glued = GLUED_OPTION.match(text.strip()) if prefix in GLUED else None
        match = glued or OPTION.match(text.strip())
        option, value = match.groups() if match else (text.strip(), "")
    return LONG.get(prefix, {}).get(option, option), value.strip()


def options_in(arguments: Sequence[str]) -> list[str]:
    """Write a command's arguments as directives are written: each option with its value."""
    texts: list[str] = []
    for word in arguments:
        if word.startswith("-") or not texts:
            texts.append(word)
        else:
            texts[-1] += f" {word}"
    return texts


def _joined(lines: Sequence[str]) -> list[str]:
    """Put lines into one whose option counts once, own ones last."""
    done: list[str] = []
    places: dict[str, int] = {}
    for line in lines:
        prefix, (option, value) = prefix_of([line]), option_of(line)
        template = JOINED.get((prefix, option))
        if template is None or option not in places:
            places[option] = len(done)
            done.append(line)
            continue
        before = option_of(done[places[option]])[1]
        if prefix == "#OAR":
            before, value = _condition(before), _condition(value)
        done[places[option]] = template.format(before, value)
    return done


def _condition(text: str) -> str:
    """Take the quotes off a condition of OAR's; one with alternatives gets parentheses."""
    quoted = (
        len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]
    )
    text = text[1:-1] if quoted else text
    return f"({text})" if re.search(r"\bor\b", text, re.IGNORECASE) else text


def _chunked(lines: Sequence[str], kept: int) -> list[str]:
    """Move what is asked for once for the whole of a PBS job into the one chunk that it has."""
    chunk = next((n for n, line in enumerate(lines[:kept]) if line.startswith("#PBS -l select=1:")
                  or line == "#PBS -l select=1"), None)  # fmt: skip
    done = list(lines)
    for line in lines[kept:] if chunk is not None else ():
        match = IN_CHUNK.fullmatch(line)
        if match is None or chunk is None:
            continue
        said = re.search(rf":{match[1]}=([\w.]+)", done[chunk])
        if said is None:
            done[chunk] += f":{match[1]}={match[2]}"
        if said is None or said[1].lower() == match[2].lower():
            done.remove(line)
    return done


def refuse_beside_select(lines: Sequence[str]) -> None:
    """Refuse what could not be moved into the one chunk of a PBS job.

    Raises
    ------
    InvalidInput
        PBS takes one of the lines only without the ``select`` that stands there, too.
    """
    if select := next((line for line in lines if line.startswith("#PBS -l select=")), ""):
        for line in filter(IN_CHUNK.match, lines):
            raise InvalidInput(
                f"job.directives ask for {line!r}, which PBS refuses beside {select!r}.",
                hint="Use the keys of job, or write a whole select into job.directives.",
                detail="job.directives",
            )
