"""Refuse a profile's own directives and submit arguments that set what its keys set."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ..core.errors import BackendError, InvalidInput
from ..core.job import JobShape
from . import BACKENDS
from .base import Backend
from .directives import bare, merge, options_in, without_skipped

SPELLED_BY = {"gpus": "gpu_request", "memory": "memory_request"}
"""The key that chooses how a system is asked for what another key sets."""
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
        refuse_reserved(backend, text)
    lines = merge(backend.syntax, generated, job.directives, job.skip_directives)
    if not as_given:
        refuse_twice(set_twice(backend, job, generated, job.directives))
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


def parse_walltime(text: str, backend: str) -> int | None:
    """Return a walltime in seconds as a batch system reads it, None if it is none."""
    return BACKENDS[backend].syntax.seconds(text)


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


@dataclass(frozen=True)
class Twice:
    """A directive that sets what keys set."""

    place: int
    """The number of the directive."""
    keys: tuple[str, ...]
    same: bool
    """True if it requests the keys' amounts in another spelling."""
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
        line = f"{backend.syntax.prefix} {text}"
        if keys := tuple(key for key in keys_of(backend, job, line) if key in ours):
            same = same_amounts(backend, job, kept, line, keys)
            yield Twice(place, keys, same, _error(backend, job, kept, text, keys))


def keys_of(backend: Backend, job: JobShape, line: str) -> tuple[str, ...]:
    """Return the keys of ``job`` that a directive sets, by the names of its option and values."""
    return _keys_of_names(backend, job, backend.syntax.names_in(line))


def _keys_of_names(backend: Backend, job: JobShape, names: Collection[str]) -> tuple[str, ...]:
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
    if dialect is None or not dialect.syntax.prefix:
        return
    found: list[tuple[str, str, Twice]] = []
    arguments = options_in(job.submit_args) if dialect.syntax.arguments else []
    given = {"directives": [*job.directives], "submit_args": arguments}
    try:
        for place, text in enumerate(job.directives):
            try:
                refuse_reserved(dialect, text)
            except InvalidInput as error:
                yield f"directives.{place}", f"{error.message} {error.hint}", False
        for field, texts in given.items():
            if any(keys_of(dialect, job, f"{dialect.syntax.prefix} {text}") for text in texts):
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
    own, requests = _values(backend, job, line), {*backend.syntax.requests_of(line)}
    others = backend.spellings(job)
    for key in keys:
        for other in lines_that_set(backend, job, key, [*kept, *others]):
            theirs = [
                value
                for value in _values(backend, job, other)
                # OAR is asked for one core where job.cpus is unset.
                if {*keys} & {*(_keys_of_names(backend, job, [value[0]]) or keys)}
            ]
            # What stands beside our line need not say all of it.
            beside = not requests & {*backend.syntax.requests_of(other)}
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
    option, value = backend.syntax.option_of(line)
    keys = {*keys_of(backend, job, line)}
    pieces = [bare(value)] if "[" in value else bare(value).split(",")
    if len(pieces) > 1:
        begin = f"{backend.syntax.prefix} {option}{'=' if option.startswith('--') else ' '}"
        pieces = [piece for piece in pieces if keys_of(backend, job, begin + piece)]
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
        seconds = backend.syntax.seconds(text.partition("/")[0])
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
