"""A head's loop and a batch system in one process, with a clock of their own.

The dialect, the queue, the submissions and the decisions are the product's.  The jobs are entries
of `engine.Site`: each answer is written in the system's own words, and read again by the dialect.
Faults stand between a command and its answer.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.cancel import unproved
from jupyter_gpucluster.batch.queue import Queue
from jupyter_gpucluster.core.cluster import ENDED, Phase
from jupyter_gpucluster.core.job import CommandResult
from jupyter_gpucluster.core.job import Job as RecordedJob
from jupyter_gpucluster.core.summary import Summary
from jupyter_gpucluster.head import summary
from jupyter_gpucluster.head.memory import MemoryShares
from jupyter_gpucluster.head.reconcile import groups, listing
from jupyter_gpucluster.head.reconcile.model import (
    Action,
    Cancel,
    Finish,
    Note,
    Observation,
    Reported,
    Retire,
    Submit,
)
from jupyter_gpucluster.head.submissions import Submissions, VainCancels
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory

from ..head.world import ID, a_record
from ..integration.batch.systems import engine, pbs, pods, torque
from . import kubectl, slurm

PERIOD = 30.0
Fault = Callable[["World", list[str], Callable[[], CommandResult]], CommandResult]
"""Returns the answer of a command; the last argument runs it."""


@dataclass(frozen=True)
class System:
    """A batch system of the matrix."""

    backend: str
    commands: Any
    """The module that answers."""
    head: str
    """First lines of a job's script."""
    kinds: Mapping[str, str]
    """`submit`, `read` or `cancel` by command."""


SBATCH = "#SBATCH -J @MARK@\n#SBATCH -o /dev/null\n"
PBS = "#PBS -N @MARK@\n#PBS -o /dev/null\n#PBS -l walltime=24:00:00\n"
POD = "#KUBERNETES spec.restartPolicy = Never\n#KUBERNETES spec.containers[0].image = python:3.12\n"
QSUB = {"qsub": "submit", "qstat": "read", "qselect": "read", "qdel": "cancel"}
SQUEUE = dict.fromkeys(("squeue", "scontrol", "sacct"), "read")
SYSTEMS = {
    "slurm": System("slurm", slurm, SBATCH, {"sbatch": "submit", **SQUEUE, "scancel": "cancel"}),
    # It lists by id, and keeps ended jobs.
    "pbs": System("pbs", pbs, PBS, QSUB),
    # It has no history: ended jobs stay listed for some minutes.
    "torque": System("torque", torque, PBS, QSUB),
    # Its listing proves: a pod that it lacks is gone.
    "kubernetes": System(
        "kubernetes", kubectl, POD, {"create": "submit", "sh": "read", "delete": "cancel"}
    ),
}
PROVES = ("kubernetes",)
"""Systems whose complete listing proves an end by contract, so a listing without jobs is true."""


class QuietSite(engine.Site):
    """Jobs without processes."""

    def __init__(self, base: Path, now: Callable[[], float]) -> None:
        super().__init__(str(base), slots=100)
        self.now = now

    def end(self, jobs: Iterable[engine.Job], by: str = "root") -> None:
        """End jobs at once; a system that is deaf accepts the request and does nothing."""
        for job in () if self.deaf else jobs:
            if job.state != "ended":
                job.state, job.ended, job.by = "ended", self.now(), by
                job.code = -15 if job.started else 0

    def advance(self) -> None:
        """Start what there is room for, and end what is over its walltime."""
        for job in self.jobs:
            if job.state == "running" and job.walltime and self.now() - job.started > job.walltime:
                self.end([job], by="walltime")
        free = self.slots - sum(job.state in ("running", "suspended") for job in self.jobs)
        waiting = [job for job in self.jobs if job.state == "waiting" and job.ready]
        for job in waiting[: max(0, free)]:
            job.state, job.started = "running", self.now()


