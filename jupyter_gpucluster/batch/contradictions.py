"""Refuse a profile's own directives and submit arguments that set what its keys set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..core.errors import BackendError, InvalidInput
from ..core.job import JobShape
from . import BACKENDS
from .base import Backend
from .directives import (
    merge,
    option_of,
    options_in,
    prefix_of,
    refuse_beside_select,
    requests_of,
    without_skipped,
)
from .durations import parse_walltime
from .kubernetes.manifest import look, pod_of, steps_of

NAMES = {
    "#SBATCH": "--job-name", "#PBS": "-N", "#$": "-N", "#OAR": "-n", "#BSUB": "-J",
    "#CONDOR": "batchname", "#COBALT": "--jobname", "#KUBERNETES": "metadata.name",
}  # fmt: skip
ARRAYS = {
    "#SBATCH": ("--array",), "#PBS": ("-J", "-t"), "#$": ("-t",),
    "#OAR": ("--array", "--array-param-file"), "#CONDOR": ("queue",),
}  # fmt: skip
WAITING = {
    # Under these the submit command answers when the job has ended, or when somebody has typed.
    "#SBATCH": {"--wait", "--test-only"}, "#PBS": {"-I", "-X", "-W block"}, "#$": {"-sync"},
    "#BSUB": {"-K", "-I", "-Ip", "-Is", "-IS", "-ISp", "-ISs"}, "#OAR": {"-I", "--interactive"},
    "#COBALT": {"-I", "--interactive"},
}  # fmt: skip
OURS = {
    "spec.containers[0].command": "says what runs in the pod, which is the cluster's script",
    "spec.containers[0].args": "says what runs in the pod, which is the cluster's script",
    "metadata.generateName": "lets Kubernetes name the pod, by whose name the cluster finds it",
    "metadata.namespace": "sends the pod where nobody looks for it; job.account is the namespace",
    "spec.restartPolicy": "lets a worker start again in its pod, which is up to the cluster",
}
"""Fields of a pod that are not up to a profile."""
OF_ACCESS = re.compile(r"--(?:namespace|cluster|user|kubeconfig|server)\b|--context(?!=.)|-[ns]")
"""Arguments of kubectl that lead elsewhere than its commands to list and to delete go."""
HETEROGENEOUS = ("hetjob", "packjob", "--het-group", "--pack-group")
SPELLED_BY = {"gpus": "gpu_request", "memory": "memory_request"}
"""The key that chooses how a system is asked for what another key sets."""
NAMED_VALUE = re.compile(r"(?:^|,)\s*(?:gres[:/])?([\w./-]+)|(\w+)\s*[=\[]")
BEGINNING = re.compile(r'-R "\w+\[|-l /?\w+=?|--[\w-]+=?|-\w+ ?|[\w.\[\]\\/-]+ = ')


def directives_of(
    backend: Backend, job: JobShape, mark: str, output: str, *, as_given: bool = False
) -> list[str]:
    """Return the lines of a script's head: the dialect's and the profile's own, merged.

    Parameters
    ----------
    as_given
        Whether own directives count whatever the keys say, as in Dask's configuration.

    Raises
    ------
    InvalidInput
        One of the profile's own directives sets what a key or another directive sets.
    """
    generated = backend.directives(job, mark, output)
    for text in job.directives:
        refuse_reserved(prefix_of(generated), text)
    lines = merge(generated, job.directives, job.skip_directives)
    if prefix_of(generated) == "#KUBERNETES":
        refuse_taken(generated, lines)
    if not as_given:
        refuse_twice(set_twice(backend, job, generated, job.directives))
    refuse_beside_select(lines)
    refuse_arguments(backend, job, generated)
    return lines


def refuse_taken(generated: Sequence[str], lines: Sequence[str]) -> None:
    """Refuse what makes another pod of fields that are not up to a profile.

    Raises
    ------
    InvalidInput
        A directive sets one in another spelling or with all that is around it, or its line is
        skipped.
    """
    plain, made = (pod_of(map(option_of, each)) for each in (generated, lines))
    for field, why in OURS.items():
        if look(made, *steps_of(field)) != look(plain, *steps_of(field)):
            raise InvalidInput(
                f"What job.directives and job.skip_directives make of {field} {why}.",
                hint="Set single fields, leave this one out, and do not skip its line.",
                detail="job.directives",
            )


def refuse_arguments(backend: Backend, job: JobShape, generated: Sequence[str]) -> None:
    """Refuse arguments of the submit command that set what the script's lines set.

    Raises
    ------
    InvalidInput
        They would count more than its lines.  Those of condor_submit and kubectl are no such lines.
    """
    prefix, texts = prefix_of(generated), options_in(job.submit_args)
    for text in filter(OF_ACCESS.match, texts if prefix == "#KUBERNETES" else ()):
        raise InvalidInput(
            f"The argument {text!r} sends pods where nobody looks for them.",
            hint="job.account is the namespace, --context=NAME in one word another context; for the"
            " rest set KUBECONFIG where Jupyter starts.",
            detail="job.submit_args",
        )
    if prefix in ("#CONDOR", "#KUBERNETES") or not texts:
        return
    try:
        for text in texts:
            refuse_reserved(prefix, text)
        merge(generated, texts, job.skip_directives)
        refuse_twice(set_twice(backend, job, generated, texts))
    except InvalidInput as error:
        raise _of_argument(error) from error


def _of_argument(error: InvalidInput) -> InvalidInput:
    message = error.message.replace("job.directives ask", "job.submit_args ask")
    return InvalidInput(
        message.replace("The directive", "The argument"),
        hint=error.hint.replace("the directive", "the argument").replace(
            "job.directives", "job.submit_args"
        ),
        detail="job.submit_args",
    )


def names_the_job(backend: str, text: str) -> bool:
    """Tell whether a directive sets what a job is called."""
    dialect = BACKENDS.get(backend)
    prefix = dialect.prefix if dialect else ""
    return option_of(f"{prefix} {text}")[0] == NAMES.get(prefix)


def refuse_reserved(prefix: str, text: str) -> None:
    """Refuse a directive for what is up to the cluster.

    Raises
    ------
    InvalidInput
        It names the job, asks for several of them or splits it.
    """
    if text.lstrip().startswith("#"):
        raise InvalidInput(
            f"The directive {text!r} begins with '#', as if it were a line of a script.",
            hint=f"Leave that beginning out: {prefix!r} is put before each directive.",
            detail="job.directives",
        )
    told, (option, value) = "", option_of(f"{prefix} {text}")
    option = option.partition(" ")[0]  # HTCondor's `queue 5` has no "="
    if prefix == "#KUBERNETES":
        steps_of(option)
        told = next((why for field, why in OURS.items() if option.startswith(field)), "")
        if option == "spec.restartPolicy" and value.strip('"') == "Never":
            told = ""
    if option == NAMES.get(prefix):
        told = "sets the job's name, by which the cluster finds it"
    elif option in ARRAYS.get(prefix, ()):
        told = "makes an array of the job; how many jobs there are is up to the cluster"
    elif {option, f"{option} {value.partition('=')[0]}"} & WAITING.get(prefix, set()):
        told = "makes the submission wait, which is to answer at once"
    elif prefix == "#SBATCH" and option in HETEROGENEOUS:
        raise InvalidInput(
            f"The directive {text!r} begins another part of a heterogeneous job; the jobs of a "
            "cluster have one part.",
            hint="Remove it; workers of another kind go into `groups`, which are jobs of their "
            "own.",
            detail="job.directives",
        )
    if told:
        raise InvalidInput(
            f"The directive {text!r} {told}.",
            hint="Remove it from job.directives.",
            detail="job.directives",
        )


@dataclass(frozen=True)
class Twice:
    """A directive that sets what keys set."""

    place: int
    """Which of the directives it is."""
    keys: tuple[str, ...]
    same: bool
    """Whether it asks for the keys' amounts in another spelling."""
    error: InvalidInput


