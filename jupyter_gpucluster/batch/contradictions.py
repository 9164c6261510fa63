"""Refuse a profile's own directives and submit arguments that set what its keys set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ..core.errors import BackendError, InvalidInput
from ..core.job import JobShape
from . import BACKENDS
from .base import Backend
from .directives import merge, options_in, without_skipped

SPELLED_BY = {"gpus": "gpu_request", "memory": "memory_request"}
"""The key that chooses how a system is asked for what another key sets."""
BEGINNING = re.compile(r'-R "\w+\[|-l /?\w+=?|--[\w-]+=?|-\w+ ?|[\w.\[\]\\/-]+ = ')


def directives_of(
    backend: Backend, job: JobShape, generated: Sequence[str], *, as_given: bool = False
) -> list[str]:
    """Return the lines of a script's head: the dialect's and the profile's own, merged.

    Parameters
    ----------
    generated
        The dialect's own, as `Backend.directives` returns them.
    as_given
        Whether own directives count whatever the keys say, as in Dask's configuration.

    Raises
    ------
    InvalidInput
        One of the profile's own directives sets what a key or another directive sets.
    """
    for text in job.directives:
        refuse_reserved(backend, text)
    lines = merge(backend.syntax, generated, job.directives, job.skip_directives)
    for _, _, error in () if as_given else set_twice(backend, job, generated, job.directives):
        raise error
    backend.syntax.check(generated, lines)
    refuse_arguments(backend, job, generated)
    return lines


def refuse_arguments(backend: Backend, job: JobShape, generated: Sequence[str]) -> None:
    """Refuse arguments of the submit command that set what the script's lines set.

    Raises
    ------
    InvalidInput
        They would count more than its lines.
    """
    texts = options_in(job.submit_args)
    for text in texts:
        backend.syntax.check_argument(text)
    if not backend.syntax.arguments:
        return
    try:
        for text in texts:
            refuse_reserved(backend, text)
        merge(backend.syntax, generated, texts, job.skip_directives)
        for _, _, error in set_twice(backend, job, generated, texts):
            raise error
    except InvalidInput as error:
        raise _of_argument(error) from error


def _of_argument(error: InvalidInput) -> InvalidInput:
    message, hint = (
        re.sub(r"\bdirective\b", "argument", text.replace("job.directives", "job.submit_args"))
        for text in (error.message, error.hint)
    )
    return InvalidInput(message, hint=hint, detail="job.submit_args")


def names_the_job(backend: str, text: str) -> bool:
    """Return whether a directive sets the job's name."""
    syntax = BACKENDS[backend].syntax
    return bool(syntax.name) and syntax.option_of(f"{syntax.prefix} {text}")[0] == syntax.name


def keys_meant(word: str, backend: str = "") -> tuple[str, ...]:
    """Return the keys of ``job`` that a system's option or value of this name sets.

    Parameters
    ----------
    word
        As a profile may have it, such as ``cpus_per_task`` or ``ngpus``.
    backend
        The system; empty for the first one of all that has such an option.
    """
    for name in BACKENDS if not backend else [backend] if backend in BACKENDS else []:
        for pattern, keys in BACKENDS[name].syntax.keys.items():
            option, _, value = pattern.partition(" ")
            names = [value] if value and not option.startswith("--") else [value, option]
            if any(_spells(word, name.lstrip("-").rpartition(".")[2]) for name in names):
                return (word,) if word in keys else keys
    return ()


def option_meant(word: str, backend: str) -> str:
    """Return the beginning of a directive of this name that sets no key; empty if there is none."""
    others = BACKENDS[backend].syntax.others if backend in BACKENDS else ()
    return next((x for x in others if _spells(word, re.findall(r"[\w-]+", x)[-1].lstrip("-"))), "")


def _spells(word: str, pattern: str) -> bool:
    spellings = (word, word.replace("_", "-"), word.replace("_", ""))
    return any(fnmatchcase(spelling, pattern) for spelling in spellings)


