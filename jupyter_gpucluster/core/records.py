"""The frozen records that travel between stages; JSON-ready, without behaviour of their own."""

# No postponed annotations here: evaluating their text takes 15 ms of each command's time.

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any, TypeVar

from .fast_dataclass import frozen

ON_THIS_MACHINE = frozenset({"local", "demo"})
"""Backends whose jobs are processes of the head's machine, under a job server."""

KEEPS_ENDED = frozenset({"kubernetes"})
"""Backends that list jobs which are over until somebody removes them."""

EXISTING = "existing"
"""The backend of clusters that somebody else started and that we only connect to."""

RECORD_VERSION = 1
"""Version of ``record.json``; readers accept this one and older ones."""

TOKEN_HEADER = "X-Gpucluster-Token"  # noqa: S105  # the header's name
"""What carries a cluster's token with each request to its head."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
"""What a cluster may be called."""

R = TypeVar("R")


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

ASKED = "It was asked to stop."
"""The reason of an end that somebody wanted; clocks, owners and signals give others."""


class JobState(str, Enum):
    """What a queueing system says of a job, in our words."""

    SUBMITTING = "submitting"  # the mark is on record, the answer is not
    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDING = "ending"  # over, the system still cleans up
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAIL = "node_fail"
    PREEMPTED = "preempted"
    UNKNOWN = "unknown"  # a code that our tables do not list, or ended without a trace


FINAL = frozenset(
    {
        JobState.DONE,
        JobState.FAILED,
        JobState.CANCELLED,
        JobState.TIMEOUT,
        JobState.OUT_OF_MEMORY,
        JobState.NODE_FAIL,
        JobState.PREEMPTED,
    }
)
"""States in which a job holds nothing any more."""


# What goes to and comes from a queueing system.


@frozen
class CommandResult:
    """What a command answered; ``exit_code`` is None when it did not end in time."""

    argv: tuple[str, ...]
    exit_code: int | None
    stdout: str = ""
    stderr: str = ""


@frozen
class JobShape:
    """What one job asks for.  Memory is in bytes, walltime in seconds."""

    nodes: int = 1
    gpus: int = 0
    cpus: int | None = None
    memory: int | None = None
    walltime: int | None = None
    queue: str = ""
    account: str = ""
    gpu_request: str = ""
    """How the dialect spells the request for GPUs; empty = its usual way."""
    gpu_type: str = ""
    memory_request: str = ""
    """How the dialect spells the request for memory; empty = its usual way, "none" = not at all."""
    submit_by: str = "auto"
    """How a submit command that knows two ways gets the script: ``stdin`` or ``file``."""
    directives: tuple[str, ...] = ()
    skip_directives: tuple[str, ...] = ()
    submit_args: tuple[str, ...] = ()
    """More arguments of the submit command."""
    cancel_args: tuple[str, ...] = ()
    """More arguments of the command that ends jobs."""
    ranks: int = 1
    """Processes that a launcher starts on each node."""


@frozen
class Submission:
    """One call of a submit command: ``count`` like jobs under one mark."""

    mark: str
    script: str
    count: int = 1
    worker_argv: tuple[str, ...] = ()
    """The worker's command, where the backend can start it without the script."""
    gpus: int = 0
    memory: int | None = None
    """Bytes at which one job is ended; None = never."""
    text: str = ""
    """The script itself, for commands that take it on standard input."""
    workers: int = 1
    """Workers of one job, where the backend starts them without the script."""
    arguments: tuple[str, ...] = ()
    """More arguments of the submit command."""


@frozen
class JobStatus:
    """One job as the queueing system tells it.  Times are seconds since the epoch."""

    id: str
    state: JobState
    mark: str = ""
    task: int = 0
    """Place among the jobs of its mark; a job whose id nobody heard is known by mark and task."""
    reason: str = ""
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    process: tuple[int, ...] = ()
    """Process id and start time where the job is a process of this machine."""
    devices: tuple[str, ...] = ()
    started: float | None = None
    ended: float | None = None
    expected_start: float | None = None
    ends: float | None = None
    """When the system will end a running job, where it tells."""
    hopeless: bool = False
    """Whether it waits for what can never come."""


