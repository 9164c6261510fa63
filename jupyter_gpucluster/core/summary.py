"""The present state of a cluster (``summary.json``), and the lines of its timeline."""

from __future__ import annotations

from dataclasses import field

from .cluster import Phase, Record, Target
from .fast_dataclass import frozen
from .job import JobState
from .serialize import copied


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
    """The end of their jobs."""
    given_up: bool = False
    """True if their jobs are listed as running, but gave no sign of life for too long."""
    requeued: bool = False
    """True if the batch system put their jobs back into the queue."""
    connected: bool = True
    """True if they were ready; only then results were lost with them."""
    cause: str = ""
    waiting: int = 0
    """Replacements that wait in the queue."""
    starting: int = 0
    """Replacements that run and are not ready yet."""
    replaced: int = 0
    """Replacements that are ready."""


IDLE_NAME = "idle time-out"


@frozen
class Clock:
    """A deadline of the cluster or of a job; ``ends`` is None while it does not count."""

    name: str
    seconds: float
    ends: float | None = None
    job: str = ""
    """The job that it ends; empty = the cluster."""
    follows: bool | None = None
    """True if another job takes the place of that job; None = there is no such job."""
    kind: str = ""
    """`idle`, `no client`, `lifetime`, `idle gpus`, `head walltime`, `allocation`, `gpu hours` or
    `walltime`; empty from heads of older versions."""

    @property
    def is_idle_timeout(self) -> bool:
        """Return whether it counts while the cluster has nothing to do."""
        return self.kind == "idle" or (not self.kind and self.name == IDLE_NAME)


@frozen
class GpuReading:
    """A worker's GPU at its last reading; None = the card or its driver does not report it.

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
    """Faults that lower its clock rates: heat, power brake, hardware slowdown."""
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
    """Expected start of the first waiting job, if the batch system reports it."""
    stale_since: float | None = None
    """Since when the batch system has not answered."""
    listed: float | None = None
    """Time of the batch system's last listing of the cluster's jobs; None = not yet."""
    gpus: tuple[GpuReading, ...] = ()
    gpu_hours: float = 0.0
    """GPUs held times hours, so far."""
    gpu_words: str = ""
    """That GPUs are held and idle, in words."""
    unsaved_since: float | None = None
    """Since when the cluster's files cannot be written."""
    loss: Loss | None = None
    """The last loss of workers; None = there was none, or it is long over."""
    unaccounted: bool = False
    """True if the record has jobs whose end nothing proves."""
    tasks: int = 0
    """Tasks that clients hold; on disk 0, as are the two below."""
    tasks_done: int = 0
    busy: float | None = None
    """The share of threads that compute; None without threads."""


def summary_of(record: Record, words: str, now: float) -> Summary:
    """Return a summary of what a record alone shows."""
    known, left = record.spec.profile, record.unaccounted is not None
    return copied(Summary, record, profile=known, words=words, written=now, unaccounted=left)


@frozen
class Event:
    """One line of the timeline (``events.jsonl``)."""

    time: float
    kind: str
    message: str
    job: str = ""
