"""The sections of a profile: what one job, its workers, the head and the network are like."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .fields import (
    DurationOrNone,
    LoginHop,
    MemoryAutoOrNone,
    MemoryOrNone,
    Natural,
    NaturalOrAuto,
    PortRange,
    Positive,
    PositiveOrAuto,
    PositiveOrNone,
    PythonPath,
    Text,
    VariableName,
)

LauncherName = Literal["none", "srun", "mpirun", "mpiexec", "jsrun", "aprun", "ssh"]


class Section(BaseModel):
    """A mapping of a profile: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Job(Section):
    """What one job asks the queueing system for."""

    nodes: Positive = Field(1, title="Nodes", description="Nodes of one job.")
    gpus: NaturalOrAuto = Field(
        "auto",
        title="GPUs",
        description="GPUs of one job, over all its nodes. `auto`: on backend `local` one for each"
        " job while the machine has GPUs, else none; on other backends none.",
    )
    gpu_request: Text = Field(
        "",
        title="GPU request",
        description="How the request for GPUs is spelled, such as `gres` or `none`; the page of the"
        " backend lists the ways. Empty: the system's usual way.",
    )
    gpu_type: Text = Field(
        "", title="GPU type", description="Type of GPU to ask for, as the site calls it."
    )
    cpus: PositiveOrNone = Field(
        None, title="CPU cores", description="CPU cores of one job; empty: not asked for."
    )
    memory: MemoryOrNone = Field(
        None, title="Memory", description="Memory of one job; empty: not asked for."
    )
    walltime: DurationOrNone = Field(
        None,
        title="Walltime",
        description="Time after which the queueing system ends the job; empty: its own default.",
    )
    queue: Text = Field("", title="Queue", description="Queue or partition.")
    account: Text = Field("", title="Account", description="Project that the time is charged to.")
    directives: tuple[Text, ...] = Field(
        (),
        title="Extra directives",
        description="Lines added to the head of the job script, without the system's prefix.",
    )
    skip_directives: tuple[Text, ...] = Field(
        (),
        title="Directives to skip",
        description="Generated lines that contain one of these texts are left out; blanks count,"
        " and lines from `directives` are never left out.",
    )


class Workers(Section):
    """What each worker of a job gets."""

    per_job: PositiveOrAuto = Field(
        "auto",
        title="Workers per job",
        description="Workers in one job. `auto`: one for each GPU of the job, or one without GPUs.",
    )
    threads: PositiveOrAuto = Field(
        "auto",
        title="Threads",
        description="Threads of one worker. `auto`: its share of the job's cores.",
    )
    memory_limit: MemoryAutoOrNone = Field(
        "auto",
        title="Memory limit",
        description="Memory after which a worker is restarted. `auto`: its share of the job's"
        " memory; empty: no limit.",
    )
    device_memory_limit: MemoryAutoOrNone = Field(
        "auto",
        title="GPU memory limit",
        description="GPU memory after which a worker moves data to main memory. `auto`: what"
        " dask-cuda chooses; empty: never.",
    )
    local_directory: Text = Field(
        "",
        title="Local directory",
        description="Where workers put data that does not fit into memory; variables are expanded"
        " on the node. Empty: what Dask chooses.",
    )
    extra_args: tuple[Text, ...] = Field(
        (), title="Extra arguments", description="Arguments added to the worker's command."
    )


class Launcher(Section):
    """What spreads one job over its nodes."""

    name: LauncherName = Field(
        "none", title="Name", description="The command; `none` starts one worker process."
    )
    args: tuple[Text, ...] = Field((), title="Arguments", description="Arguments of the launcher.")


class Head(Section):
    """Where the process that runs the Dask scheduler lives."""

    placement: Literal["server", "job"] = Field(
        "server",
        title="Placement",
        description="`server`: a process beside Jupyter; `job`: inside a job.",
    )
    interface: Text | None = Field(
        None,
        title="Network interface",
        description="Interface that the scheduler listens on; empty: that of `network`.",
    )
    submit: Literal["direct", "relay"] = Field(
        "direct",
        title="Submit",
        description="`direct`: the head runs the submit commands itself; `relay`: a process on the"
        " Jupyter host runs them, for nodes without these commands.",
    )
    gpus: Natural = Field(
        0, title="GPUs", description="GPUs that the head's own job asks for under placement `job`."
    )


class Network(Section):
    """How client, scheduler and workers talk."""

    protocol: Literal["tls", "tcp"] = Field(
        "tls",
        title="Protocol",
        description="`tls`: encrypted, with certificates made for each cluster; `tcp`: anyone who"
        " reaches the port can run code as you.",
    )
    interface: Text | None = Field(
        None,
        title="Network interface",
        description="Interface of workers and scheduler, such as `ib0`; empty: the system chooses.",
    )
    ports: PortRange | None = Field(
        None,
        title="Ports",
        description="Ports that workers may listen on, such as `40000-40100`; empty: any.",
    )


class Container(Section):
    """The container that workers run in."""

    runtime: Literal["apptainer", "singularity", "shifter", "pyxis"] = Field(
        title="Runtime", description="The command that runs the container."
    )
    image: Text = Field(title="Image", description="Path or address of the image.")
    args: tuple[Text, ...] = Field((), title="Arguments", description="Arguments of the runtime.")


class Environment(Section):
    """The software that head and workers run in."""

    python: PythonPath = Field(
        "kernel",
        title="Python",
        description="`kernel`: what the user chooses, at first the calling kernel's Python; or the"
        " absolute path of a Python.",
    )
    container: Container | None = Field(
        None, title="Container", description="Container that workers run in; empty: none."
    )
    prologue: tuple[Text, ...] = Field(
        (),
        title="Prologue",
        description="Shell lines that run in the job before the workers start.",
    )
    variables: dict[VariableName, Text] = Field(
        {}, title="Variables", description="Environment variables of the workers. No secrets here."
    )


class Limits(Section):
    """How much one user may start."""

    workers: PositiveOrNone = Field(
        None, title="Workers", description="Most workers of one cluster; empty: no limit."
    )
    clusters: PositiveOrNone = Field(
        None,
        title="Clusters",
        description="Most clusters of one user from this profile at a time; empty: no limit.",
    )


class Policy(Section):
    """When a cluster ends by itself, and how it mends itself."""

    idle_timeout: DurationOrNone = Field(
        None,
        title="Idle time-out",
        description="Stop when no task ran for this long; empty: never.",
    )
    no_client_timeout: DurationOrNone = Field(
        None,
        title="No-client time-out",
        description="Stop when no client was connected for this long; empty: never.",
    )
    max_lifetime: DurationOrNone = Field(
        None,
        title="Maximum lifetime",
        description="Stop this long after the start, whatever happens; empty: never.",
    )
    replacements: Natural = Field(
        3,
        title="Replacements",
        description="How many jobs that died may be replaced before the cluster stops.",
    )
    drain_before: DurationOrNone = Field(
        None,
        title="Drain before",
        description="Move results off workers this long before their walltime ends; empty: don't.",
    )
    at_walltime: Literal["replace", "stop"] = Field(
        "replace",
        title="At walltime",
        description="`replace`: submit a new job for one that ran out of walltime; `stop`: don't.",
    )


class Access(Section):
    """How to reach the site from outside."""

    login_hops: tuple[LoginHop, ...] = Field(
        (),
        title="Login hops",
        description="Hosts to go through in this order, such as `user@login.example.org:8022`.",
    )