@frozen
class Share:
    """What a batch job has on each of some nodes."""

    hosts: str
    """Their names, in the system's own short form where it has one: ``n[1-3,7]``."""
    cpus: int = 1
    gpus: int | None = None
    """None where the system does not tell."""
    memory: int | None = None
    """Bytes."""


@frozen
class Allocation:
    """A batch job that is there already, and what its queueing system gave it."""

    job: JobStatus
    owner: str
    shares: tuple[Share, ...] = ()


@frozen
class Capacity:
    """Free and total GPUs of one partition or machine."""

    partition: str
    free: int
    total: int


# What is on disk about a cluster.


@frozen
class Target:
    """How many workers the user asked for; a range where the cluster adapts."""

    minimum: int
    maximum: int

    @property
    def adaptive(self) -> bool:
        """Whether the number may move between two bounds."""
        return self.minimum != self.maximum

    def as_json(self) -> dict[str, int]:
        """Return ``{"workers": n}`` or ``{"minimum": m, "maximum": n}``."""
        if self.adaptive:
            return {"minimum": self.minimum, "maximum": self.maximum}
        return {"workers": self.maximum}


@frozen
class Policy:
    """When a cluster ends by itself (seconds; None = never), and how often it mends itself."""

    idle_timeout: float | None = None
    no_client_timeout: float | None = None
    max_lifetime: float | None = None
    replacements: int = 3
    drain_before: float | None = None
    """Seconds before its walltime at which a job's results are moved off; None = they are not."""
    at_walltime: str = "replace"
    """`replace`: another job follows one that runs out of walltime; `stop`: none does."""
    gpu_hours: float | None = None
    """Budget of GPUs held times hours."""
    idle_gpus_after: float | None = None
    idle_gpus_action: str = "warn"
    """What follows when no GPU computed for that long: `warn`, `shrink` or `stop`."""


@frozen
class WorkerShape:
    """What each worker gets.  ``memory_limit`` is in bytes; None = no limit."""

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
    """Whether a GPU worker stays on the cores next to its GPU, to which dask-cuda binds it."""


@frozen
class WorkerGroup:
    """Workers of another kind beside those that the target counts."""

    name: str
    workers: int
    """How many there are, as long as the cluster wants workers at all."""
    job: JobShape = field(default_factory=JobShape)
    worker: WorkerShape = field(default_factory=WorkerShape)


