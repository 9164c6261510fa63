"""From a tree of values to a checked profile: every finding with its place and a way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ..batch import on_this_machine
from ..core.cluster import EXISTING
from .fields import kind_of
from .keys import SETTABLE, Path, exists, join, places, section_at, split, suggestion
from .model import Option, Profile
from .options import AMOUNTS, bounds, check_value, matches, parse_value, put, targets
from .placeholders import PLACEHOLDER, placeholders
from .reader import Branch, Finding, Items, Leaf, Mark, Tree, plain
from .units import shown


def validate(tree: Branch) -> tuple[Profile | None, list[Finding]]:
    """Return the profile and what is wrong; the profile is None when anything is."""
    try:
        profile = Profile.model_validate(plain(tree))
    except ValidationError as error:
        details = error.errors(include_url=False)
        return None, _in_order(_finding(tree, detail) for detail in details)
    findings = [Finding(_mark(tree, path)[0], message) for path, message in _checks(profile)]
    return (None if findings else profile), _in_order(findings)


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.mark)


def without_meaning(profile: Profile, tree: Branch) -> Iterator[Finding]:
    """Yield keys that are set although the profile's backend knows nothing of them."""
    spread = profile.backend == "local" and profile.launcher.name != "none"
    for dotted in _NOT_SPREAD if spread else _MEANINGLESS.get(profile.backend, _NOT_BATCH):
        path = split(dotted)
        mark, found = _mark(tree, path, on_key=True)
        if found == path:
            words = f"`{dotted}` has no meaning on backend {profile.backend} and is ignored"
            yield Finding(mark, words)
    chosen = {option.field for option in profile.options.values()}
    if profile.network.fallback and profile.network.protocol != "ucx":
        if "network.protocol" not in chosen:
            mark, _ = _mark(tree, split("network.fallback"), on_key=True)
            words = "`network.fallback` is for `network.protocol: ucx`, and is ignored"
            yield Finding(mark, words)


LONG_IN_SECONDS = 3600
"""A walltime of so many seconds is meant as such; Slurm and LSF read a bare number as minutes."""


def bare_walltimes(profile: Profile, tree: Branch) -> Iterator[Finding]:
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
        mark, found = _mark(tree, path)
        number = _leaf(tree, path)
        if found == path and number.isdecimal() and int(number) < LONG_IN_SECONDS:
            yield Finding(
                mark,
                f"`{join(path)}`: {number} has no unit and is read as {number} seconds;"
                f' for hours write {number} h or "{number}:00:00", for minutes {number} min,'
                f" for seconds {number} s",
            )


def _leaf(tree: Tree, path: Path) -> str:
    """Return a value without parts as text, empty where there is none."""
    for part in path:
        if not isinstance(tree, Branch) or part not in tree.entries:
            return ""
        tree = tree.entries[part]
    return str(tree.value).strip() if isinstance(tree, Leaf) else ""


_NOT_LOCAL = (
    "job.submit_by",
    "job.nodes",
    "job.walltime",
    "job.queue",
    "job.account",
    "job.directives",
    "job.skip_directives",
    "job.submit_args",
    "job.cancel_args",
    "launcher",
    "head",
    "network.interface",
    "network.ports",
    "policy.drain_before",
    "policy.at_walltime",
)
_NOT_DEMO = (
    "job.submit_by", "job.submit_args", "job.cancel_args", "launcher", "head",
    "network.interface", "network.ports", "environment.container",
)  # fmt: skip
_NOT_EXISTING = (
    "job", "workers", "launcher", "groups", "head", "network", "environment.container",
    "environment.prologue", "environment.variables", "limits.workers", "policy",
)  # fmt: skip
_NOT_SPREAD = tuple(
    key
    for key in (*_NOT_LOCAL, "existing", "head.placement", "head.submit", "head.gpus")
    if key not in ("launcher", "head", "network.interface", "environment.container")
)
_NOT_BATCH = ("job.submit_by", "existing")
_MEANINGLESS = {
    "lsf": ("existing",),
    "local": (*_NOT_LOCAL, "existing"),
    "demo": (*_NOT_DEMO, "existing"),
    "existing": _NOT_EXISTING,
}


