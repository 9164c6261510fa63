"""From a tree of values to a checked profile: each finding has its place and a fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from ..batch import BACKENDS, on_this_machine
from ..core.cluster import EXISTING
from ..core.job import JobShape
from ..core.serialize import copied
from .model import (
    SETTABLE,
    Option,
    Path,
    Profile,
    all_keys,
    exists,
    join,
    places,
    section_at,
    split,
    suggestion,
)
from .options import (
    AMOUNTS,
    PLACEHOLDER,
    bounds,
    check_value,
    matches,
    parse_value,
    placeholders,
    put,
    scaled,
    targets,
)
from .reader import Branch, Finding, Items, Leaf, Mark, Tree, plain
from .sections import Section
from .values import kind_of, shown

Problem = tuple[Path, str]
"""The path of a key, and a message about its value."""

LONG_IN_SECONDS = 3600
"""A walltime of so many seconds is meant as such; Slurm and LSF read a bare number as minutes."""
UNUSED_BY_EXISTING = (
    "job", "workers", "launcher", "groups", "head", "network", "environment.container",
    "environment.prologue", "environment.variables", "limits.workers", "policy",
)  # fmt: skip


DASK_AND_CONDA = {
    # dask-jobqueue's options: https://jobqueue.dask.org/en/stable/generated/.
    **dict.fromkeys(("cores", "cpu", "ncores", "n_cpus"), "job.cpus"),
    "processes": "workers.per_job",
    "project": "job.account",
    "env_extra": "environment.prologue",
    "job_script_prologue": "environment.prologue",
    "job_extra": "job.directives",
    "job_extra_directives": "job.directives",
    "resource_spec": "job.directives",
    "header_skip": "job.skip_directives",
    "job_directives_skip": "job.skip_directives",
    "extra": "workers.extra_args",
    "worker_extra_args": "workers.extra_args",
    # Words of many systems and scripts.
    "mem": "job.memory",
    "time": "job.walltime",
    **dict.fromkeys(("gpu", "ngpus", "num_gpus", "gpus_per_job", "gpus_per_node"), "job.gpus"),
    **dict.fromkeys(("nthreads", "threads_per_worker"), "workers.threads"),
    **dict.fromkeys(("env_vars", "environment_variables", "export"), "environment.variables"),
    **dict.fromkeys(("scheduler", "system", "cluster_type"), "backend"),
    "description": "summary",
}
"""Words for keys, whatever the batch system."""
_PYTHON = "Set `environment.python` to the path of the environment's Python: /path/to/bin/python."
_MODULES = 'Use `environment.prologue: ["module load NAME"]`.'
SENTENCES = {
    **dict.fromkeys(("conda", "conda_env", "venv", "virtualenv"), _PYTHON),
    **dict.fromkeys(("modules", "module", "module_load"), _MODULES),
    "env": f"Use `environment.variables` for variables. {_PYTHON}",
    "name": "The file's name is the profile's name, and the cluster names its jobs; use `title` for"
    " the name that users see.",
    "shebang": "The job script is run by bash; use `environment.prologue` for lines such as"
    " `. /etc/profile`.",
    **dict.fromkeys(
        ("n_workers", "num_workers", "max_workers", "min_workers"),
        "Users choose the number of workers at start; `limits.workers` is the most that they get.",
    ),
}
"""Sentences about words that no single key stands for."""


def validate(tree: Branch) -> tuple[Profile | None, list[Finding]]:
    """Return the profile and what is wrong; the profile is None when anything is."""
    try:
        profile = Profile.model_validate(plain(tree))
    except ValidationError as error:
        return None, wrong_values(tree, error, Profile)
    findings = [Finding(_find(tree, path)[0], message) for path, message in _checks(profile)]
    return (None if findings else profile), _in_order(findings)


def warnings(profile: Profile, tree: Branch) -> list[Finding]:
    """Return what a good profile says in vain or in a way that may be misread."""
    return [*_without_meaning(profile, tree), *_bare_walltimes(profile, tree)]


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.mark)


# Warnings


def _without_meaning(profile: Profile, tree: Branch) -> Iterator[Finding]:
    """Yield keys that are set although they have no meaning with the profile's other keys."""
    unused: Sequence[str] = UNUSED_BY_EXISTING if profile.backend == EXISTING else ()
    if profile.backend in BACKENDS:
        unused = BACKENDS[profile.backend].unused_keys(profile.launcher.name)
    for dotted in unused:
        mark, found, _ = _find(tree, split(dotted), on_key=True)
        if found == split(dotted):
            words = f"`{dotted}` has no meaning on backend {profile.backend} and is ignored"
            yield Finding(mark, words)
    chosen = {option.field for option in profile.options.values()}
    if profile.network.fallback and profile.network.protocol != "ucx":
        if "network.protocol" not in chosen:
            mark, _, _ = _find(tree, split("network.fallback"), on_key=True)
            words = "`network.fallback` is for `network.protocol: ucx`, and is ignored"
            yield Finding(mark, words)


