"""The typed model of a profile: every key, its kind, default and meaning."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from .fields import Flag, Lines, OneValue, OptionName, Text, Title
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

BackendName = Literal[
    "local",
    "demo",
    "slurm",
    "pbs",
    "torque",
    "lsf",
    "sge",
    "htcondor",
    "oar",
    "moab",
    "cobalt",
    "ssh",
    "kubernetes",
    "existing",
]
OptionType = Literal["string", "integer", "boolean", "enum", "duration", "memory", "path"]


class Option(Section):
    """Something that the user may set at start."""

    type: OptionType = Field(title="Type", description="Kind of the value.")
    title: Text = Field("", title="Title", description="Name in the dialog; empty: the key.")
    help: Lines = Field("", title="Help", description="A sentence shown beside the field.")
    field: Text | None = Field(
        None,
        title="Field",
        description="Key of the profile that the value goes to, such as `job.walltime`. Empty: the"
        " places that hold the option's name in braces, or else the key of `job` of that name.",
    )
    default: OneValue = Field(None, title="Default", description="Value when the user gives none.")
    required: Flag = Field(
        False, title="Required", description="Whether the user must give a value."
    )
    minimum: OneValue = Field(
        None,
        title="Minimum",
        description="Smallest value; for `integer`, `duration` and `memory`.",
    )
    maximum: OneValue = Field(
        None, title="Maximum", description="Largest value; for `integer`, `duration` and `memory`."
    )
    pattern: Text | None = Field(
        None,
        title="Pattern",
        description="Regular expression that the whole value must match; for `string` and `path`.",
    )
    choices: tuple[Text, ...] = Field(
        (), title="Choices", description="Allowed values; for `enum`, which needs them."
    )


def _part(section: type[Section]) -> Any:
    # model_construct() keeps the import from building a validator for each section.
    return Field(section.model_construct(), title=section.__name__, description=section.__doc__)


def _launcher(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


class _NameAlone:
    """Tells the JSON Schema that the name of a launcher may stand for the mapping."""

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(get_args(LauncherName))}, handler(schema)]}


class Profile(Section):
    """One place to run clusters."""

    model_config = ConfigDict(title="Profile of jupyter_gpucluster")

    title: Title = Field(title="Title", description="Name of the place for users.")
    summary: Lines = Field("", title="Summary", description="A sentence or two for users.")
    backend: BackendName = Field(title="Backend", description="The queueing system.")
    dask_config: Text = Field(
        "",
        title="Dask configuration",
        description="Section of `jobqueue` in Dask's own YAML that gives what this file does not,"
        " such as `mysite`.",
    )
    hosts: tuple[Text, ...] = Field(
        (),
        title="Hosts",
        description="Patterns of host names (`login*.example.org`) that offer this profile first.",
    )
    default: Flag = Field(
        False, title="Default", description="Whether the profile is chosen beforehand."
    )
    job: Job = _part(Job)
    workers: Workers = _part(Workers)
    launcher: Annotated[Launcher, BeforeValidator(_launcher), _NameAlone()] = Field(
        Launcher.model_construct(),
        title="Launcher",
        description=f"{Launcher.__doc__} Its name alone, or a mapping.",
    )
    groups: dict[OptionName, Group] = Field(
        {},
        title="Groups",
        description="Workers of other kinds beside those of `job` and `workers`, by name. The"
        " target does not count them.",
    )
    head: Head = _part(Head)
    existing: Existing = _part(Existing)
    network: Network = _part(Network)
    environment: Environment = _part(Environment)
    options: dict[OptionName, Option] = Field(
        {}, title="Options", description="What the user may set at start, by name."
    )
    limits: Limits = _part(Limits)
    policy: Policy = _part(Policy)
    access: Access = _part(Access)
    locked: tuple[Text, ...] = Field(
        (),
        title="Locked",
        description="Keys that less central files cannot change, such as `limits` or `job.queue`.",
    )
    final: Flag = Field(
        False, title="Final", description="Whether less central files of this name are ignored."
    )
