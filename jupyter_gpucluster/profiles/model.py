"""The typed model of a profile, and look-up of its keys by path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

from ..batch import BACKENDS, WAYS_OUT
from ..batch.registry import outside
from ..core.cluster import EXISTING
from .sections import (
    Access,
    Environment,
    Existing,
    Group,
    Head,
    Job,
    Launcher,
    LauncherName,
    Limits,
    Network,
    Policy,
    Section,
    Workers,
)
from .values import Flag, Lines, OneValue, OptionName, Text, Title, shown

Path = tuple[str, ...]

SETTABLE = (
    "job", "workers", "launcher", "head", "existing", "network", "environment", "policy",
)  # fmt: skip
"""Sections that options may write to."""

OptionType = Literal["string", "integer", "boolean", "enum", "duration", "memory", "path"]

BACKEND_NAMES = (*BACKENDS, *WAYS_OUT, EXISTING)


def _backend(value: object) -> object:
    if value in BACKEND_NAMES or (isinstance(value, str) and value in outside()):
        return value
    close = suggestion(str(value), BACKEND_NAMES)
    raise ValueError(f"{shown(value)} is not one of {', '.join(BACKEND_NAMES)}{close}")


BackendName = Annotated[
    str,
    BeforeValidator(_backend),
    # Other packages add names.
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [*BACKEND_NAMES], "type": "string"},
                {"pattern": "^[a-z][a-z0-9_-]*$", "type": "string"},
            ]
        }
    ),
]


class Option(Section):
    """Something that the user may set at start."""

    type: OptionType
    """Kind of the value."""
    title: Text = ""
    """Name in the dialog; empty: the key."""
    help: Lines = ""
    """A sentence shown beside the field."""
    field: Text | None = None
    """Key of the profile that the value goes to, such as `job.walltime`. Empty: the places that
    hold the option's name in braces, or else the key of `job` of that name."""
    default: OneValue = None
    """Value when the user gives none."""
    required: Flag = False
    """Whether the user must give a value."""
    minimum: OneValue = None
    """Smallest value; for `integer`, `duration` and `memory`."""
    maximum: OneValue = None
    """Largest value; for `integer`, `duration` and `memory`."""
    pattern: Text | None = None
    """Regular expression that the whole value must match; for `string` and `path`."""
    choices: tuple[Text, ...] = ()
    """Allowed values; for `enum`, which needs them."""
    values: Literal["accounts", "queues", "qos"] | None = None
    """Names that the batch system reports for this user, which the dialog suggests for `string` and
    marks for `enum`. They allow nothing that the other keys refuse."""


def _part(section: type[Section]) -> Any:
    # model_construct() keeps the import from building a validator for each section.
    return Field(section.model_construct(), title=section.__name__, description=section.__doc__)


def _launcher(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


class _NameAlone:
    """Note for the JSON Schema that the name of a launcher may stand for the mapping."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(get_args(LauncherName))}, handler(schema)]}


class Profile(Section):
    """One way to run clusters."""

    model_config = ConfigDict(title="Profile of jupyter_gpucluster")

    title: Title
    """Name of the profile for users."""
    summary: Lines = ""
    """A sentence or two for users."""
    backend: BackendName
    """The batch system: one of those named here, or one that another installed package adds."""
    dask_config: Text = ""
    """Section of `jobqueue` in Dask's own YAML that gives what this file does not, such as
    `mysite`."""
    hosts: tuple[Text, ...] = ()
    """Patterns of host names (`login*.example.org`) that offer this profile first."""
    default: Flag = False
    """Whether the profile is chosen beforehand."""
    job: Job = _part(Job)
    workers: Workers = _part(Workers)
    launcher: Annotated[Launcher, BeforeValidator(_launcher), _NameAlone()] = Field(
        Launcher.model_construct(), description=f"{Launcher.__doc__} Its name alone, or a mapping."
    )
    groups: dict[OptionName, Group] = Field({})
    """Workers of other kinds beside those of `job` and `workers`, by name. The target does not
    count them."""
    head: Head = _part(Head)
    existing: Existing = _part(Existing)
    network: Network = _part(Network)
    environment: Environment = _part(Environment)
    options: dict[OptionName, Option] = Field({})
    """What the user may set at start, by name."""
    limits: Limits = _part(Limits)
    policy: Policy = _part(Policy)
    access: Access = _part(Access)
    locked: tuple[Text, ...] = ()
    """Keys that less central files cannot change, such as `limits` or `job.queue`."""
    final: Flag = False
    """Whether less central files of this name are ignored."""


def split(dotted: str) -> Path:
    """Turn ``job.queue`` into its parts."""
    return tuple(dotted.split("."))


def join(path: Iterable[object]) -> str:
    """Turn parts into ``job.queue``, the way messages write it."""
    return ".".join(str(part) for part in path)


def covers(upper: Path, path: Path) -> bool:
    """Return whether a path is `upper` or lies below it."""
    return path[: len(upper)] == upper


def section_at(path: Path, model: type[Section] = Profile) -> type[Section] | None:
    """Return the model of the mapping at a path, or None where there is none."""
    return _section(_kind_at(path, model))


def exists(path: Path) -> bool:
    """Return whether a profile may hold something at a path."""
    return bool(path) and _kind_at(path) is not None


def _kind_at(path: Path, kind: Any = Profile) -> Any:
    for part in path:
        section = _section(kind)
        if section is not None:
            field = section.model_fields.get(part)
            kind = None if field is None else field.annotation
        else:
            kind = get_args(kind)[1] if get_origin(kind) is dict else None
    return kind


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean `x`?`` for a word close to a known one, else nothing."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean `{by_lower[close[0]]}`?" if close else ""


def places(key: str) -> list[str]:
    """Return the dotted paths at which the model has a key of this name."""
    return [dotted for dotted in all_keys() if split(dotted)[-1] == key]


@cache
def all_keys(model: type[Section] = Profile, above: str = "") -> tuple[str, ...]:
    """Return the dotted paths of all keys, without those below names that a user chooses."""
    found: list[str] = []
    for name, field in model.model_fields.items():
        section = _section(field.annotation)
        found += [above + name, *(all_keys(section, f"{above}{name}.") if section else ())]
    return tuple(found)


def _section(kind: Any) -> type[Section] | None:
    if isinstance(kind, type) and issubclass(kind, Section):
        return kind
    if get_origin(kind) is dict:
        return None
    return next((found for arg in get_args(kind) if (found := _section(arg))), None)
