"""Clusters: what a head is started with, and what ``record.json`` holds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Any

from .fast_dataclass import frozen
from .job import Job, JobShape

EXISTING = "existing"
"""The backend of clusters that another program started and that we only connect to."""

RECORD_VERSION = 1
"""Version of ``record.json``; readers accept this one and older ones."""

TOKEN_HEADER = "X-Gpucluster-Token"  # noqa: S105  # the header's name
"""The header that carries a cluster's token with each request to its head."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
"""The pattern of a cluster's name."""


class Phase(str, Enum):
    """The one word about a cluster that a user sees."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    DEGRADED = "degraded"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


ENDED = frozenset({Phase.STOPPED, Phase.FAILED})
"""Phases that nothing leaves any more."""

BY_USER = "Stopped by you."
"""The reason of an end that the user requested; deadlines, owners and signals give others."""


@frozen
class Target:
    """The requested number of workers; a range if the cluster adapts."""

    minimum: int
    maximum: int

    @property
    def adaptive(self) -> bool:
        """Return whether the number may move between two bounds."""
        return self.minimum != self.maximum

    def as_json(self) -> dict[str, int]:
        """Return ``{"workers": n}`` or ``{"minimum": m, "maximum": n}``."""
        if self.adaptive:
            return {"minimum": self.minimum, "maximum": self.maximum}
        return {"workers": self.maximum}


@frozen
class Policy:
    """Limits after which a cluster ends (seconds; None = never), and its replacements."""

    idle_timeout: float | None = None
    no_client_timeout: float | None = None
    max_lifetime: float | None = None
    replacements: int = 3
    drain_before: float | None = None
    """Seconds before its walltime at which a job's results are moved off; None = they are not."""
    at_walltime: str = "replace"
    """`replace`: another job follows one that runs out of walltime; `stop`: none does."""
    while_used: bool = False
    """True if another job follows only while tasks run; older code reads `replace` alone."""
    gpu_hours: float | None = None
    """Budget of GPUs held times hours."""
    idle_gpus_after: float | None = None
    idle_gpus_action: str = "warn"
    """The action if no GPU computed for that long: `warn`, `shrink` or `stop`."""
    unproved_after: float = 600.0
    """Seconds for which a stopping cluster waits for proof that its jobs have ended."""


@frozen
class WorkerShape:
    """Resources of each worker.  ``memory_limit`` is in bytes; None = no limit."""

    threads: int = 1
    memory_limit: int | None = None
    device_memory_limit: int | None = None
    """Bytes of GPU memory after which data moves to main memory; 0 = never, None = dask-cuda's
    choice."""
    rmm_pool: int | None = None
    """Bytes of GPU memory that RMM takes at the start; None = no pool."""
    rmm_async: bool = False
    rmm_libraries: tuple[str, ...] = ()
    """Libraries that allocate with RMM too."""
    cudf_spill: bool = False
    per_job: int = 1
    local_directory: str = ""
    bound: bool = True
    """True if a GPU worker stays on the cores next to its GPU, to which dask-cuda binds it."""


@frozen
class WorkerGroup:
    """Workers of another kind beside those that the target counts."""

    name: str
    workers: int
    """The number of workers, as long as the cluster wants workers at all."""
    job: JobShape = field(default_factory=JobShape)
    worker: WorkerShape = field(default_factory=WorkerShape)


@frozen
class HeldJob:
    """The batch job of the user's own whose nodes a local cluster uses; it is not the cluster's."""

    system: str
    """The backend that knows it."""
    id: str
    name: str
    """Its name for users: ``Slurm job 123``."""
    nodes: str = ""
    ends: float | None = None
    """Its end, as far as the starter knew."""


@frozen
class DialectCopy:
    """The copy of another package's dialect in the cluster directory."""

    file: str
    kind: str
    """Name of its class."""
    sha256: str


class CopiedBackend(str):
    """The name of a backend whose dialect is a copy in a cluster directory.

    Whoever handles the cluster may lack the package that the dialect is from, or have another
    version of it, so the name itself leads to the copy.
    """

    path: Path
    copy: DialectCopy

    def __new__(cls, name: str, path: Path, copy: DialectCopy) -> CopiedBackend:
        made = super().__new__(cls, name)
        made.path, made.copy = path, copy
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return CopiedBackend, (str(self), self.path, self.copy)


@frozen
class SiteRules:
    """Settings of the site that hold while a cluster runs."""

    poll_period: float = 0.0
    """Seconds between two listings while jobs wait or end; 0 = the usual period."""
    gpus: int | None = None
    """Most GPUs of the user's clusters at one time; None = no limit."""
    contact: str = ""


