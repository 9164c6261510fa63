"""Actions of simulated batch systems on jobs, and the messages for users."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_gpucluster.core.job import JobState

from .life import Life
from .places import SimulatedPlace


@dataclass(frozen=True)
class Ends:
    """Ends of jobs on a simulated system, and the messages for users."""

    memory: JobState
    memory_words: str
    walltime: JobState | None
    """None = as its script ends, which may still end well."""
    walltime_words: str
    suspends: bool = True


AT_WALLTIME = (JobState.TIMEOUT, "It reached its walltime; its results went with it.")
OVER_MEMORY = (JobState.OUT_OF_MEMORY, "It used more memory than")
ENDS = {
    "pbs": Ends(*OVER_MEMORY, *AT_WALLTIME),
    "torque": Ends(*OVER_MEMORY, *AT_WALLTIME),
    "lsf": Ends(*OVER_MEMORY, *AT_WALLTIME),
    "htcondor": Ends(*OVER_MEMORY, *AT_WALLTIME),
    # Cobalt says nothing of jobs that have ended; their scripts do, if they may end by themselves.
    "cobalt": Ends(JobState.UNKNOWN, "", None, "", suspends=False),
}


def suffer(life: Life, place: SimulatedPlace) -> None:
    """Suspend, starve, requeue and end at its walltime what runs."""
    ends = ENDS[place.backend]
    first, second, third = life.living()
    place.close()
    with place.doing_to(first) as (site, jobs):
        if ends.suspends:
            site.suspend(jobs)
    with place.doing_to(second) as (site, jobs):
        site.starve(jobs)
    with place.doing_to(third) as (site, jobs):
        site.requeue(jobs)
    life.until(lambda _: life.now(second).ended and life.now(third).state is JobState.PENDING)
    assert life.now(second).state is ends.memory
    assert ends.memory_words in life.now(second).cause
    assert (life.now(first).state is JobState.SUSPENDED) == ends.suspends
    with place.doing_to(first) as (site, jobs):
        site.resume(jobs)
        jobs[0].walltime = 0.0
    place.open()
    life.until(lambda _: life.now(first).ended and life.now(third).state is JobState.RUNNING)
    assert ends.walltime in (None, life.now(first).state)
    assert ends.walltime_words in life.now(first).cause
