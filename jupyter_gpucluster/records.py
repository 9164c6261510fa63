"""The frozen records that travel between stages; JSON-ready, without behaviour of their own."""

# No postponed annotations here: evaluating their text takes 15 ms of each command's time.

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

RECORD_VERSION = 1
"""Version of ``record.json``; readers accept this one and older ones."""

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


@dataclass(frozen=True)
class CommandResult:
    """What a command answered; ``exit_code`` is None when it did not end in time."""

    argv: tuple[str, ...]
    exit_code: int | None
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True)
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
    directives: tuple[str, ...] = ()
    skip_directives: tuple[str, ...] = ()


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Capacity:
    """Free and total GPUs of one partition or machine."""

    partition: str
    free: int
    total: int


# What is on disk about a cluster.


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Policy:
    """When a cluster ends by itself (seconds; None = never), and how often it mends itself."""

    idle_timeout: float | None = None
    no_client_timeout: float | None = None
    max_lifetime: float | None = None
    replacements: int = 3


@dataclass(frozen=True)
class WorkerShape:
    """What each worker gets.  ``memory_limit`` is in bytes; None = no limit."""

    threads: int = 1
    memory_limit: int | None = None
    device_memory_limit: int | None = None
    """Bytes of GPU memory after which data moves to main memory; 0 = never, None = dask-cuda's
    choice."""
    per_job: int = 1
    local_directory: str = ""


@dataclass(frozen=True)
class Spec:
    """All that the starter settled; it never changes during a cluster's life."""

    profile: str
    title: str
    backend: str
    python: str
    environment: str = ""
    job: JobShape = field(default_factory=JobShape)
    worker: WorkerShape = field(default_factory=WorkerShape)
    worker_argv: tuple[str, ...] = ()
    """The worker's command; ``{name}`` stands for the worker's name."""
    variables: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    """The GPUs of this machine that a local cluster may use (index or UUID)."""
    simulated: bool = False
    encrypted: bool = True
    host: str = "127.0.0.1"
    """Address that scheduler and workers listen on; empty = the interface's, or any."""
    interface: str = ""
    scheduler_interface: str = ""
    """Interface of the scheduler's host, where its name differs from that of the workers'."""
    maximum_workers: int | None = None
    policy: Policy = field(default_factory=Policy)
    options: Mapping[str, Any] = field(default_factory=dict)
    scratch: str = ""
    """Directory of this machine that goes with the cluster."""
    survives: bool = True
    survival: str = ""
    """One sentence: whether and why the cluster outlives Jupyter."""


@dataclass(frozen=True)
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
    connected: bool = False
    """Whether a worker of this job ever reached the scheduler."""
    missing: int = 0
    """How many listings in a row lacked the job."""
    leaving: float | None = None
    """Since when we want it gone."""
    cancelled: float | None = None
    """When the queueing system was last asked to end it."""
    excused: bool = False
    """Its end costs nothing of the budget (``client.restart()`` asked for it)."""
    cause: str = ""
    """Why it ended, in a sentence."""


@dataclass(frozen=True)
class Process:
    """A process that can be told from a later one with the same number."""

    host: str
    boot_id: str
    pid: int
    start_time: int
    """Clock ticks after boot (field 22 of ``/proc/<pid>/stat``)."""


@dataclass(frozen=True)
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
    jobs: tuple[Job, ...] = ()
    head: Process | None = None
    scheduler_address: str = ""
    http_address: str = ""
    stop_requested: float | None = None
    outcome: Phase = Phase.STOPPED
    """The phase that follows `stopping`."""
    ended: float | None = None
    request_id: str = ""
    version: int = RECORD_VERSION


@dataclass(frozen=True)
class WorkerCounts:
    """Workers by how far they are; ``asked`` is the target in numbers of now."""

    asked: int = 0
    pending: int = 0
    starting: int = 0
    ready: int = 0
    lost: int = 0


@dataclass(frozen=True)
class Clock:
    """Something that ends the cluster; ``ends`` is None while it does not tick."""

    name: str
    seconds: float
    ends: float | None = None


@dataclass(frozen=True)
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
    pcie_sent: int | None = None
    pcie_received: int | None = None
    nvlink_sent: int | None = None
    nvlink_received: int | None = None
    time: float = 0.0
    trouble: str = ""
    """Why there is no reading."""


@dataclass(frozen=True)
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
    stale_since: float | None = None
    """Since when the queueing system has not answered."""
    gpus: tuple[GpuReading, ...] = ()
    gpu_hours: float = 0.0
    """GPUs held times hours, so far."""
    gpu_words: str = ""
    """That GPUs are held and idle, in words."""


@dataclass(frozen=True)
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