def _finding(tree: Branch, detail: Any) -> Finding:
    kind, loc = detail["type"], [part for part in detail["loc"] if part != "[key]"]
    mark, path = _mark(tree, loc, on_key=kind == "extra_forbidden" or "[key]" in detail["loc"])
    where = f"`{join(path)}`"
    if kind == "extra_forbidden":
        return Finding(mark, _unknown_key(tuple(str(part) for part in loc)))
    if kind == "missing":
        return Finding(mark, f"`{join(loc)}` is missing; add it")
    if kind == "literal_error":
        return Finding(mark, f"{where}: {_no_choice(detail)}")
    if kind == "value_error":
        words = str(detail["ctx"]["error"])
        if isinstance(detail["input"], str) and PLACEHOLDER.fullmatch(detail["input"]):
            words = f"names in braces work in text only; give the option `field: {join(path)}`"
        return Finding(mark, f"{where}: {words}")
    given = kind_of(detail["input"])
    shapes = {
        "tuple_type": f"must be a list, not {given}; write [a, b] or one line with `- ` per item",
        "model_type": f"must be a mapping of keys, not {given}",
        "dict_type": f"must be a mapping of keys, not {given}",
        "bool_type": f"must be true or false, not {shown(detail['input'])}",
        "string_too_short": "must not be empty",
        "string_too_long": f"must be at most {detail.get('ctx', {}).get('max_length')} characters",
    }
    return Finding(mark, f"{where}: {shapes.get(kind, detail['msg'])}")


def _unknown_key(path: Path) -> str:
    key, above = path[-1], path[:-1]
    section = section_at(above)
    known = list(section.model_fields) if section is not None else []
    where = f" in `{join(above)}`" if above else ""
    hint = suggestion(key, known)
    if not hint and (elsewhere := places(key)):
        hint = f"; it belongs at `{elsewhere[0]}`"
    return f"unknown key `{key}`{where}{hint or '; known keys are ' + ', '.join(known)}"


def _no_choice(detail: Mapping[str, Any]) -> str:
    expected = str(detail["ctx"]["expected"]).replace("'", "").replace(" or ", ", ")
    close = suggestion(str(detail["input"]), expected.split(", "))
    return f"{shown(detail['input'])} is none of {expected}{close}"


