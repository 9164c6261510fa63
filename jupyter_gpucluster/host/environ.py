"""Filter the environment variables passed on to heads, jobs and commands of batch systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class SystemVariables:
    """Variables of batch systems, by the beginnings of their names."""

    job: tuple[str, ...]
    """Variables of the job that a process is in."""
    steering: tuple[str, ...]
    """Variables by which users filter, format, delay or answer for client commands."""
    locating: frozenset[str]
    """Whole names of variables by which commands find their system; these stay."""
    commands: tuple[tuple[str, str], ...]
    """Names and values for each command whose answer is read."""


NOT_INHERITED = (
    # What belongs to the process that starts the cluster, not to the cluster: its secrets.
    "JUPYTERHUB_", "JUPYTER_TOKEN", "JPY_",
    # A cluster that a worker's task starts is not that worker's.
    "GPUCLUSTER_",
)  # fmt: skip
LIFETIME = "DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION"
"""Dask's own variable; ``dask cuda worker`` has no option for it."""
LEFT = "GPUCLUSTER_LEFT"
"""Seconds that a job's workers have when its script comes to start them; ranks inherit it.  Where
the script makes a lifetime of them, that is the job's own matter, too."""


def inherited(
    environment: Mapping[str, str], systems: SystemVariables, *, with_job: bool = False
) -> dict[str, str]:
    """Return the variables that a head, or a submitted job, takes over.

    Parameters
    ----------
    systems
        The variables of all batch systems.
    with_job
        Whether it works inside the batch job that this process is in.
    """
    left = (*NOT_INHERITED, *systems.steering, *(() if with_job else systems.job))
    if environment.get(LIFETIME) == f"{environment.get(LEFT)} s":
        left = (*left, LIFETIME)
    return _without(left, environment, systems)


def for_commands(environment: Mapping[str, str], systems: SystemVariables) -> dict[str, str]:
    """Return the variables of a batch system's command whose answer is read here.

    A user's settings of that command, and the job that this process may be in, do not reach it:
    they hide jobs, and change forms that are read.  What leads to the system stays.
    """
    kept = _without((*systems.steering, *systems.job), environment, systems)
    # The words that are matched, and no other form of numbers and times.
    return {**kept, "LC_ALL": "C", **dict(systems.commands)}


def _without(
    left: tuple[str, ...], environment: Mapping[str, str], systems: SystemVariables
) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name in systems.locating or not name.startswith(left)
    }
