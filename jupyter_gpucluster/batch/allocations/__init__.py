"""Batch jobs that are there already, by number: whose they are, and which nodes they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...core.job import Allocation, CommandResult
from . import lsf, oar, pbs, sge, slurm, torque


@dataclass(frozen=True)
class Dialect:
    """How one queueing system is asked about one job; it runs nothing."""

    programs: tuple[str, ...]
    """Those of the commands that tell this system from others of similar names."""
    ask: Callable[[str, str], list[str]]
    """Return the command, for a job's number and this user's name."""
    read: Callable[[str, CommandResult], Allocation | None]
    """Return what it answered about that number, None for a job that the system does not know.

    Raises `BackendUnavailable` where it did not answer.
    """
    of_process: Callable[[Mapping[str, str]], str]
    """Return the number of the job that a process with these variables is in; empty for none."""


ALLOCATIONS: dict[str, Dialect] = {
    "slurm": Dialect(("scontrol", "srun"), slurm.ask, slurm.read, slurm.of_process),
    "oar": Dialect(("oarstat",), oar.ask, oar.read, oar.of_process),
    "lsf": Dialect(("bjobs",), lsf.ask, lsf.read, lsf.of_process),
    "sge": Dialect(("qstat", "qconf"), sge.ask, sge.read, sge.of_process),
    "pbs": Dialect(("qstat", "pbs_rstat"), pbs.ask, pbs.read, pbs.of_process),
    "torque": Dialect(("qstat", "pbsdsh", "qsig"), torque.ask, torque.read, torque.of_process),
}
"""By the names of the backends.  Cobalt, HTCondor and Moab are left out: what they tell of a job
that is not ours has not been seen."""
