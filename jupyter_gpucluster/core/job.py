"""Jobs: what is submitted, what a batch system reports, and what the record keeps."""

from __future__ import annotations

from enum import Enum

from .fast_dataclass import frozen, named


class JobState(str, Enum):
    """The state of a job in a batch system, in our terms."""

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
WAITING = frozenset({JobState.SUBMITTING, JobState.PENDING, JobState.HELD})
"""States of a job that holds nothing yet."""


@frozen
class CommandResult:
    """The answer of a command; ``exit_code`` is None if it did not end in time."""

    argv: tuple[str, ...]
    exit_code: int | None
    stdout: str = ""
    stderr: str = ""


@frozen
class JobShape:
    """Resources of one job.  Memory is in bytes, walltime in seconds."""

    nodes: int = 1
    gpus: int = 0
    cpus: int | None = None
    memory: int | None = None
    walltime: int | None = None
    queue: str = ""
    account: str = ""
    gpu_request: str = ""
    """The dialect's spelling of the request for GPUs; empty = its usual one."""
    gpu_type: str = ""
    memory_request: str = ""
    """The dialect's spelling of the request for memory; empty = its usual one, "none" = none."""
    submit_by: str = "auto"
    """The input of a submit command that accepts two: ``stdin`` or ``file``."""
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
    """One job as the batch system tells it.  Times are seconds since the epoch."""

    id: str
    state: JobState
    mark: str = ""
    task: int = 0
    """Place among the jobs of its mark; a job without a known id is known by mark and task."""
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
    """The planned end of a running job, if the system reports it."""
    unsatisfiable: bool = named("hopeless", default=False)
    """True if it waits for resources that can never come."""

    @property
    def key(self) -> str:
        """Return the job's name within its cluster."""
        return f"{self.mark}_{self.task}"


@frozen
class Share:
    """Resources of a batch job on each of some nodes."""

    hosts: str
    """Their names, in the system's own short form where it has one: ``n[1-3,7]``."""
    cpus: int = 1
    gpus: int | None = None
    """None where the system does not tell."""
    memory: int | None = None
    """Bytes."""


@frozen
class Allocation:
    """A batch job that is there already, and what its batch system gave it."""

    job: JobStatus
    owner: str
    shares: tuple[Share, ...] = ()


@frozen
class Capacity:
    """Free and total GPUs of one partition or machine."""

    partition: str
    free: int
    total: int


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
    """Its planned end, if the batch system reports it."""
    held: float = 0.0
    """Seconds that it ran before it was requeued."""
    connected: bool = False
    """True if a worker of this job ever reached the scheduler."""
    missing: int = 0
    """The number of listings in a row that lacked the job."""
    missing_since: float | None = None
    """Since when they lack it; kept where it was given up for that."""
    proof: str = ""
    """The proof of its end: `listing`, `history`, `exit file` or `unknown id`.  Records of older
    versions have `walltime`, too."""
    disconnected_since: float | None = named("absent", default=None)
    """Since when no worker of it is connected, although one was and it is listed as running."""
    given_up: bool = named("abandoned", default=False)
    """True if it was given up, as disconnected for too long or unsatisfiable; `retiring_since` has
    the time."""
    retiring_since: float | None = named("leaving", default=None)
    """Since when we want it gone."""
    successor_requested_at: float | None = named("relieved", default=None)
    """Since when a successor is asked for, because its walltime ends."""
    without_successor_since: float | None = named("unfollowed", default=None)
    """Since when no successor is asked for, because no task ran lately."""
    cancelled: float | None = None
    """Time of the last cancel command."""
    not_counted: bool = named("excused", default=False)
    """Its end costs nothing of the budget (``client.restart()`` asked for it)."""
    cause: str = ""
    """Why it ended, in a sentence."""
    group: str = ""
    """The worker group that it belongs to; empty = the one that the target counts."""
    requeued: float | None = None
    """Time of the last requeue by its batch system although its workers were at work."""

    @property
    def key(self) -> str:
        """Return the job's name within its cluster, which is also its (first) worker's name."""
        return f"{self.mark}_{self.task}"

    @property
    def is_over(self) -> bool:
        """Return whether it has ended, or never was: it holds nothing, and will hold nothing."""
        return self.ended is not None or self.state in FINAL