def _bare_walltimes(profile: Profile, tree: Branch) -> Iterator[Finding]:
    """Yield walltimes of batch jobs without a unit that may be meant as hours or minutes.

    All are read as seconds.
    """
    # Dask's settings are in each system's own form, and are numbers only in our tree.
    if profile.backend == EXISTING or on_this_machine(profile.backend) or profile.dask_config:
        return
    walltime = ("job", "walltime")
    paths: list[Path] = [walltime, *(("groups", name, *walltime) for name in profile.groups)]
    for name, option in profile.options.items():
        if any(path[-2:] == walltime for path in targets(profile, name, option)):
            paths += [("options", name, key) for key in ("default", "maximum")]
    for path in paths:
        mark, found, value = _find(tree, path)
        number = str(value.value).strip() if isinstance(value, Leaf) else ""
        if found == path and number.isdecimal() and int(number) < LONG_IN_SECONDS:
            yield Finding(
                mark,
                f"`{join(path)}`: {number} has no unit and is read as {number} seconds;"
                f' for hours write {number} h or "{number}:00:00", for minutes {number} min,'
                f" for seconds {number} s. The next release refuses a walltime without a unit.",
            )


# Values of a wrong kind, as pydantic finds them


def wrong_values(tree: Branch, error: ValidationError, model: type[Section]) -> list[Finding]:
    """Return unknown and missing keys and values of a wrong kind, in order."""
    return _in_order(_finding(tree, each, model) for each in error.errors(include_url=False))


def _finding(tree: Branch, detail: Any, model: type[Section]) -> Finding:
    kind, loc = detail["type"], [part for part in detail["loc"] if part != "[key]"]
    on_key = kind == "extra_forbidden" or "[key]" in detail["loc"]
    mark, path, _ = _find(tree, loc, on_key=on_key)
    if kind == "extra_forbidden":
        backend = tree.entries.get("backend")
        system = str(backend.value) if isinstance(backend, Leaf) else ""
        return Finding(mark, _unknown(tuple(map(str, loc)), system, model))
    if kind == "missing":
        return Finding(mark, f"`{join(loc)}` is missing; add it")
    return Finding(mark, f"`{join(path)}`: {_wrong_value(kind, detail, path)}")