def _mark(tree: Tree, path: Sequence[object], *, on_key: bool = False) -> tuple[Mark, Path]:
    """Return where a path leads, or the deepest part of it that is there, and that part.

    A mapping's place is its key; any other value's its own, unless the key is asked for.
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
    return mark, found


def _checks(profile: Profile) -> Iterator[tuple[Path, str]]:
    """Yield what the kinds of single values cannot tell."""
    for index, dotted in enumerate(profile.locked):
        if not exists(split(dotted)):
            yield (
                ("locked", str(index)),
                f"`locked`: there is no key {shown(dotted)}{_close_path(dotted)}",
            )
    for name, paths in placeholders(profile).items():
        if name not in profile.options:
            path = paths[0]
            close = suggestion(name, profile.options)
            yield (
                path,
                f"`{join(path)}`: {{{name}}} names no option"
                + (close or f"; declare `options.{name}`, or double the braces to keep them"),
            )
    for name, option in profile.options.items():
        wrong = list(_option_checks(profile, name, option))
        yield from wrong
        if not wrong:
            yield from _fits(profile, name, option)
    for path, message, same in _set_twice(profile):
        if not same:
            yield path, message


def spelled_twice(profile: Profile, tree: Branch) -> Iterator[Finding]:
    """Yield directives that ask for the amount of a key once more, in another spelling."""
    for path, message, same in _set_twice(profile):
        if same:
            words = "Both ask for the same amount, so this release accepts the line"
            yield Finding(_mark(tree, path)[0], f"{message} {words}; the next one refuses it.")


def _set_twice(profile: Profile) -> Iterator[tuple[Path, str, bool]]:
    """Yield directives that set what a key of ``job`` sets which no option sets."""
    job = profile.job
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

    values = job.model_dump(exclude={"gpus"}) | {"gpus": 0 if job.gpus == "auto" else job.gpus}
    for place, message, same in twice_in_profile(profile.backend, values, open_keys):
        field, _, number = place.partition(".")
        yield ("job", field, number), f"`job.{field}`: {message}", same


def _close_path(dotted: str) -> str:
    *above, last = split(dotted)
    section = section_at(tuple(above))
    close = suggestion(last, section.model_fields if section else ())
    if not close and (elsewhere := places(last)):
        return f"; did you mean `{elsewhere[0]}`?"
    return close.replace("`", f"`{join(above)}." if above else "`", 1)


def _option_checks(profile: Profile, name: str, option: Option) -> Iterator[tuple[Path, str]]:
    here, dotted = ("options", name), f"`options.{name}`"
    for path in targets(profile, name, option):
        if option.field is None and not exists(path):
            yield (
                here,
                f"{dotted} goes nowhere: give it `field:` (such as job.walltime),"
                f" or write {{{name}}} where its value belongs",
            )
        elif path[0] not in SETTABLE or len(path) < 2 or not exists(path):
            wanted = "a key below " + ", ".join(SETTABLE)
            close = _close_path(join(path)) if not exists(path) else ""
            yield (
                (*here, "field"),
                f"{dotted}: `field` must be {wanted}, not {shown(join(path))}{close}",
            )
    if (option.type == "enum") != bool(option.choices):
        words = "needs `choices`" if option.type == "enum" else "`choices` are for type enum only"
        yield (*here, "choices"), f"{dotted}: {words}"
    if "" in option.choices:
        yield (*here, "choices"), f"{dotted}: an empty choice means that none was made; remove it"
    if option.pattern is not None:
        if option.type not in ("string", "path"):
            yield (*here, "pattern"), f"{dotted}: `pattern` is for types string and path only"
        else:
            yield from _attempt(
                (*here, "pattern"), dotted, lambda: matches(option.pattern or "", "")
            )
    for bound in ("minimum", "maximum"):
        value = getattr(option, bound)
        if value is None:
            continue
        if option.type not in AMOUNTS:
            yield (*here, bound), f"{dotted}: `{bound}` is for types {', '.join(AMOUNTS)} only"
        else:
            yield from _attempt((*here, bound), dotted, lambda v=value: parse_value(option, v))


def _fits(profile: Profile, name: str, option: Option) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with the values that an option itself names."""
    here, dotted = ("options", name), f"`options.{name}`"
    minimum, maximum = bounds(option)
    if minimum is not None and maximum is not None and minimum > maximum:
        yield (*here, "minimum"), f"{dotted}: `minimum` is more than `maximum`"
        return
    named: list[tuple[Path, object]] = [((*here, "choices"), value) for value in option.choices]
    named += [
        ((*here, key), value)
        for key in ("default", "minimum", "maximum")
        if (value := getattr(option, key)) is not None
    ]
    for place, value in named:
        wrong = list(_attempt(place, dotted, lambda v=value: check_value(option, v)))
        wrong = wrong or list(_misfits(profile, name, option, place, value))
        yield from wrong
        if wrong:
            return


def _misfits(
    profile: Profile, name: str, option: Option, place: Path, value: object
) -> Iterator[tuple[Path, str]]:
    for path in targets(profile, name, option):
        data = profile.model_dump()
        put(data, path, check_value(option, value))
        try:
            Profile.model_validate(data)
        except ValidationError as error:
            words = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            yield place, f"`options.{name}`: {shown(value)} does not fit `{join(path)}`: {words}"


def _attempt(place: Path, dotted: str, check: Any) -> Iterator[tuple[Path, str]]:
    try:
        check()
    except ValueError as error:
        yield place, f"{dotted}: `{place[-1]}`: {error}"