def refuse_twice(found: Iterable[Twice]) -> None:
    """Raise the error of the first directive that is not accepted for one more release."""
    for each in found:
        if not each.same:
            raise each.error


def set_twice(
    backend: Backend, job: JobShape, generated: Sequence[str], texts: Sequence[str]
) -> Iterator[Twice]:
    """Yield the directives among texts that set what keys of ``job`` set by our own lines."""
    kept = without_skipped(generated, job.skip_directives)
    ours = {key for line in kept for key in keys_of(backend, job, line) if _counts(job, key)}
    for place, text in enumerate(texts):
        line = f"{backend.prefix} {text}"
        if keys := tuple(key for key in keys_of(backend, job, line) if key in ours):
            same = same_amounts(backend, job, kept, line, keys)
            yield Twice(place, keys, same, _error(backend, job, kept, text, keys))


def keys_of(backend: Backend, job: JobShape, line: str) -> tuple[str, ...]:
    """Return the keys of ``job`` that a directive sets, by the names of its option and values."""
    option, value = option_of(line)
    if backend.prefix == "#KUBERNETES":
        names = {".".join(map(str, steps_of(option)))}
    else:
        found = NAMED_VALUE.findall(_bare(value))
        names = {option, *(f"{option} {one or other}" for one, other in found)}
    return _keys_of_names(backend, job, names)