def _wrong_value(kind: str, detail: Any, path: Path) -> str:
    value = detail["input"]
    if kind == "literal_error":
        expected = str(detail["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
        close = suggestion(str(value), expected.split(", "))
        return f"{shown(value)} is not one of {expected}{close}"
    if kind == "value_error":
        if isinstance(value, str) and PLACEHOLDER.fullmatch(value):
            return f"names in braces work in text only; give the option `field: {join(path)}`"
        return str(detail["ctx"]["error"])
    given = kind_of(value)
    shapes = {
        "tuple_type": f"must be a list, not {given}; write [a, b] or one line with `- ` per item",
        "model_type": f"must be a mapping of keys, not {given}",
        "dict_type": f"must be a mapping of keys, not {given}",
        "bool_type": f"must be true or false, not {shown(value)}",
    }
    return str(shapes.get(kind, detail["msg"]))


def _unknown(path: Path, backend: str, model: type[Section] = Profile) -> str:
    """Return the message about an unknown key of a profile for a batch system."""
    key, above = path[-1], path[:-1]
    where = f" in `{join(above)}`" if above else ""
    return f"unknown key `{key}`{where}. {_fix(key, above, backend, model)}"


def _fix(key: str, above: Path, backend: str, model: type[Section]) -> str:
    section = section_at(above, model)
    known = list(section.model_fields) if section is not None else []
    word = key.lower().replace("-", "_")
    # In an option or container, `name` and the like have other meanings.
    if model is Profile and not {"options", "container"} & {*above}:
        if found := _synonym(word, backend):
            return found
        if word not in known and (others := places(word)):
            return f"It belongs at {' or '.join(f'`{other}`' for other in others)}."
    below = [each for each in all_keys() if each.count(".") == 1]
    top = model is Profile and not above
    close = suggestion(key, known) or suggestion(key, below if top else ())
    return close[2:3].upper() + close[3:] or f"Known keys are {', '.join(known)}."


def _synonym(word: str, backend: str) -> str:
    # The package of all dialects is not loaded for profiles without mistakes.
    from ..batch.contradictions import keys_meant, option_meant

    if found := _use(keys_meant(word, backend), word) or SENTENCES.get(word):
        return found
    if option := option_meant(word, backend):
        value = option if option[-1].isalpha() else f"{option}VALUE"
        return f'Use `job.directives: ["{value}"]`.'
    if word in DASK_AND_CONDA:
        section, _, key = DASK_AND_CONDA[word].rpartition(".")
        return _use([key], word) if section == "job" else f"Use `{DASK_AND_CONDA[word]}`."
    return _use(keys_meant(word), word) if not places(word) else ""


def _use(keys: Sequence[str], word: str) -> str:
    if not keys:
        return ""
    remark = " `job.gpus` counts the GPUs of all nodes of a job." if "per_node" in word else ""
    return f"Use {' and '.join(f'`job.{key}`' for key in keys)}.{remark}"


def _find(tree: Tree, path: Sequence[object], *, on_key: bool = False) -> tuple[Mark, Path, Tree]:
    """Return the place of a path or of the deepest part of it that is there, that part, its value.

    A mapping's place is its key; any other value's its own, unless `on_key` is set.
    """
    mark: Mark = tree.mark
    found: Path = ()
    for part in map(str, path):
        if isinstance(tree, Branch) and part in tree.entries:
            key, tree = tree.keys[part], tree.entries[part]
            mark = key if on_key or isinstance(tree, Branch) else tree.mark
        elif isinstance(tree, Items) and part.isdecimal() and int(part) < len(tree.items):
            tree = tree.items[int(part)]
            mark = tree.mark
        else:
            break
        found = (*found, part)
    return mark, found, tree


# Keys that do not go together


def _checks(profile: Profile) -> Iterator[Problem]:
    """Yield what the kinds of single values cannot express."""
    for index, dotted in enumerate(profile.locked):
        if not exists(split(dotted)):
            words = f"`locked`: there is no key {shown(dotted)}{_close_path(dotted)}"
            yield ("locked", str(index)), words
    for name, (path, *_) in placeholders(profile).items():
        if name not in profile.options:
            fix = f"; declare `options.{name}`, or double the braces to keep them"
            close = suggestion(name, profile.options)
            yield path, f"`{join(path)}`: {{{name}}} names no option{close or fix}"
    for name, option in profile.options.items():
        wrong = list(_option_checks(profile, name, option))
        yield from wrong or _fits(profile, name, option)
    yield from _set_twice(profile)


def _set_twice(profile: Profile) -> Iterator[Problem]:
    """Yield directives that set what a key of ``job`` sets which no option sets."""
    job = scaled(profile).job
    open_keys = {
        join(path)
        for name, option in profile.options.items()
        for path in targets(profile, name, option)
    }
    if profile.dask_config or not (job.directives or job.submit_args):
        return
    if {"job.directives", "job.submit_args"} & open_keys:
        return
    # The package of all dialects is not loaded for profiles without directives of their own.
    from ..batch.contradictions import twice_in_profile

    shape = copied(JobShape, job, gpus=0 if job.gpus == "auto" else job.gpus)
    for place, message in twice_in_profile(profile.backend, shape, open_keys):
        field, _, number = place.partition(".")
        yield ("job", field, number), f"`job.{field}`: {message}"


def _close_path(dotted: str) -> str:
    *above, last = split(dotted)
    section = section_at(tuple(above))
    close = suggestion(last, section.model_fields if section else ())
    if not close and (others := places(last)):
        return f"; did you mean `{others[0]}`?"
    return close.replace("`", f"`{join(above)}." if above else "`", 1)


def _option_checks(profile: Profile, name: str, option: Option) -> Iterator[Problem]:
    """Yield mistakes in an option's declaration."""
    here, dotted = ("options", name), f"`options.{name}`"
    for path in targets(profile, name, option):
        if option.field is None and not exists(path):
            yield (
                here,
                f"{dotted} has no effect: give it `field:` (such as job.walltime),"
                f" or write {{{name}}} where its value belongs",
            )
        elif path[0] not in SETTABLE or len(path) < 2 or not exists(path):
            wanted = "a key below " + ", ".join(SETTABLE)
            close = _close_path(join(path)) if not exists(path) else ""
            words = f"{dotted}: `field` must be {wanted}, not {shown(join(path))}{close}"
            yield (*here, "field"), words
    if (option.type == "enum") != bool(option.choices):
        words = "needs `choices`" if option.type == "enum" else "`choices` are for type enum only"
        yield (*here, "choices"), f"{dotted}: {words}"
    if option.values and option.type not in ("string", "enum"):
        yield (*here, "values"), f"{dotted}: `values` is for types string and enum only"
    if "" in option.choices:
        yield (*here, "choices"), f"{dotted}: an empty choice means that none was made; remove it"
    if option.pattern is not None:
        if option.type not in ("string", "path"):
            yield (*here, "pattern"), f"{dotted}: `pattern` is for types string and path only"
        else:
            yield from _attempt((*here, "pattern"), matches, option.pattern, "")
    for bound in ("minimum", "maximum"):
        value = getattr(option, bound)
        if value is not None and option.type not in AMOUNTS:
            yield (*here, bound), f"{dotted}: `{bound}` is for types {', '.join(AMOUNTS)} only"
        elif value is not None:
            yield from _attempt((*here, bound), parse_value, option, value)


def _fits(profile: Profile, name: str, option: Option) -> Iterator[Problem]:
    """Yield the first mistake in the values that an option itself names."""
    here = ("options", name)
    minimum, maximum = bounds(option)
    if minimum is not None and maximum is not None and minimum > maximum:
        yield (*here, "minimum"), f"`options.{name}`: `minimum` is more than `maximum`"
        return
    named: list[tuple[str, object]] = [("choices", value) for value in option.choices]
    named += [(key, getattr(option, key)) for key in ("default", "minimum", "maximum")]
    for key, value in named:
        if value is None:
            continue
        wrong = list(_attempt((*here, key), check_value, option, value))
        wrong = wrong or list(_misfits(profile, name, option, (*here, key), value))
        if wrong:
            yield from wrong
            return


def _misfits(
    profile: Profile, name: str, option: Option, place: Path, value: object
) -> Iterator[Problem]:
    """Yield the keys that an option sets and that cannot hold a value."""
    for path in targets(profile, name, option):
        data = profile.model_dump()
        put(data, path, check_value(option, value))
        try:
            Profile.model_validate(data)
        except ValidationError as error:
            words = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            yield place, f"`options.{name}`: {shown(value)} does not fit `{join(path)}`: {words}"


def _attempt(place: Path, check: Callable[..., object], *arguments: object) -> Iterator[Problem]:
    """Yield what a check raises about a key of an option."""
    try:
        check(*arguments)
    except ValueError as error:
        yield place, f"`{join(place[:-1])}`: `{place[-1]}`: {error}"
