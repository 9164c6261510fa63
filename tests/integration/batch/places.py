"""Sites, real or simulated, behind one interface for the suite."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jupyter_gpucluster.core.job import Job

from .real_site import RealSite
from .systems import cobalt, engine, htcondor, lsf, pbs, torque

HELD = "Held by you"


@dataclass(frozen=True)
class Words:
    """Messages for users on this system, and of a refused profile."""

    job: str
    """The profile's ``job`` section."""
    refused: str
    """The same with something that the system refuses."""
    said: str
    """The system's own words then, with the command and its exit code."""
    command: str
    code: int
    fix: str
    waits: str
    """Beginning of the reason of a job that waits."""
    held: str = HELD
    arrays: bool = True
    """True if several jobs are one submission."""


@dataclass(frozen=True)
class Commands:
    """Commands of an administrator or a user; ids of jobs are appended."""

    close: str
    """Let no job start."""
    open: str
    hold: str
    """Hold jobs that wait."""
    release: str
    kill: str
    """End a job that runs."""


@dataclass
class RealPlace:
    """A real batch system, and what happens to it and to its jobs from outside."""

    site: RealSite
    backend: str
    words: Words
    commands: Commands

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables by which its commands are found."""
        return self.site.environment

    def close(self) -> None:
        """Let no job start."""
        self.site.run(*self.commands.close.split())

    def open(self) -> None:
        """Let jobs start again."""
        self.site.run(*self.commands.open.split())

    def queue(self) -> list[str]:
        """Return the ids of the jobs that wait or run."""
        return self.site.queue()

    def hold(self, ids: list[str]) -> None:
        """Hold jobs that wait, as their user."""
        self.as_their_user(self.commands.hold, *ids)

    def release(self, ids: list[str]) -> None:
        """Let jobs go that are held."""
        self.as_their_user(self.commands.release, *ids)

    def kill(self, id: str) -> None:
        """End a job that runs, as its user."""
        self.as_their_user(self.commands.kill, id)

    def as_their_user(self, command: str, *ids: str) -> None:
        """Do what the owner of jobs may do to them."""
        self.site.run(*command.split(), *ids, as_user=self.site.user)

    def silence(self) -> contextlib.AbstractContextManager[None]:
        """Let no listing be answered for a while."""
        return self.site.silence()


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

    def left(self) -> list[str]:
        """Return what is there of jobs; some systems keep the ended ones until they are removed."""
        return self.queue()

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
    def doing_to(self, *jobs: Job) -> Iterator[tuple[engine.Site, list[engine.Job]]]:
        """Open the site to do something to jobs of a cluster's record."""
        named = [(job.mark, job.task) for job in jobs]
        with engine.opened(self.base) as site:
            yield site, [job for job in site.living() if (job.name, job.task) in named]

    @contextlib.contextmanager
    def lies(self, left_out: str) -> Iterator[None]:
        """Let listings leave jobs out, with exit code 0."""
        for lies in (left_out, ""):
            with engine.opened(self.base) as site:
                site.lies = lies
            if lies:
                yield

    @contextlib.contextmanager
    def deafness(self) -> Iterator[None]:
        """Let cancels end no job, with exit code 0."""
        with engine.opened(self.base) as site:
            site.deaf = True
        try:
            yield
        finally:
            with engine.opened(self.base) as site:
                site.deaf = False

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        for silent in (True, False):
            with engine.opened(self.base) as site:
                site.silent = silent
            if silent:
                yield


BATCH = '{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: batch}'
ELSEWHERE = '{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: nosuch}'
REAL = {
    "slurm": (
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: cpu}',
            refused='{cpus: 1, walltime: "00:10:00", queue: nosuch}',
            said="invalid partition specified: nosuch",
            command="$ sbatch",
            code=1,
            fix="Set job.queue to a partition of this site",
            waits="The partition takes jobs but starts none now",
        ),
        Commands(
            close="scontrol update PartitionName=cpu State=DOWN",
            open="scontrol update PartitionName=cpu State=UP",
            hold="scontrol hold",
            release="scontrol release",
            kill="scancel",
        ),
    ),
    "sge": (
        Words(
            job='{walltime: "00:10:00", queue: all.q, directives: ["-r y"]}',
            refused='{walltime: "00:10:00", queue: all.q, account: nosuch}',
            said='project "nosuch" does not exist',
            command="$ qsub -terse",
            code=1,
            fix="set job.queue, job.account or the directive -pe",
            waits="Waits in the queue; `qalter -w p",
            held="Held by you, by an operator",
        ),
        Commands(
            close="qmod -d all.q",
            open="qmod -e all.q",
            hold="qhold",
            release="qrls",
            kill="qdel",
        ),
    ),
    "oar": (
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: default}',
            refused=ELSEWHERE,
            said="ERROR : The queue nosuch does not exist",
            command="$ oarsub",
            code=248,
            fix="Set job.queue to a queue of this site",
            waits="Waits in the queue",
            held="Held: release it with `oarresume`",
        ),
        Commands(
            close="oarnotify -d default",
            open="oarnotify -e default",
            hold="oarhold",
            release="oarresume",
            kill="oardel",
        ),
    ),
}
SIMULATED = {
    "pbs": (
        pbs.PROGRAMS,
        Words(
            job='{cpus: 1, memory: 500 MiB, walltime: "00:10:00"}',
            refused='{cpus: 1, memory: 500 MiB, walltime: "200:00:00"}',
            said="Job violates queue and/or server resource limits",
            command="$ qsub",
            code=188,
            fix="job.walltime within the queue's limits",
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
            fix="Set job.queue to a queue of this site",
            waits="Waits in the queue",
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
            fix="Set job.queue to a queue of this site (see: bqueues)",
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
            fix="Set job.account to an accounting group of yours",
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
            fix="Set job.queue to a queue of this site (see: qstat -Q)",
            waits="Waits in the queue",
            arrays=False,
        ),
    ),
}
