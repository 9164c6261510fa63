"""The allocation that workers are put into: the batch job that Jupyter is in, or one by number."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..batch import allocation_queries, find_backend, uses_this_machine
from ..batch.base import AllocationQuery, Backend, least
from ..batch.queue import ProcessRunner, run_aside, user_name
from ..batch.variables import amounts_in, inherited, node_lists
from ..core.cluster import HeldJob
from ..core.errors import BackendError, BackendUnavailable, InvalidInput
from ..core.job import Allocation, JobState, Share
from ..host.hardware import Machine
from ..node.node_list import OUTSIDE, allocation_hosts, expand
from ..profiles import Profile
from ..profiles.sections import Job
from .script.launchers import find_dialect

MIB = 2**20
GPUS_HERE = "GPUCLUSTER_GPUS_ON_NODE"
MEMORY_HERE = "GPUCLUSTER_MEM_PER_NODE"
"""GPUs and mebibytes of each node, of an allocation that Jupyter is not in."""
SECONDS = 20.0
"""A user waits for the answer; a Slurm without its controller takes as long."""
NUMBER = re.compile(r"\d[\w.\[\]+-]{0,80}", re.ASCII)
refused = partial(InvalidInput, detail="allocation")
OTHERWISE = "Start the cluster from inside the job instead, which needs no number."


def is_spread(profile: Profile) -> bool:
    """Return whether a launcher spreads local workers over the nodes of an allocation."""
    return uses_this_machine(profile.backend) and profile.launcher.name != "none"


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
            "The profile spreads workers over the nodes of an allocation, but this is not one.",
            hint="Name one that runs (--allocation JOB), start Jupyter inside one (salloc, qsub -I,"
            " bsub -Is, oarsub -I), or leave launcher out to use this machine alone.",
            detail="launcher",
        )
    launch_node = find_dialect(profile.launcher).has_launch_node
    if launch_node and len(hosts) > 1 and hosts[0][1] == 1 < hosts[1][1]:
        hosts = hosts[1:]
    here = os.uname().nodename.split(".")[0] in {host.split(".")[0] for host, _ in hosts}
    settled = filled(profile.job, environ, hosts, machine if here else None)
    return profile.model_copy(update={"job": settled})


def filled(
    job: Job,
    environ: Mapping[str, str],
    hosts: Sequence[tuple[str, int]],
    machine: Machine | None,
) -> Job:
    """Return the job with what an allocation has on its hosts, each given with its slots.

    Parameters
    ----------
    machine
        This machine, where it is one of the hosts.
    """
    names, nodes = amounts_in(environ), len(hosts)
    cores = number(environ, names.cores)
    if names.whole_nodes and machine is not None:
        cores = machine.cpus
    cpus = nodes * max(cores, min(slots for _, slots in hosts))
    if job.cpus is not None and job.cpus > cpus:
        raise InvalidInput(
            f"The profile asks for {job.cpus} CPU cores; this allocation has {cpus}.",
            hint="Leave job.cpus out to use them all.",
            detail="job.cpus",
        )
    gpus: int | str = job.gpus
    if gpus == "auto":
        known = number(environ, names.gpus) or number(environ, GPUS_HERE)
        gpus = nodes * (known or (len(machine.gpus) if machine else 0))
    each = number(environ, names.memory) or number(environ, MEMORY_HERE)
    mebibytes = each * nodes or number(environ, names.memory_per_core) * cpus
    memory = job.memory or mebibytes * MIB or (machine.memory * nodes if machine else None)
    return job.model_copy(
        update={"nodes": nodes, "cpus": job.cpus or cpus, "gpus": gpus, "memory": memory}
    )


def number(environ: Mapping[str, str], name: str) -> int:
    """Return the number in a variable, 0 where there is none."""
    text = environ.get(name, "")
    return int(text) if text.isdecimal() else 0


# By its number, from outside.


@dataclass(frozen=True)
class Joined:
    """An allocation that a cluster is to use, and what a process in it would find."""

    held: HeldJob
    variables: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        """Return this process's variables as they would be inside of that job."""
        return {**inherited(os.environ), **self.variables}


def join(number: str, profile: Profile) -> Joined:
    """Ask the batch system about a job, and return what the workers get there.

    Raises
    ------
    InvalidInput
        The job is unknown, another user's, not running, or the profile cannot use it.
    BackendError
        No batch system answered, or what it said makes no sense.
    """
    check_request(number, profile)
    name, found = ask(number, profile)
    backend = find_backend(name)
    title = backend.title
    check_job(backend, number, found)
    try:
        shares = [(expand(share.hosts), share) for share in found.shares]
    except ValueError as error:
        raise BackendError(
            f"{title} names nodes that cannot be used.", detail=str(error)
        ) from error
    nodes = ",".join(share.hosts for share in found.shares)
    id = found.job.id
    held = HeldJob(name, id, f"{title} job {id}", nodes, found.job.ends)
    query = allocation_queries()[name]
    plain = {} if query.nodes_variable else plain_variables(shares)
    return Joined(held, {**plain, **query.variables(id, shares)})