def _keys_of_names(backend: Backend, job: JobShape, names: Collection[str]) -> tuple[str, ...]:
    gpu = job.gpu_request.partition("/")[0] or "gpu"
    memories = [each.strip().partition("/")[0] for each in job.memory_request.split(",")]
    keys: dict[str, None] = {}
    for pattern, set_by_it in backend.option_keys.items():
        for memory in memories:
            wanted = pattern.replace("{gpu}", gpu).replace("{memory}", memory or "mem_free")
            # A whole object of a pod sets all the fields in it.
            if any(fnmatchcase(x, wanted) or wanted.startswith(f"{x}.") for x in names):
                keys |= dict.fromkeys(set_by_it)
    return tuple(keys)


def lines_that_set(backend: Backend, job: JobShape, key: str, lines: Iterable[str]) -> list[str]:
    """Return the lines that set a key, such as ``walltime``."""
    return [line for line in lines if key in keys_of(backend, job, line)]


def _counts(job: JobShape, key: str) -> bool:
    """Return whether a key is set, and the system is asked for it."""
    return bool(getattr(job, key)) and getattr(job, SPELLED_BY.get(key, ""), "") != "none"


def twice_in_profile(
    backend: str, values: Mapping[str, Any], unknown: Collection[str]
) -> Iterator[tuple[str, str, bool]]:
    """Yield what is wrong with the directives of a profile that is read, before it is started.

    Each is the place below ``job``, the message, and whether this release still accepts it.

    Parameters
    ----------
    values
        The keys of its ``job``.
    unknown
        Keys whose values a user may set at start, such as ``job.walltime``.
    """
    dialect, job = BACKENDS.get(backend), JobShape(**values)
    if dialect is None or not dialect.prefix:
        return
    found: list[tuple[str, str, Twice]] = []
    arguments = [] if backend in ("htcondor", "kubernetes") else options_in(job.submit_args)
    given = {"directives": [*job.directives], "submit_args": arguments}
    try:
        for place, text in enumerate(job.directives):
            try:
                refuse_reserved(dialect.prefix, text)
            except InvalidInput as error:
                yield f"directives.{place}", f"{error.message} {error.hint}", False
        for field, texts in given.items():
            if any(keys_of(dialect, job, f"{dialect.prefix} {text}") for text in texts):
                generated = dialect.directives(job, "mark", "/output")
                for each in set_twice(dialect, job, generated, texts):
                    found.append((f"{field}.{each.place}", texts[each.place], each))
    except (InvalidInput, BackendError):
        return  # a start says what else is wrong, with the user's options in it
    for where, text, each in found:
        # Braces hold the names of options, whose values only a start knows.
        braces = "{" in f"{text}{[values[key] for key in each.keys]}"
        if not braces and not {f"job.{key}" for key in each.keys} & {*unknown}:
            wrong = _of_argument(each.error) if where.startswith("submit_args") else each.error
            yield where, f"{wrong.message} {wrong.hint}", each.same


def _error(
    backend: Backend, job: JobShape, kept: Sequence[str], text: str, keys: Sequence[str]
) -> InvalidInput:
    *most, last = (f"job.{key}" for key in keys)
    names = f"{', '.join(most)} and {last}" if most else last
    verb = "sets" if len(keys) == 1 else "set"
    lines = [line for line in kept if {*keys_of(backend, job, line)} & {*keys}]
    starts = [found.group() for x in lines if (found := BEGINNING.match(x.partition(" ")[2]))]
    spelled = "".join(f" job.{SPELLED_BY[x]} sets its spelling." for x in keys if x in SPELLED_BY)
    skip = f" To keep the directive, leave out our line: skip_directives: {starts}."
    return InvalidInput(
        f"The directive {text!r} sets what {names} {verb}.",
        hint=f"Remove the directive and use {names}.{spelled}{skip if starts else ''}",
        detail="job.directives",
    )


