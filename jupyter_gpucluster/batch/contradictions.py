"""Refuse a profile's own directives that ask for something else than its keys do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.errors import BackendError, InvalidInput
from ..core.job import JobShape
from . import BACKENDS
from .asked import Amount, asked
from .base import Backend
from .directives import (
    merge,
    option_of,
    options_in,
    prefix_of,
    refuse_beside_select,
    without_skipped,
)
from .kubernetes.manifest import look, pod_of, steps_of
from .quoting import hours

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
UNITS = {"job.nodes": "node", "job.gpus": "GPU", "job.cpus": "core"}
BEGINNING = re.compile(r'-R "\w+\[|-l /?\w+=?|--[\w-]+=?|-\w+ ?|[\w.\[\]\\/-]+ = ')
SAME_MEMORY = 0.1
"""Part by which two amounts of memory may differ: 4 GB is 4 G to some, and 3815 M to others."""


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
        One of the profile's own directives contradicts a key or another directive.
    """
    generated = backend.directives(job, mark, output)
    for text in job.directives:
        refuse_reserved(prefix_of(generated), text)
    lines = merge(generated, job.directives, job.skip_directives)
    if prefix_of(generated) == "#KUBERNETES":
        refuse_taken(generated, lines)
    for *_, error in contradictions(job, generated) if not as_given else ():
        raise error
    refuse_beside_select(lines)
    refuse_arguments(job, generated)
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


def refuse_arguments(job: JobShape, generated: Sequence[str]) -> None:
    """Refuse arguments of the submit command that say something else than the script.

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
        for *_, error in contradictions(replace(job, directives=tuple(texts)), generated):
            raise error
    except InvalidInput as error:
        raise InvalidInput(
            error.message.replace("directive", "argument").replace(
                "arguments ask", "submit_args ask"
            ),
            hint="Remove it from job.submit_args: what is asked for is up to the keys of job.",
            detail="job.submit_args",
        ) from error


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


def contradictions(
    job: JobShape, generated: Sequence[str]
) -> Iterator[tuple[int, str, InvalidInput]]:
    """Yield each directive of the profile that says something else than a key, and the words.

    A key of which no generated line speaks, since it is skipped or the system is not to be asked,
    counts nothing.  Before the error come the directive's place and the key.
    """
    if not job.directives:
        return
    kept, gpu_name = without_skipped(generated, job.skip_directives), _gpu_name(job)
    told = asked(merge(kept, job.directives, ()), gpu_name)
    for key, amount in asked(kept, gpu_name).items():
        if is_set(job, key) and not same(key, amount, told):
            place = _culprit(job, kept, key, amount)
            line = next((line for line in kept if key in asked([line], gpu_name)), "")
            error = _error(job.directives[place], key, amount, told, line)
            yield place, key.partition(" ")[0], error


def contradictory(
    backend: str, values: Mapping[str, Any], unknown: Collection[str]
) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with the directives of a profile that is read, before it is started.

    Parameters
    ----------
    values
        The keys of its ``job``.
    unknown
        Keys whose values a user may set at start, such as ``job.walltime``.
    """
    dialect, job = BACKENDS.get(backend), JobShape(**values)
    try:
        generated = dialect.directives(job, "mark", "/output") if dialect else []
        for place, text in enumerate(job.directives):
            try:
                refuse_reserved(prefix_of(generated), text)
            except InvalidInput as error:
                yield place, f"{error.message} {error.hint}"
        found = list(contradictions(job, generated))
    except (InvalidInput, BackendError):
        return  # a start says what else is wrong, with the user's options in it
    for place, key, wrong in found:
        # Braces hold the names of options, whose values only a start knows.
        braces = "{" in f"{job.directives[place]}{values[key.removeprefix('job.')]}"
        if key not in unknown and not braces:
            yield place, f"{wrong.message} {wrong.hint}"


def is_set(job: JobShape, key: str) -> bool:
    """Tell whether the profile's key says something; some dialects ask for a core anyway."""
    return bool(getattr(job, key.partition(" ")[0].removeprefix("job.")))


def same(key: str, amount: Amount, told: Mapping[str, Amount]) -> bool:
    """Tell whether a script asks for an amount, or in a form that cannot be compared."""
    if key not in told:
        return False
    other = told[key]
    if other is None or amount is None:
        return True
    if isinstance(amount, frozenset) and isinstance(other, frozenset):
        return amount <= other
    if key.startswith("job.memory") and isinstance(amount, int) and isinstance(other, int):
        return abs(amount - other) <= SAME_MEMORY * max(amount, other)
    return amount == other


def _gpu_name(job: JobShape) -> str:
    return job.gpu_request.partition("/")[0]


def _culprit(job: JobShape, kept: Sequence[str], key: str, amount: Amount) -> int:
    """Return the place of the directive without which the script would ask for the amount."""
    gpu_name, prefix = _gpu_name(job), prefix_of(kept)
    for place, text in enumerate(job.directives):
        if not same(key, amount, asked(merge(kept, [text], ()), gpu_name)):
            return place
    speak = [
        place
        for place, text in enumerate(job.directives)
        if key in asked([f"{prefix} {text}"], gpu_name)
    ]
    return (speak or [len(job.directives) - 1])[-1]


def _error(
    text: str, key: str, amount: Amount, told: Mapping[str, Amount], line: str
) -> InvalidInput:
    key, _, name = key.partition(" ")
    ours = _said(key, amount)
    if name and key == "job.memory":
        # A slot's share of it, where the site counts so.
        ours += f" by {line.partition(' ')[2]!r}"
    words = f"leaves out {key}, which asks for {ours}"
    for name, other in told.items():
        if name.partition(" ")[0] == key and other != amount:
            words = f"asks for {_said(key, other)}, {key} for {ours}"
    start = BEGINNING.match(line.partition(" ")[2])
    skip = f"; skip_directives: [{start.group()!r}] leaves out our own line" if start else ""
    return InvalidInput(
        f"The directive {text!r} {words}.",
        hint=f"Remove the directive, or change {key} to the same{skip}.",
        detail="job.directives",
    )


def _said(key: str, amount: Amount) -> str:
    if isinstance(amount, frozenset):
        amount = " and ".join(sorted(amount))
    if key in UNITS:
        return f"{amount or 'no'} {UNITS[key]}{'' if amount in (1, '1') else 's'}"
    if key == "job.memory" and isinstance(amount, int):
        return f"{amount / 2**30:.4g} GiB"
    if key == "job.walltime" and isinstance(amount, int):
        return hours(amount)
    return f"{amount or 'nothing'}"