def held_from_inside(environ: Mapping[str, str] = os.environ) -> HeldJob | None:
    """Return the batch job that this process is in; None if there is none, or it is unknown."""
    for name, query in allocation_queries().items():
        if id := query.of_process(environ):
            hosts = ",".join(host for host, _ in allocation_hosts(environ, node_lists()))
            nodes = environ.get(query.nodes_variable) or hosts
            ends = number(environ, query.end_variable) or None
            title = find_backend(name).title
            return HeldJob(name, id, f"{title} job {id}", nodes, ends and float(ends))
    return None


def check_request(number: str, profile: Profile) -> None:
    """Refuse what is no number, and profiles that have nothing to do with allocations."""
    if not NUMBER.fullmatch(number):
        raise refused(
            f"{number[:40]!r} is not the number of a job.",
            hint="Give it as the batch system printed it, such as 1234.",
        )
    if not is_spread(profile):
        raise refused(
            "This profile submits its own jobs, so it cannot use a running one."
            if not uses_this_machine(profile.backend)
            else "This profile has no launcher, so it uses this machine only.",
            hint="Choose or write one with `backend: local` and a launcher (srun on Slurm, else"
            " ssh).",
        )
    launcher = profile.launcher
    if find_dialect(launcher).inside_only:
        raise refused(
            f"{launcher.name} starts workers only from inside the job.",
            hint=f"{OTHERWISE} From outside srun (on Slurm) and ssh work.",
        )


def ask(number: str, profile: Profile) -> tuple[str, Allocation]:
    """Return the batch system that knows the job, and its answer."""
    possible = queries_for(profile.launcher.name)
    queries = {
        name: query for name, query in possible.items() if all(map(shutil.which, query.programs))
    }
    if not queries:
        programs = ", ".join(dict.fromkeys(query.programs[0] for query in possible.values()))
        raise refused(
            f"No batch system that shows the nodes of job {number} can be asked from here"
            f" (no {programs}).",
            hint=OTHERWISE,
        )
    silent: BackendUnavailable | None = None
    for name, query in queries.items():
        runner = ProcessRunner(inherited(os.environ), seconds=SECONDS)
        try:
            found = query.read(number, run_aside(runner.run(query.ask(number, user_name()))))
        except BackendUnavailable as error:
            silent = error
            continue
        if found is not None:
            return name, found
    if silent is not None:
        raise silent
    titles = " and ".join(find_backend(name).title for name in queries)
    raise refused(
        f"{titles} has no waiting or running job {number}.",
        hint="It may have ended, or the number is wrong: look at the list of your jobs.",
    )


def queries_for(launcher: str) -> dict[str, AllocationQuery]:
    """Return the queries of the systems in whose jobs a launcher starts ranks."""
    queries = allocation_queries()
    own = {name: query for name, query in queries.items() if launcher in query.launchers}
    return own or queries


def check_job(backend: Backend, number: str, found: Allocation) -> None:
    """Refuse a job that is not the user's own, or does not run."""
    job, named = found.job, f"{backend.title} job {number}"
    if found.owner and found.owner != user_name():
        raise refused(
            f"{named} is {found.owner}'s, not yours.",
            hint="Give the number of an allocation of your own.",
        )
    if job.state is JobState.RUNNING and found.shares:
        return
    hint = "Ask for another allocation."
    if job.state in (JobState.PENDING, JobState.HELD):
        words, hint = "has not started.", "Start the cluster when the job runs."
        if job.expected_start is not None:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(job.expected_start))
            hint += f" It is expected to start at {when}."
    elif job.state is JobState.SUSPENDED:
        words, hint = "is suspended.", "Resume it first."
    elif job.state in (JobState.UNKNOWN, JobState.RUNNING):
        words, hint = "runs on nodes that the system does not show.", OTHERWISE
    else:
        words = "has ended."
    why = backend.explain(job)
    raise refused(f"{named} {words} {why}".strip(), hint=hint)


def plain_variables(shares: Sequence[tuple[list[str], Share]]) -> dict[str, str]:
    """Return what a job has in variables of our own, for systems that name nodes in a file."""
    pairs = [f"{host} {share.cpus}" for hosts, share in shares for host in hosts]
    gpus, memory = least(share.gpus for _, share in shares), least(s.memory for _, s in shares)
    found = {OUTSIDE: " ".join(pairs)}
    if gpus:
        found[GPUS_HERE] = str(gpus)
    if memory:
        found[MEMORY_HERE] = str(memory // 2**20)
    return found