def refuse_reserved(backend: Backend, text: str) -> None:
    """Refuse a directive for what is up to the cluster.

    Raises
    ------
    InvalidInput
        It names the job, asks for several of them or splits it.
    """
    if text.lstrip().startswith("#"):
        raise InvalidInput(
            f"The directive {text!r} begins with '#', as if it were a line of a script.",
            hint=f"Leave that beginning out: {backend.syntax.prefix!r} is put before each"
            " directive.",
            detail="job.directives",
        )
    if why := backend.syntax.reserved(text):
        raise InvalidInput(
            f"The directive {text!r} {why}.",
            hint="Remove it from job.directives.",
            detail="job.directives",
        )


def refuse_launcher(backend: Backend, launcher: str) -> None:
    """Refuse a launcher that starts no ranks in jobs of a system.

    Raises
    ------
    InvalidInput
        It does not; the hint names those that do.
    """
    if launcher not in backend.launchers:
        raise InvalidInput(
            f"{launcher} does not start workers in jobs of {backend.title}.",
            hint=f"Set launcher to one of {', '.join(sorted(backend.launchers))}.",
            detail="launcher",
        )


def unasked(backend: Backend, job: JobShape) -> list[str]:
    """Return the keys of ``job`` that are set and that the batch system is not asked for."""
    lines, found = backend.directives(job, "tag", "/output"), []
    for key in sorted(backend.unasked):
        without = replace(job, **{key: getattr(JobShape(), key)})
        if without != job and backend.directives(without, "tag", "/output") == lines:
            found.append(f"job.{key}")
    return found


def set_twice(
    backend: Backend, job: JobShape, generated: Sequence[str], texts: Sequence[str]
) -> Iterator[tuple[int, tuple[str, ...], InvalidInput]]:
    """Yield directives that set what keys of ``job`` set by our own lines.

    Each is its place among the texts, the keys and the error.
    """
    kept = without_skipped(generated, job.skip_directives)
    ours = {key for line in kept for key in keys_of(backend, job, line) if _counts(job, key)}
    for place, text in enumerate(texts):
        line = f"{backend.syntax.prefix} {text}"
        if keys := tuple(key for key in keys_of(backend, job, line) if key in ours):
            yield place, keys, _error(backend, job, kept, text, keys)


def keys_of(backend: Backend, job: JobShape, line: str) -> tuple[str, ...]:
    """Return the keys of ``job`` that a directive sets, by the names of its option and values."""
    names = backend.syntax.names_in(line)
    gpu = job.gpu_request.partition("/")[0] or "gpu"
    memories = [each.strip().partition("/")[0] for each in job.memory_request.split(",")]
    keys: dict[str, None] = {}
    for pattern, set_by_it in backend.syntax.keys.items():
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
    backend: str, job: JobShape, unknown: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the directives of a profile that is read, before it is started.

    Each is the place below ``job`` and the message.

    Parameters
    ----------
    job
        The keys of its ``job``.
    unknown
        Keys whose values a user may set at start, such as ``job.walltime``.
    """
    dialect = BACKENDS.get(backend)
    if dialect is None or not dialect.syntax.prefix:
        return
    found: list[tuple[str, InvalidInput]] = []
    arguments = options_in(job.submit_args) if dialect.syntax.arguments else []
    try:
        for place, text in enumerate(job.directives):
            try:
                refuse_reserved(dialect, text)
            except InvalidInput as error:
                yield f"directives.{place}", f"{error.message} {error.hint}"
        for field, texts in {"directives": job.directives, "submit_args": arguments}.items():
            if not any(keys_of(dialect, job, f"{dialect.syntax.prefix} {each}") for each in texts):
                continue
            generated = dialect.directives(job, "mark", "/output")
            for place, keys, twice in set_twice(dialect, job, generated, texts):
                # Braces hold the names of options, whose values only a start knows.
                braces = "{" in f"{texts[place]}{[getattr(job, key) for key in keys]}"
                if not braces and not {f"job.{key}" for key in keys} & {*unknown}:
                    wrong = _of_argument(twice) if field == "submit_args" else twice
                    found.append((f"{field}.{place}", wrong))
    except (InvalidInput, BackendError):
        return  # a start says what else is wrong, with the user's options in it
    for where, wrong in found:
        yield where, f"{wrong.message} {wrong.hint}"


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
