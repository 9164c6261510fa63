"""Inside an allocation: the nodes, cores and GPUs of the batch job that workers are put into."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ..batch import uses_this_machine
from ..batch.base import Amounts
from ..batch.variables import amounts_in, node_lists
from ..core.errors import InvalidInput
from ..host.hardware import Machine
from ..node.node_list import allocation_hosts
from ..profiles import Profile
from .script.launchers import find_dialect

MIB = 2**20
GPUS_HERE = "GPUCLUSTER_GPUS_ON_NODE"
MEMORY_HERE = "GPUCLUSTER_MEM_PER_NODE"
"""GPUs and mebibytes of each node, of an allocation that Jupyter is not in."""


def is_spread(profile: Profile) -> bool:
    """Return whether a launcher spreads local workers over the nodes of an allocation."""
    return uses_this_machine(profile.backend) and profile.launcher.name != "none"


def is_alone(profile: Profile) -> bool:
    """Return whether the workers share this machine, with its real cores, memory and GPUs."""
    return uses_this_machine(profile.backend) and profile.launcher.name == "none"


def in_allocation(
    profile: Profile, machine: Machine, environ: Mapping[str, str] = os.environ
) -> Profile:
    """Return the profile with what the allocation holds, where it is to be spread over one.

    Raises
    ------
    InvalidInput
        There is no allocation, or it holds less than the profile asks for.
    """
    if not is_spread(profile):
        return profile
    try:
        hosts = allocation_hosts(environ, node_lists())
    except ValueError as error:
        raise InvalidInput(str(error), detail="launcher") from error
    if not hosts:
        raise InvalidInput(
            "The profile spreads workers over the nodes of an allocation, and this is none.",
            hint="Name one that runs (--allocation JOB), start Jupyter inside one (salloc, qsub -I,"
            " bsub -Is, oarsub -I), or leave launcher out to use this machine alone.",
            detail="launcher",
        )
    launch_node = find_dialect(profile.launcher).has_launch_node
    if launch_node and len(hosts) > 1 and hosts[0][1] == 1 < hosts[1][1]:
        hosts = hosts[1:]
    nodes = len(hosts)
    here = os.uname().nodename.split(".")[0] in {host.split(".")[0] for host, _ in hosts}
    job = profile.job
    names = amounts_in(environ)
    cpus = cores_of(names, environ, hosts, machine if here else None) * nodes
    if job.cpus is not None and job.cpus > cpus:
        raise InvalidInput(
            f"The profile asks for {job.cpus} CPU cores; this allocation has {cpus}.",
            hint="Leave job.cpus out to use them all.",
            detail="job.cpus",
        )
    gpus: int | str = job.gpus
    if gpus == "auto":
        known = number(environ, names.gpus) or number(environ, GPUS_HERE)
        gpus = nodes * (known or (len(machine.gpus) if here else 0))
    memory = job.memory or memory_of(names, environ, nodes, cpus)
    if memory is None and here:
        memory = machine.memory * nodes
    settled = job.model_copy(
        update={"nodes": nodes, "cpus": job.cpus or cpus, "gpus": gpus, "memory": memory}
    )
    return profile.model_copy(update={"job": settled})


def cores_of(
    names: Amounts,
    environ: Mapping[str, str],
    hosts: Sequence[tuple[str, int]],
    machine: Machine | None,
) -> int:
    """Return the cores that the smallest node has in the allocation.

    Parameters
    ----------
    names
        Variables of the allocation's batch system.
    hosts
        Its hosts, each with its slots.
    machine
        This machine, where it is one of them.
    """
    slots = min(count for _, count in hosts)
    if names.whole_nodes and machine is not None:
        return max(slots, machine.cpus)
    return max(slots, number(environ, names.cores))


def memory_of(names: Amounts, environ: Mapping[str, str], nodes: int, cpus: int) -> int | None:
    """Return the bytes that the allocation has on all nodes, None where nothing tells."""
    if each := number(environ, names.memory) or number(environ, MEMORY_HERE):
        return each * nodes * MIB
    if each := number(environ, names.memory_per_core):
        return each * cpus * MIB
    return None


def number(environ: Mapping[str, str], name: str) -> int:
    """Return the number in a variable, 0 where there is none."""
    text = environ.get(name, "")
    return int(text) if text.isdecimal() else 0