@frozen
class Spec:
    """All that the starter settled; it never changes during a cluster's life."""

    profile: str
    title: str
    backend: str
    python: str
    environment: str = ""
    job: JobShape = field(default_factory=JobShape)
    worker: WorkerShape = field(default_factory=WorkerShape)
    groups: tuple[WorkerGroup, ...] = ()
    worker_argv: tuple[str, ...] = ()
    """The worker's command; ``{name}`` stands for the worker's name."""
    variables: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    """The GPUs of this machine that a local cluster may use (index or UUID)."""
    simulated: bool = False
    encrypted: bool = True
    ucx: bool = False
    """True if data goes over UCX, which has no encryption."""
    host: str = "127.0.0.1"
    """Address that scheduler and workers listen on; empty = the interface's, or any."""
    interface: str = ""
    scheduler_interface: str = ""
    """Interface of the scheduler's host, where its name differs from that of the workers'."""
    maximum_workers: int | None = None
    shared_memory: int | None = None
    """Bytes of this machine that the workers share; None where jobs have memory of their own."""
    memory_follows: bool = False
    """True if a worker's limit follows its share; else it stays as it was at the start."""
    policy: Policy = field(default_factory=Policy)
    options: Mapping[str, Any] = field(default_factory=dict)
    scratch: str = ""
    """Directory of this machine that goes with the cluster."""
    survives: bool = True
    survival: str = ""
    """One sentence: whether and why the cluster outlives Jupyter."""
    started_in: str = ""
    """Directory in which jobs are submitted; some systems leave files there."""
    in_job: bool = False
    """True if the head runs inside a job, beside that job's workers."""
    relayed: bool = False
    """True if a process on the Jupyter host runs the commands of a head in a job."""
    spread: bool = False
    """True if a launcher spreads a local job over the nodes of an allocation."""
    allocation: HeldJob | None = None
    """That allocation, where its batch system can be asked about it."""
    trusted: bool = False
    """True if the dashboard of a cluster that another user started may be shown."""
    dialect: DialectCopy | None = None
    """The dialect, if it is from another package."""
    routing: Mapping[str, str] | None = None
    """Variables at the start that select the batch system; None in records of older versions."""
    site: SiteRules = field(default_factory=SiteRules)
    root: str = ""
    """The state root, if the cluster directory lies elsewhere."""


def spec_of_group(spec: Spec, name: str) -> Spec:
    """Return what holds for the jobs of a group; the empty name is that of the cluster's own."""
    for group in spec.groups:
        if group.name == name:
            return dataclasses.replace(
                spec, job=group.job, worker=group.worker, worker_argv=(), groups=()
            )
    return spec


def protocol_of(spec: Spec) -> str:
    """Return how client, scheduler and workers talk, as Dask calls it."""
    return "tls" if spec.encrypted else "ucx" if spec.ucx else "tcp"


@frozen
class Process:
    """A process that can be told from a later one with the same number."""

    host: str
    boot_id: str
    pid: int
    start_time: int
    """Clock ticks after boot (field 22 of ``/proc/<pid>/stat``)."""


@frozen
class Unaccounted:
    """Jobs of an ended cluster whose end nothing proves."""

    ids: tuple[str, ...]
    tags: tuple[str, ...]
    """Their job names; a job whose submission was not answered has no id."""
    command: str
    """The command that cancels them."""
    words: str
    """The sentence about them, which is a part of the record's reason."""


@frozen
class Record:
    """The content of ``record.json``: all that outlives each process.  Times are epoch seconds."""

    id: str
    name: str
    spec: Spec
    target: Target
    created: float
    phase: Phase = Phase.STARTING
    phase_since: float = 0.0
    reason: str = ""
    revision: int = 0
    submissions: int = 0
    replaced: int = 0
    expired: int = 0
    """Jobs that reached their walltime and are not replaced, since the target was set."""
    forgotten_seconds: float = 0.0
    """GPU-seconds of jobs that are no longer listed here."""
    budget_told: bool = False
    """True if the timeline warned that the budget of GPU-hours is nearly used up."""
    idle_told: float | None = None
    """Since when the GPUs were idle that were last acted upon."""
    jobs: tuple[Job, ...] = ()
    head: Process | None = None
    scheduler_address: str = ""
    http_address: str = ""
    """``host:port`` on loopback, or ``https://host:port`` of a head that is asked off-host."""
    stop_requested: float | None = None
    outcome: Phase = Phase.STOPPED
    """The phase that follows `stopping`."""
    ended: float | None = None
    request_id: str = ""
    owner: Process | None = None
    """The program that the cluster ends with, however that program ends; None = it outlives it."""
    version: int = RECORD_VERSION
    unaccounted: Unaccounted | None = None
    """Jobs whose end nothing proved when the cluster ended; they are cancelled again and again."""


def heads_mark(id: str) -> str:
    """Return the mark of the job that the head of a cluster runs in; others count from 1."""
    return f"gpc-{id}-0"


def heads_job(record: Record) -> Job | None:
    """Return the job that the head runs in, None where it is a process of its own.

    The job is over for us when its workers are; it itself lasts as long as the head.
    """
    if not record.spec.in_job:
        return None
    return next((job for job in record.jobs if job.mark == heads_mark(record.id)), None)
