"""Batch systems: one dialect a system, and the queue that runs their commands.

Runs in the cluster's Python.
May import core, node and host.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from ..core.cluster import EXISTING, DialectCopy, Spec
from ..core.errors import InvalidInput
from ..core.job import Submission
from .base import AllocationQuery, Backend, Sent, program_of
from .registry import Registry, outside

BACKENDS = Registry(
    # In this order they are asked whether a process is in one of their jobs: PBS shares its
    # variables with Torque and Moab, which come after it; a pod may be inside of all.
    {
        "local": "local:Local",
        "demo": "demo:Demo",
        "slurm": "slurm:Slurm",
        "pbs": "pbs:Pbs",
        "torque": "torque:Torque",
        "moab": "torque:Moab",
        "lsf": "lsf:Lsf",
        "oar": "oar:Oar",
        "cobalt": "cobalt:Cobalt",
        "htcondor": "htcondor:HTCondor",
        "sge": "sge:Sge",
        "kubernetes": "kubernetes.dialect:Kubernetes",
    }
)
THIS_MACHINE = "local"
"""The backend whose jobs are processes of this machine, with its cores and GPUs."""
WAYS_OUT = {
    "ssh": "Let `dask-ssh` start the scheduler and attach to it with `backend: existing`; the nodes"
    " of a batch job are reached with `backend: local` and `launcher: ssh`.",
}
"""Of systems that a profile may name and no dialect speaks yet."""


def find_backend(name: str) -> Backend:
    """Return the backend of that name.

    Raises
    ------
    InvalidInput
        There is none, or its copy in a cluster directory was changed.
    """
    try:
        return BACKENDS[name]
    except KeyError:
        # Profiles may already be written for systems to come, and checked; and one that attaches
        # to a scheduler needs no dialect.
        known = ", ".join(sorted([*BACKENDS, *outside(), EXISTING]))
        raise InvalidInput(
            f"This version cannot start clusters by {name!r} yet.",
            hint=WAYS_OUT.get(name, f"It has {known}."),
            detail="backend",
        ) from None


def on_this_machine(name: str) -> bool:
    """Return whether the jobs of a backend are processes of the head's machine."""
    return name in BACKENDS and BACKENDS[name].on_this_machine


def is_simulated(name: str) -> bool:
    """Return whether nothing but a simulation runs the jobs of a backend."""
    return name in BACKENDS and BACKENDS[name].simulated


def uses_this_machine(name: str) -> bool:
    """Return whether the jobs of a backend have the cores and GPUs of the head's machine."""
    return on_this_machine(name) and not is_simulated(name)


def image_option(name: str) -> str:
    """Return the option of a directive that runs a job in an image; empty if there is none."""
    return BACKENDS[name].image_option if name in BACKENDS else ""


def keeps_ended(name: str) -> bool:
    """Return whether a backend lists ended jobs until they are removed."""
    return name in BACKENDS and BACKENDS[name].keeps_ended


def dialect_file(name: str) -> tuple[bytes, DialectCopy] | None:
    """Return another package's dialect and what a record holds of it; None for one of ours."""
    find_backend(name)
    return BACKENDS.sources.get(name)


def submit_command(backend: Backend, submission: Submission) -> list[str]:
    """Return the command that submits, with the profile's own arguments."""
    program, *rest = backend.submit(submission)
    return [program, *submission.arguments, *rest]


def cancel_command(backend: Backend, ids: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return the command that ends jobs, with the profile's own arguments."""
    program, *rest = backend.cancel(ids)
    return [program, *arguments, *rest]


def programs_of(backend: Backend) -> list[str]:
    """Return the programs that submit, list and cancel."""
    job = Submission("gpc-abc123-1", "/gpc-abc123-1.sh", text="#!/bin/sh\n")
    used = (backend.submit(job), backend.status("somebody", ["1"]), backend.cancel(["1"]))
    return list(dict.fromkeys(map(program_of, used)))


def missing_programs(backend: Backend) -> list[str]:
    """Return the programs of a batch system that are not on PATH."""
    return [name for name in programs_of(backend) if shutil.which(name) is None]


def installed() -> list[Backend]:
    """Return the batch systems whose commands are on this host.

    Several systems have a qsub and a qstat: of these, one counts that has its other commands, too.
    """
    there = [each for each in BACKENDS.every() if not each.on_this_machine and _has_all(each)]
    known = {name for each in there if each.survey("") for name in programs_of(each)}
    return [each for each in there if each.survey("") or not known & {*programs_of(each)}]


def _has_all(backend: Backend) -> bool:
    query = backend.allocation()
    return not missing_programs(backend) and all(map(shutil.which, query.programs if query else ()))


def elsewhere(name: str, job: Sent) -> dict[str, str]:
    """Return the variables by which commands find jobs that are sent elsewhere."""
    return BACKENDS[name].routing(job).variables if name in BACKENDS else {}


def routing_of(name: str, job: Sent, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which commands find the jobs of a cluster that starts now."""
    if name not in BACKENDS:
        return {}
    selecting = BACKENDS[name].selecting
    return {each: environment[each] for each in selecting if each in environment} | elsewhere(
        name, job
    )


def routing(spec: Spec) -> Mapping[str, str]:
    """Return the variables by which commands of every process find a cluster's jobs."""
    return elsewhere(spec.backend, spec.job) if spec.routing is None else spec.routing


def routed(spec: Spec, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which commands speak to the batch system of a cluster's start."""
    known = spec.routing is not None and spec.backend in BACKENDS
    selecting = BACKENDS[spec.backend].selecting if known else ()
    kept = {name: value for name, value in environment.items() if name not in selecting}
    return kept | dict(routing(spec))


def arguments_elsewhere(name: str, job: Sent) -> tuple[str, ...]:
    """Return the arguments by which commands that end or enter jobs find those sent elsewhere."""
    return BACKENDS[name].routing(job).arguments if name in BACKENDS else ()


def allocation_queries() -> dict[str, AllocationQuery]:
    """Return how each system is asked about a job by its number, of those where that is known."""
    found = {backend.name: backend.allocation() for backend in BACKENDS.every()}
    return {name: query for name, query in found.items() if query is not None}
