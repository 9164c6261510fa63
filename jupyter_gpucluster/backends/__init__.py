"""The registry of backends: a new one is its file and a line here."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidInput
from ..records import Submission
from .base import Backend
from .cobalt import Cobalt
from .demo import Demo
from .htcondor import HTCondor
from .htcondor import elsewhere as on_another_schedd
from .local import Local
from .lsf import Lsf
from .moab import Moab
from .oar import Oar
from .pbs import Pbs
from .sge import Sge
from .slurm import Slurm
from .slurm import elsewhere as on_another_slurm
from .torque import Torque

BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        Local(),
        Demo(),
        Slurm(),
        Oar(),
        Sge(),
        Moab(),
        Torque(),
        Pbs(),
        Cobalt(),
        HTCondor(),
        Lsf(),
    )
}
WAYS_OUT = {
    "kubernetes": "Let the Dask operator or Dask's Helm chart start the scheduler and attach to it"
    " with `backend: existing`; a JupyterLab in a pod has what the pod has with `backend: local`.",
    "ssh": "Let `dask-ssh` start the scheduler and attach to it with `backend: existing`; the nodes"
    " of a batch job are reached with `backend: local` and `launcher: ssh`.",
}
"""Of systems that a profile may name and no dialect speaks yet."""

REHEARSALS = {"slurm": ("--test-only",), "sge": ("-w", "v")}
"""Options with which a submit command says what would become of a job, and submits nothing."""


def find_backend(name: str) -> Backend:
    """Return the backend of that name.

    Raises
    ------
    InvalidInput
        There is none.
    """
    try:
        return BACKENDS[name]
    except KeyError:
        # Profiles may already be written for systems to come, and checked; and one that attaches
        # to a scheduler needs no dialect.
        known = ", ".join(sorted([*BACKENDS, "existing"]))
        raise InvalidInput(
            f"This version cannot start clusters by {name!r} yet.",
            hint=WAYS_OUT.get(name, f"It has {known}."),
            detail="backend",
        ) from None


def submit_command(backend: Backend, submission: Submission) -> list[str]:
    """Return the command that submits, with the profile's own arguments."""
    program, *rest = backend.submit(submission)
    return [program, *submission.arguments, *rest]


def cancel_command(backend: Backend, ids: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the command that ends jobs, with the profile's own arguments."""
    program, *rest = backend.cancel(ids)
    return [program, *arguments, *rest]


def elsewhere(
    name: str, directives: Sequence[str], arguments: Sequence[str] = ()
) -> dict[str, str]:
    """Return the variables by which commands find jobs that are sent elsewhere.

    A script of Slurm's may name another of its clusters; what lists and cancels does not read it.
    Neither does it know the arguments of the submit command.
    """
    if name == "slurm":
        return on_another_slurm(directives, arguments)
    return on_another_schedd(arguments) if name == "htcondor" else {}