class World:
    """One cluster of two workers on a system of the matrix."""

    def __init__(self, system: str, base: Path, patch: pytest.MonkeyPatch, **options: Any) -> None:
        self.system = SYSTEMS[system]
        self.now = float(int(time.time()))
        clock = SimpleNamespace(time=lambda: self.now, strftime=time.strftime, gmtime=time.gmtime)
        for module in (engine, pods):
            patch.setattr(module, "time", clock)
        (base / "site" / "spool").mkdir(parents=True)
        self.site = QuietSite(base / "site", lambda: self.now)
        self.directory = ClusterDirectory(base / ID)
        self.directory.create()
        self.directory.template().write_text(f"#!/bin/bash\n{self.system.head}exec true\n")
        record = a_record(2, **options)
        spec = replace(record.spec, backend=self.system.backend)
        self.record = replace(record, spec=spec, created=self.now, phase_since=self.now)
        self.backend = find_backend(self.system.backend)
        self.queue = Queue(self.backend, self)
        memory = SimpleNamespace(make_room=_nothing, limit_of=lambda spec: None)
        self.submissions = Submissions(
            self.directory,
            self.queue,
            cast(MemoryShares, memory),
            lambda: self.record,
            cast(Any, SimpleNamespace(set=lambda: None)),
        )
        self.faults: dict[str, Fault] = {}
        """By kind of command: `submit`, `read` or `cancel`."""
        self.answered: Counter[Fault] = Counter()
        """Number of commands that each fault of `once` and `flapping` has met."""
        self.reported = Reported()
        self.seen = Observation()
        self.vain = VainCancels()
        self.events: list[str] = []
        self.mute = False
        """True if no worker connects."""
        self.dying = False
        """True if each job ends with exit code 1 once it has started."""
        self.finished = False
        self.retired: set[str] = set()
        self.largest = 0
        """The largest target so far."""

    # The batch system.

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Answer a command as the system does, with the fault of its kind."""
        words = list(argv)

        def answer() -> CommandResult:
            told = self.answer(words, stdin)
            self.site.advance()
            return CommandResult(tuple(words), told.code, _text(told.out), _text(told.err))

        fault = self.faults.get(self.kind(words))
        return fault(self, words, answer) if fault else answer()

    def answer(self, argv: list[str], stdin: str) -> engine.Answer:
        """Return the answer of the system itself."""
        if "qselect" in argv:  # PBS's search for jobs by their names
            jobs = [job for job in self.site.jobs if job.name in argv]
            ids = [pbs.id_of(job) for job in jobs]
            return pbs.qstat(self.site, ["-x", *ids]) if ids else engine.Answer()
        given = [stdin] if self.system.commands is kubectl else []
        answer: engine.Answer = self.system.commands.answer(self.site, argv[0], argv[1:], *given)
        return answer

    def kind(self, argv: Sequence[str]) -> str:
        """Return what a command is for."""
        return next(self.system.kinds[word] for word in argv if word in self.system.kinds)

    def silence(self, argv: Sequence[str]) -> CommandResult:
        """Return what a command answers while the system is down."""
        told = self.system.commands.silence("qstat" if "qselect" in argv else argv[0])
        return CommandResult(tuple(argv), told.code, _text(told.out), _text(told.err))

    def living(self) -> list[engine.Job]:
        """Return the cluster's jobs that hold, or will hold, something."""
        return [job for job in self.site.living() if job.name.startswith("gpc-")]

    def key(self, job: engine.Job) -> str:
        """Return the key under which a job is on record; a pod's name ends in its number."""
        pod = self.system.commands is kubectl
        return "_".join(job.name.rsplit("-", 1)) if pod else f"{job.name}_{job.task}"

    def keys(self) -> set[str]:
        """Return the keys of the living jobs."""
        return {self.key(job) for job in self.living()}

    # The head.

    @property
    def workers(self) -> dict[str, int]:
        """Connected workers by job."""
        running = [job for job in self.living() if job.state == "running"]
        return {} if self.mute else {self.key(job): 1 for job in running}

    async def step(self, seconds: float = PERIOD) -> None:
        """Let time pass, and take one turn of the head's loop."""
        self.now += seconds
        self.site.advance()
        for job in self.living() if self.dying else ():
            if job.started:
                job.state, job.ended, job.code = "ended", self.now, 1
        self.reported = await listing.ask(
            self.queue, self.directory, self.record, self.reported, self.now, PERIOD
        )
        listed = self.now if self.reported.listing is not None else self.seen.listed
        self.seen = Observation(
            **vars(self.reported),
            listed=listed,
            answers=self.submissions.take_answers(),
            workers=self.workers,
            retired=frozenset(self.retired),
            system=self.backend.title,
            desired=self.record.target.maximum,
            most_tasks=self.backend.most_tasks,
            explain=self.backend.explain,
            unproved=lambda ids: unproved(self.record, ids),
        )
        self.record, actions = groups.step(self.record, self.seen, self.now)
        for action in actions:
            await self.act(action)
        self.check()

    async def act(self, action: Action) -> None:
        """Do what a step asked for."""
        if isinstance(action, Note):
            self.events.append(action.event.message)
        elif isinstance(action, Submit):
            await self.submissions.send(action)
        elif isinstance(action, Cancel):
            result = await self.queue.cancel(action.ids)
            notes = self.vain.note(self.record, action.ids, result, self.backend.title, self.now)
            self.events += [note.message for note in notes]
        elif isinstance(action, Retire):
            self.retired.update(action.keys)
        elif isinstance(action, Finish):
            self.finished = True

    async def steps(self, count: int, seconds: float = PERIOD) -> None:
        """Take some turns; none after the end."""
        for _ in range(count):
            if not self.finished:
                await self.step(seconds)

    def stop(self) -> None:
        """Request the end of the cluster."""
        self.record = replace(self.record, stop_requested=self.now)

    def check(self) -> None:
        """Check what holds at any time: each job is on record or accounted for, none is doubled."""
        recorded = {job.key for job in self.record.jobs}
        assert self.keys() <= recorded
        keys = [self.key(job) for job in self.site.jobs if job.name.startswith("gpc-")]
        assert len(keys) == len(set(keys)), "a job was submitted twice"
        self.largest = max(self.largest, self.record.target.maximum)
        assert len(self.living()) <= 2 * self.largest
        if self.record.phase in ENDED:
            left = self.record.unaccounted
            assert len(self.living()) <= (len(left.ids) if left else 0)
        if self.record.phase is Phase.STOPPED:
            assert self.finished

    def alive(self) -> list[RecordedJob]:
        """Return the record's jobs that may hold something."""
        return [job for job in self.record.jobs if not job.is_over]

    @property
    def card(self) -> Summary:
        """The card's data."""
        return summary.summarise(self.record, self.seen, self.now)

    @property
    def words(self) -> str:
        """The card's first line and the reason beside it."""
        return f"{self.card.words} | {self.card.reason}"


async def _nothing(mark: str) -> None:
    """Make no room: batch jobs need none on this machine."""


def _text(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode()