@frozen
class HeldJob:
    """The batch job of the user's own whose nodes a local cluster uses; it is not the cluster's."""

    system: str
    """The backend that knows it."""
    id: str
    name: str
    """What users call it: ``Slurm job 123``."""
    nodes: str = ""
    ends: float | None = None
    """When it was to end, as far as the starter knew."""


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
    """Whether data goes over UCX, which knows no encryption."""
    host: str = "127.0.0.1"
    """Address that scheduler and workers listen on; empty = the interface's, or any."""
    interface: str = ""
    scheduler_interface: str = ""
    """Interface of the scheduler's host, where its name differs from that of the workers'."""
    maximum_workers: int | None = None
    shared_memory: int | None = None
    """Bytes of this machine that the workers share; None where jobs have memory of their own."""
    memory_follows: bool = False
    """Whether a worker's limit is its share at any time; else it stays as it was at the start."""
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
    """Whether the head runs inside a job, beside that job's workers."""
    relayed: bool = False
    """Whether a process on the Jupyter host runs the commands of a head in a job."""
    spread: bool = False
    """Whether a local job is spread over the nodes of an allocation, by a launcher."""
    allocation: HeldJob | None = None
    """That allocation, where its queueing system can be asked about it."""
    trusted: bool = False
    """Whether the dashboard of a cluster that somebody else started may be shown."""


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
class Job:
    """One job of a cluster, from mark to end."""

    mark: str
    task: int
    state: JobState = JobState.SUBMITTING
    id: str = ""
    reason: str = ""
    nodes: tuple[str, ...] = ()
    exit_code: int | None = None
    process: tuple[int, ...] = ()
    """Process id and start time where the job is a process of this machine."""
    devices: tuple[str, ...] = ()
    submitted: float = 0.0
    started: float | None = None
    ended: float | None = None
    expected_start: float | None = None
    ends: float | None = None
    """When the queueing system will end it, where it tells."""
    held: float = 0.0
    """Seconds that it ran before it was requeued."""
    connected: bool = False
    """Whether a worker of this job ever reached the scheduler."""
    missing: int = 0
    """How many listings in a row lacked the job."""
    missing_since: float | None = None
    """Since when they lack it; kept where it was given up for that."""
    proof: str = ""
    """What proved its end: `listing`, `history`, `exit file`, `unknown id` or `walltime`."""
    absent: float | None = None
    """Since when no worker of it is connected, although one was and it is listed as running."""
    abandoned: bool = False
    """Whether it was given up, as absent for too long or hopeless; `leaving` says when."""
    leaving: float | None = None
    """Since when we want it gone."""
    relieved: float | None = None
    """Since when a successor is asked for, because its walltime ends."""
    cancelled: float | None = None
    """When the queueing system was last asked to end it."""
    excused: bool = False
    """Its end costs nothing of the budget (``client.restart()`` asked for it)."""
    cause: str = ""
    """Why it ended, in a sentence."""
    group: str = ""
    """The worker group that it belongs to; empty = the one that the target counts."""
    requeued: float | None = None
    """When its batch system last put it back into the queue although its workers were at work."""


@frozen
class Process:
    """A process that can be told from a later one with the same number."""

    host: str
    boot_id: str
    pid: int
    start_time: int
    """Clock ticks after boot (field 22 of ``/proc/<pid>/stat``)."""


@frozen
class Record:
    """What ``record.json`` holds: all that must survive every process.  Times are epoch seconds."""

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
    """How long jobs held their GPUs that are no longer listed here."""
    budget_told: bool = False
    """Whether the timeline warned that the budget of GPU-hours is nearly used up."""
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


@frozen
class WorkerCounts:
    """Workers by how far they are; ``asked`` is the target in numbers of now."""

    asked: int = 0
    pending: int = 0
    starting: int = 0
    ready: int = 0
    lost: int = 0
    ending: int = 0
    """Workers of the jobs that have not ended yet, of a cluster that stops."""


@frozen
class Loss:
    """Workers that a cluster lost together although it needed them, and their replacements."""

    time: float
    workers: int
    unit: str
    """``GPUs`` or ``workers``: what `workers` counts."""
    nodes: tuple[str, ...] = ()
    state: JobState = JobState.UNKNOWN
    """How their jobs ended."""
    given_up: bool = False
    """Whether their jobs are still listed as running, and gave no sign of life for too long."""
    requeued: bool = False
    """Whether the batch system put their jobs back into the queue."""
    connected: bool = True
    """Whether they were ready; only then results were lost with them."""
    cause: str = ""
    waiting: int = 0
    """Replacements that wait in the queue."""
    starting: int = 0
    """Replacements that run and are not ready yet."""
    replaced: int = 0
    """Replacements that are ready."""


IDLE_CLOCK = "idle time-out"
"""The clock that ticks while a cluster has nothing to do."""


@frozen
class Clock:
    """What ends the cluster, or one job of it; ``ends`` is None while it does not tick."""

    name: str
    seconds: float
    ends: float | None = None
    job: str = ""
    """The job that it ends; empty = the cluster."""
    follows: bool | None = None
    """Whether another job takes the place of that job; None = there is no such job."""


