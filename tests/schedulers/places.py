"""Where a cluster may run, real or simulated, behind one face that the suite works with."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .sge_site import SgeSite
from .slurm_site import SlurmSite
from .systems import cobalt, engine, htcondor, lsf, moab, oar, pbs, torque

HELD = "Held by you"


@dataclass(frozen=True)
class Words:
    """What users are told on this system, and what a refused profile says."""

    job: str
    """The profile's ``job`` section."""
    refused: str
    """The same with something that the system refuses."""
    said: str
    """The system's own words then, with the command and its exit code."""
    command: str
    code: int
    cure: str
    waits: str
    """Beginning of the reason of a job that waits."""
    held: str = HELD
    arrays: bool = True
    """Whether several jobs are one submission."""


class Place(Protocol):
    """A queueing system, and what happens to it and to its jobs from outside."""

    backend: str
    words: Words

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which its commands are found."""

    def close(self) -> None:
        """Let no job start."""

    def open(self) -> None:
        """Let jobs start again."""

    def queue(self) -> list[str]:
        """Return the ids of the jobs that wait or run."""

    def hold(self, ids: list[str]) -> None:
        """Hold jobs that wait, as their user may."""

    def release(self, ids: list[str]) -> None:
        """Let jobs go that are held."""

    def kill(self, id: str) -> None:
        """End a job that runs."""

    def silence(self) -> contextlib.AbstractContextManager[None]:
        """Let no command be answered for a while."""


@dataclass
class SlurmPlace:
    """A real Slurm."""

    site: SlurmSite
    backend: str = "slurm"
    words: Words = field(
        default=Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: cpu}',
            refused='{cpus: 1, walltime: "00:10:00", queue: nosuch}',
            said="invalid partition specified: nosuch",
            command="$ sbatch",
            code=1,
            cure="Set job.queue to a partition of this site",
            waits="The partition takes jobs but starts none now",
        )
    )

    @property
    def environment(self) -> dict[str, str]:
        return self.site.environment

    def close(self) -> None:
        self.site.run("scontrol", "update", "PartitionName=cpu", "State=DOWN")

    def open(self) -> None:
        self.site.run("scontrol", "update", "PartitionName=cpu", "State=UP")

    def queue(self) -> list[str]:
        return self.site.queue()

    def hold(self, ids: list[str]) -> None:
        # The user's own hold; root's would be an administrator's.
        self.site.run("scontrol", "uhold", ",".join(ids))

    def release(self, ids: list[str]) -> None:
        self.site.run("scontrol", "release", ",".join(ids))

    def kill(self, id: str) -> None:
        self.site.run("scancel", id)

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """Take munged's socket away: no command can say who it is.

        A controller that does not answer is the same to us, but takes each command ten seconds.
        """
        sockets = self.site.base / "munge"
        (sockets / "sock").rename(sockets / "away")
        try:
            yield
        finally:
            (sockets / "away").rename(sockets / "sock")


@dataclass
class SgePlace:
    """A real Grid Engine."""

    site: SgeSite
    backend: str = "sge"
    words: Words = field(
        default=Words(
            job='{walltime: "00:10:00", queue: all.q}',
            refused='{walltime: "00:10:00", queue: all.q, account: nosuch}',
            said='project "nosuch" does not exist',
            command="$ qsub -terse",
            code=1,
            cure="set job.queue, job.account or the directive -pe",
            waits="Waits in the queue; `qalter -w p",
            held="Held by you, by an operator",
        )
    )

    @property
    def environment(self) -> dict[str, str]:
        return self.site.environment

    def close(self) -> None:
        self.site.run("qmod", "-d", "all.q")

    def open(self) -> None:
        self.site.run("qmod", "-e", "all.q")

    def queue(self) -> list[str]:
        return self.site.queue()

    def hold(self, ids: list[str]) -> None:
        self.site.run("qhold", *ids)

    def release(self, ids: list[str]) -> None:
        self.site.run("qrls", *ids)

    def kill(self, id: str) -> None:
        self.site.run("qdel", id)

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """Shut the master down; the jobs go on."""
        self.site.stop_qmaster()
        try:
            yield
        finally:
            self.site.start_qmaster()


@dataclass
class SimulatedPlace:
    """Programs that stand in for a system which cannot be had; the jobs are real processes."""

    base: Path
    backend: str
    words: Words
    programs: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        folder = engine.install(self.base, self.backend, self.programs)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def close(self) -> None:
        with engine.opened(self.base) as site:
            site.slots = 0

    def open(self) -> None:
        with engine.opened(self.base) as site:
            site.slots = 8

    def living(self) -> dict[str, tuple[int, int]]:
        """Return number and task of each job that waits or runs, by id."""
        with engine.opened(self.base) as site:
            return {f"{job.number}.{job.task}": (job.number, job.task) for job in site.living()}

    def queue(self) -> list[str]:
        return list(self.living())

    def set_state(self, ids: list[str], state: str) -> None:
        places = [place for id, place in self.living().items() if id in ids]
        with engine.opened(self.base) as site:
            for job in site.living():
                if (job.number, job.task) in places:
                    job.state = state

    def hold(self, ids: list[str]) -> None:
        self.set_state(ids, "held")

    def release(self, ids: list[str]) -> None:
        self.set_state(ids, "waiting")

    def kill(self, id: str) -> None:
        place = self.living()[id]
        with engine.opened(self.base) as site:
            site.end(job for job in site.living() if (job.number, job.task) == place)

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        for silent in (True, False):
            with engine.opened(self.base) as site:
                site.silent = silent
            if silent:
                yield


BATCH = '{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: batch}'
ELSEWHERE = '{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: nosuch}'
SIMULATED = {
    "pbs": (
        pbs.PROGRAMS,
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00"}',
            refused='{cpus: 1, memory: 500 MiB, walltime: "200:00:00"}',
            said="Job violates queue and/or server resource limits",
            command="$ qsub",
            code=188,
            cure="job.walltime below the queue's limits",
            waits="Waits until enough GPUs are free",
        ),
    ),
    "torque": (
        torque.PROGRAMS,
        Words(
            job=BATCH,
            refused=ELSEWHERE,
            said="submit error (Unknown queue MSG=cannot locate queue)",
            command="$ qsub",
            code=170,
            cure="Set job.queue to a queue of this site",
            waits="Waits in the queue",
        ),
    ),
    "moab": (
        moab.PROGRAMS,
        Words(
            job=BATCH,
            refused=ELSEWHERE,
            said="Unknown queue MSG=cannot locate queue",
            command="$ msub",
            code=1,
            cure="Set job.queue to a queue of this site",
            waits="Waits in the queue; `checkjob Moab.",
            arrays=False,
        ),
    ),
    "lsf": (
        lsf.PROGRAMS,
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00"}',
            refused=ELSEWHERE,
            said="nosuch: No such queue. Job not submitted.",
            command="$ bsub",
            code=255,
            cure="Set job.queue to a queue of this site (see: bqueues)",
            waits="Not enough free GPUs",
        ),
    ),
    "htcondor": (
        htcondor.PROGRAMS,
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00"}',
            refused='{cpus: 1, memory: 500 MiB, account: nosuch, walltime: "00:10:00"}',
            said="ERROR: nosuch is not a valid accounting group",
            command="$ condor_submit",
            code=1,
            cure="Set job.account to an accounting group of yours",
            waits="Waits for a machine that fits and is free",
        ),
    ),
    "cobalt": (
        cobalt.PROGRAMS,
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: full-node}',
            refused=ELSEWHERE,
            said="queue nosuch does not exist",
            command="$ qsub --mode script",
            code=1,
            cure="Set job.queue to a queue of this site (see: qstat -Q)",
            waits="Waits in the queue",
            arrays=False,
        ),
    ),
    "oar": (
        oar.PROGRAMS,
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: default}',
            refused=ELSEWHERE,
            said="ERROR : The queue nosuch does not exist",
            command="$ oarsub",
            code=248,
            cure="Set job.queue to a queue of this site",
            waits="Waits in the queue",
            held="Held: release it with `oarresume`",
        ),
    ),
}
SYSTEMS = ("slurm", "sge", *SIMULATED)
