"""A batch system and workers in memory, to play against `groups.step`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from jupyter_gpucluster.core.cluster import (
    Phase,
    Policy,
    Record,
    Spec,
    Target,
    Unaccounted,
    WorkerShape,
)
from jupyter_gpucluster.core.job import FINAL, Job, JobShape, JobState, JobStatus
from jupyter_gpucluster.head import summary
from jupyter_gpucluster.head.reconcile import groups, model
from jupyter_gpucluster.head.reconcile.model import (
    Action,
    Answer,
    Cancel,
    Finish,
    Observation,
    Submit,
)

ID = "abc123"


def a_record(
    workers: int = 2,
    *,
    policy: Policy | None = None,
    per_job: int = 1,
    gpus: int = 0,
    walltime: int | None = None,
) -> Record:
    """Return the record of a cluster that has only just been made."""
    spec = Spec(
        profile="local",
        title="This machine",
        backend="local",
        python="/usr/bin/python3",
        job=JobShape(gpus=gpus, walltime=walltime),
        worker=WorkerShape(per_job=per_job),
        policy=policy or Policy(),
    )
    return Record(
        id=ID, name="test", spec=spec, target=Target(workers, workers), created=0.0, phase_since=0.0
    )


@dataclass
class Queue:
    """The batch system's jobs."""

    jobs: dict[str, JobStatus] = field(default_factory=dict)
    submitted: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)

    def accept(self, mark: str, count: int) -> tuple[str, ...]:
        """Take a submission and return the ids of its jobs."""
        assert mark not in self.submitted, "the same mark was submitted twice"
        self.submitted.append(mark)
        ids = []
        for task in range(count):
            id = f"{7000 + len(self.jobs)}_{task}"
            self.jobs[id] = JobStatus(id, JobState.PENDING, mark, task)
            ids.append(id)
        return tuple(ids)

    def change(self, id: str, state: JobState, **changes: Any) -> None:
        """Put a job into a state."""
        self.jobs[id] = replace(self.jobs[id], state=state, **changes)

    def cancel(self, ids: Iterable[str]) -> None:
        """End jobs as asked."""
        for id in ids:
            self.cancelled.append(id)
            if self.jobs[id].state not in FINAL:
                self.change(id, JobState.CANCELLED)

    def live(self) -> list[JobStatus]:
        """Return the jobs that hold, or will hold, something."""
        return [status for status in self.jobs.values() if status.state not in FINAL]

    def listing(self) -> dict[str, JobStatus]:
        """Return what a status command lists."""
        return {id: status for id, status in self.jobs.items() if id not in self.hidden}


class Play:
    """A record, a clock, a queue that does as it is told, and workers that connect when told.

    `step` performs what the step asks for, unless the queue is deaf; answers of submissions reach
    the next step.
    """

    def __init__(self, workers: int = 2, **options: Any) -> None:
        self.record = a_record(workers, **options)
        self.queue = Queue()
        self.now = 1000.0
        self.desired = workers
        self.answers: list[Answer] = []
        self.workers: dict[str, int] = {}
        self.retired: set[str] = set()
        self.restarted: set[str] = set()
        self.volunteers: tuple[str, ...] = ()
        self.log: dict[str, str] = {}
        self.notes: list[str] = []
        """Messages of the last step in the timeline."""
        self.listing_proves = True
        """True if a job that the listing lacks has ended."""
        self.silent = False
        self.deaf = False
        """True if submissions and cancellations get no answer."""

    def step(self, seconds: float = 1.0, **seen: Any) -> list[Action]:
        """Let time pass and take one step; return its actions but for the notes."""
        self.now += seconds
        answers, self.answers = tuple(self.answers), []
        observation = Observation(
            **{
                "listing": None if self.silent else self.queue.listing(),
                "unresponsive_since": self.now if self.silent else None,
                "answers": answers,
                "workers": dict(self.workers),
                "desired": self.desired,
                "volunteers": self.volunteers,
                "retired": frozenset(self.retired),
                "restarted": frozenset(self.restarted),
                "listing_proves": self.listing_proves,
                "unproved": lambda ids: Unaccounted(
                    ids, (), "", f"To end them: cancel {' '.join(ids)}"
                ),
                "log_hint": lambda key: self.log.get(key, ""),
                **seen,
            }
        )
        self.record, actions = groups.step(self.record, observation, self.now)
        self.notes = [action.event.message for action in of(model.Note, actions)]
        if not self.deaf:
            self.perform(actions)
        self.seen = observation
        return [action for action in actions if not isinstance(action, model.Note)]

    def perform(self, actions: Iterable[Action]) -> None:
        """Do what a step asked for."""
        for action in actions:
            if isinstance(action, Submit):
                ids = self.queue.accept(action.mark, action.count)
                self.answers.append(Answer(action.mark, ids))
            elif isinstance(action, Cancel):
                self.queue.cancel(action.ids)
                self.drop_dead()

    def drop_dead(self) -> None:
        """Disconnect the workers of jobs that have ended."""
        live = {status.key for status in self.queue.live()}
        self.workers = {name: count for name, count in self.workers.items() if name in live}

    def connect(self, *keys: str) -> None:
        """Let the jobs run and their workers come; all waiting ones where none are named."""
        for status in self.queue.live():
            if not keys or status.key in keys:
                self.queue.change(status.id, JobState.RUNNING)
                self.workers[status.key] = self.record.spec.worker.per_job

    def die(self, name: str, state: JobState = JobState.FAILED, code: int | None = 1) -> None:
        """Let a job end by itself."""
        [status] = [status for status in self.queue.live() if status.key == name]
        self.queue.change(status.id, state, exit_code=code)
        self.drop_dead()

    def get_ready(self) -> None:
        """Bring the cluster to where all its workers are there."""
        self.step()
        self.step()
        self.connect()
        self.step()

    def stop(self) -> None:
        """Ask the cluster to stop."""
        self.record = replace(self.record, stop_requested=self.now)

    def job(self, name: str) -> Job:
        """Return a job of the record."""
        return {job.key: job for job in self.record.jobs}[name]

    def phase(self) -> Phase:
        """Return the record's phase of now."""
        return self.record.phase

    def alive(self) -> list[str]:
        """Return the keys of the record's jobs that live."""
        return [job.key for job in self.record.jobs if not job.is_over]

    @property
    def words(self) -> str:
        """The cluster's text about itself."""
        return summary.summarise(self.record, self.seen, self.now).words

    @property
    def reason(self) -> str:
        """Why the cluster is as it is, as its summary has it."""
        return summary.summarise(self.record, self.seen, self.now).reason


def unanswered(workers: int = 2, **options: Any) -> Play:
    """Return a cluster whose first submission was sent, and that no system answers."""
    play = Play(workers, **options)
    play.deaf = True
    play.step()
    return play


def waiting(workers: int = 2, **options: Any) -> Play:
    """Return a cluster all of whose jobs wait in the queue."""
    play = Play(workers, **options)
    play.step()
    play.step()
    return play


def ready(workers: int = 2, **options: Any) -> Play:
    """Return a cluster all of whose workers are connected."""
    play = Play(workers, **options)
    play.get_ready()
    return play


def finished(actions: Iterable[Action]) -> bool:
    """Tell whether a step ended the cluster."""
    return any(isinstance(action, Finish) for action in actions)


def of(kind: type, actions: Iterable[Action]) -> list[Any]:
    """Return the actions of a kind."""
    return [action for action in actions if isinstance(action, kind)]