@frozen
class GpuReading:
    """What a worker's GPU did at its last look; None = the card or its driver does not tell.

    Memory is in bytes, utilisation in percent, power in watts, temperature in degrees Celsius,
    the clock in MHz, rates in bytes a second.
    """

    worker: str
    host: str = ""
    index: int | None = None
    uuid: str = ""
    name: str = ""
    mig: str = ""
    utilization: int | None = None
    memory_used: int = 0
    memory_total: int = 0
    power: float | None = None
    power_limit: float | None = None
    temperature: int | None = None
    clock: int | None = None
    slowed: tuple[str, ...] = ()
    """What holds its clocks down that should not: heat, power brake, hardware slowdown."""
    ecc_errors: int | None = None
    """Uncorrected errors since the driver was loaded."""
    xids: tuple[int, ...] = ()
    """Numbers of the errors that the driver has reported since the worker started."""
    pcie_sent: int | None = None
    pcie_received: int | None = None
    nvlink_sent: int | None = None
    nvlink_received: int | None = None
    time: float = 0.0
    trouble: str = ""
    """Why there is no reading."""


@frozen
class Summary:
    """The head's periodic word about what is true now (``summary.json``)."""

    id: str
    name: str
    profile: str
    phase: Phase
    phase_since: float
    reason: str
    words: str
    revision: int
    written: float
    workers: WorkerCounts = field(default_factory=WorkerCounts)
    target: Target = field(default_factory=lambda: Target(0, 0))
    clients: int = 0
    threads: int = 0
    memory_used: int = 0
    memory_limit: int = 0
    clocks: tuple[Clock, ...] = ()
    expected_start: float | None = None
    """When the first waiting job is expected to start, where the queueing system tells."""
    stale_since: float | None = None
    """Since when the queueing system has not answered."""
    gpus: tuple[GpuReading, ...] = ()
    gpu_hours: float = 0.0
    """GPUs held times hours, so far."""
    gpu_words: str = ""
    """That GPUs are held and idle, in words."""
    unsaved_since: float | None = None
    """Since when the cluster's files cannot be written."""
    loss: Loss | None = None
    """The last loss of workers; None = there was none, or it is long over."""


@frozen
class Event:
    """One line of the timeline (``events.jsonl``)."""

    time: float
    kind: str
    message: str
    job: str = ""


# JSON.


def to_json(value: Any) -> Any:
    """Turn a record into what ``json.dumps`` takes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(v) for v in value]
    return value


def from_json(kind: type[R], data: Mapping[str, Any]) -> R:
    """Build a record of a kind; keys that the kind lacks are dropped, so older and newer ones read.

    Raises
    ------
    ValueError, TypeError, KeyError
        Where the data does not fit the kind.
    """
    hints = _hints(kind)  # type: ignore[arg-type]  # classes hash; the stubs ask a type variable
    values = {
        f.name: _convert(hints[f.name], data[f.name])
        for f in dataclasses.fields(kind)  # type: ignore[arg-type]  # kind is one of the dataclasses above
        if f.name in data
    }
    return kind(**values)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    hints = {f.name: f.type for f in dataclasses.fields(kind)}
    if any(isinstance(hint, str) for hint in hints.values()):  # a module with postponed annotations
        return typing.get_type_hints(kind)
    return hints


def _convert(hint: Any, value: Any) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _convert(next(a for a in args if a is not type(None)), value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"expected a list, got {type(value).__name__}")
        return tuple(_convert(args[0], v) for v in value)
    if origin is not None:  # Mapping[str, ...]
        if not isinstance(value, Mapping):
            raise TypeError(f"expected an object, got {type(value).__name__}")
        return dict(value)
    if isinstance(hint, type):
        if dataclasses.is_dataclass(hint):
            return from_json(hint, value)
        if issubclass(hint, Enum):
            return hint(value)
        if hint is float and isinstance(value, int):
            return float(value)
        if not isinstance(value, hint):
            raise TypeError(f"expected {hint.__name__}, got {type(value).__name__}")
    return value