# What follows accepts the same amounts in another spelling for one more release.

SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgtpe]?)(i?b?w?)", re.IGNORECASE | re.ASCII)
SAME_MEMORY = 0.1
"""Part by which two amounts of memory may differ: 4 GB is 4 G to some, and 3815 M to others."""
SYNONYMS = {"select": "nodes", "ncpus": "ppn", "ngpus": "gpus"}
UNCOMPARED = ("mpiprocs", "j_exclusive")
Value = tuple[str, float | int | str | None]


def same_amounts(
    backend: Backend, job: JobShape, kept: Sequence[str], line: str, keys: Sequence[str]
) -> bool:
    """Return whether a directive asks for the amounts of these keys in another spelling."""
    own, requests = _values(backend, job, line), {*requests_of(line)}
    others: list[str] = getattr(backend, "spellings", lambda _: [])(job)
    for key in keys:
        for other in lines_that_set(backend, job, key, [*kept, *others]):
            theirs = [
                value
                for value in _values(backend, job, other)
                # OAR is asked for one core where job.cpus is unset.
                if {*keys} & {*(_keys_of_names(backend, job, [value[0]]) or keys)}
            ]
            # What stands beside our line need not say all of it.
            beside = not requests & {*requests_of(other)}
            if _among(theirs, own) or (beside and _among(own, theirs)):
                break
        else:
            return False
    return True


def walltimes_of(backend: Backend, job: JobShape, lines: Iterable[str]) -> list[Value]:
    """Return the walltimes that directives ask for."""
    found: list[Value] = []
    for line in lines_that_set(backend, job, "walltime", lines):
        alone = keys_of(backend, job, line) == ("walltime",)
        found += [x for x in _values(backend, job, line) if alone or x[0].endswith("walltime")]
    return found


def _values(backend: Backend, job: JobShape, line: str) -> list[Value]:
    """Return the named values of a directive, amounts as numbers."""
    option, value = option_of(line)
    keys = {*keys_of(backend, job, line)}
    if backend.prefix == "#KUBERNETES":
        return [(".".join(map(str, steps_of(option))), _number(backend, keys, value))]
    pieces = [_bare(value)] if "[" in value else _bare(value).split(",")
    if backend.prefix != "#OAR" and len(pieces) > 1:
        prefix, blank = backend.prefix, "" if option.startswith("--") else " "
        pieces = [x for x in pieces if keys_of(backend, job, f"{prefix} {option}{blank or '='}{x}")]
    values: list[Value] = []
    for piece in pieces:
        if keys <= {"gpus", "gpu_type"} and "=" not in piece:
            values += [(option, _number(backend, keys, x)) for x in re.split("[:/]", piece)]
            continue
        for part in re.split(r"[:/](?=[A-Za-z])", piece):
            name, equals, amount = part.rpartition("=")
            name = SYNONYMS.get(name, name)
            if not equals and len(keys & {"cpus", "nodes"}) == len(keys) == 1:
                amount = amount.rpartition(" ")[2]  # of "smp 8" the site knows the name
            if part and name not in UNCOMPARED:
                timed = {"walltime"} if name == "walltime" else keys
                values.append((f"{option} {name}", _number(backend, timed, amount)))
    return values


def _number(backend: Backend, keys: Collection[str], text: str) -> float | int | str:
    if {*keys} == {"walltime"} or re.fullmatch(r"[\d:-]+:\d+", text):
        seconds = parse_walltime(text.partition("/")[0], backend.name)
        return text if seconds is None else seconds
    if text.isascii() and text.isdigit() and len(text) < 16:
        # A bare amount of memory is in MiB to most systems.
        return float(int(text) * 2**20) if {*keys} == {"memory"} else int(text)
    if match := SIZE.fullmatch(text):
        return float(match[1]) * float(1024 ** " kmgtpe".index(match[2].lower() or " "))
    return text


def _among(some: Sequence[Value], others: Sequence[Value]) -> bool:
    return all(any(_alike(one, other) for other in others) for one in some)


def _alike(one: Value, other: Value) -> bool:
    first, second = one[1], other[1]
    if one[0] == other[0] and isinstance(first, float) and isinstance(second, float):
        return abs(first - second) <= SAME_MEMORY * max(first, second)
    return one == other


def _bare(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
