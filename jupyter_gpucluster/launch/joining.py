"""Join a batch job of the user's own by its number, from outside: what would be known inside it."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..batch import allocation_queries, find_backend, uses_this_machine
from ..batch.base import AllocationQuery, Backend, least
from ..batch.queue import ProcessRunner, run_aside, user_name
from ..batch.variables import inherited, node_lists
from ..core.cluster import HeldJob
from ..core.errors import BackendError, BackendUnavailable, InvalidInput
from ..core.job import Allocation, JobState, Share
from ..node.node_list import OUTSIDE, allocation_hosts, expand
from ..profiles import Profile
from .allocation import GPUS_HERE, MEMORY_HERE, is_spread
from .script.launchers import find_dialect

SECONDS = 20.0
"""A user waits for the answer; a Slurm without its controller takes as long."""
NUMBER = re.compile(r"\d[\w.\[\]+-]{0,80}", re.ASCII)
FIELD = "allocation"
OTHERWISE = "Start the cluster from inside the job instead, which needs no number."


@dataclass(frozen=True)
class Joined:
    """An allocation that a cluster is to use, and what a process in it would find."""

    held: HeldJob
    variables: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        """Return this process's variables as they would be inside of that job."""
        return {**inherited(os.environ), **self.variables}


def join(number: str, profile: Profile) -> Joined:
    """Ask the queueing system about a job, and return what the workers get there.

    Raises
    ------
    InvalidInput
        The job is unknown, somebody else's, not running, or the profile cannot use it.
    BackendError
        No queueing system answered, or what it said makes no sense.
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
    """Return the batch job that this process is in; None for none, or one nobody tells about."""
    for name, query in allocation_queries().items():
        if id := query.of_process(environ):
            hosts = ",".join(host for host, _ in allocation_hosts(environ, node_lists()))
            nodes = environ.get(query.nodes_variable) or hosts
            return HeldJob(name, id, f"{find_backend(name).title} job {id}", nodes)
    return None


def check_request(number: str, profile: Profile) -> None:
    """Refuse what is no number, and profiles that have nothing to do with allocations."""
    if not NUMBER.fullmatch(number):
        raise InvalidInput(
            f"{number[:40]!r} is not the number of a job.",
            hint="Give it as the queueing system printed it, such as 1234.",
            detail=FIELD,
        )
    if not is_spread(profile):
        raise InvalidInput(
            "This profile asks for jobs of its own, and uses no allocation that is there already."
            if not uses_this_machine(profile.backend)
            else "This profile has no launcher, and uses nothing but this machine.",
            hint="Choose or write one with `backend: local` and a launcher (srun on Slurm, else"
            " ssh).",
            detail=FIELD,
        )
    launcher = profile.launcher
    if find_dialect(launcher).inside_only:
        raise InvalidInput(
            f"{launcher.name} starts workers only from inside the job.",
            hint=f"{OTHERWISE} From outside srun (on Slurm) and ssh work.",
            detail=FIELD,
        )


def ask(number: str, profile: Profile) -> tuple[str, Allocation]:
    """Return the queueing system that knows the job, and what it says."""
    names = list(systems_here(profile.launcher.name))
    if not names:
        possible = queries_for(profile.launcher.name).values()
        programs = ", ".join(dict.fromkeys(query.programs[0] for query in possible))
        raise InvalidInput(
            f"No queueing system that tells the nodes of job {number} can be asked from here"
            f" (no {programs}).",
            hint=OTHERWISE,
            detail=FIELD,
        )
    silent: BackendUnavailable | None = None
    queries = allocation_queries()
    for name in names:
        query = queries[name]
        argv = query.ask(number, user_name())
        result = run_aside(ProcessRunner(inherited(os.environ), seconds=SECONDS).run(argv))
        try:
            found = query.read(number, result)
        except BackendUnavailable as error:
            silent = error
            continue
        if found is not None:
            return name, found
    if silent is not None:
        raise silent
    titles = " and ".join(find_backend(name).title for name in names)
    raise InvalidInput(
        f"{titles} knows no job {number} that waits or runs.",
        hint="It may have ended, or the number is wrong: look at the list of your jobs.",
        detail=FIELD,
    )


def systems_here(launcher: str) -> Iterator[str]:
    """Yield the queueing systems whose commands are on this machine."""
    for name, query in queries_for(launcher).items():
        if all(map(shutil.which, query.programs)):
            yield name


def queries_for(launcher: str) -> dict[str, AllocationQuery]:
    """Return the queries of the systems in whose jobs a launcher starts ranks."""
    queries = allocation_queries()
    own = {name: query for name, query in queries.items() if launcher in query.launchers}
    return own or queries


def check_job(backend: Backend, number: str, found: Allocation) -> None:
    """Refuse a job that is not the user's own, or does not run."""
    job, named = found.job, f"{backend.title} job {number}"
    if found.owner and found.owner != user_name():
        raise InvalidInput(
            f"{named} is {found.owner}'s, not yours.",
            hint="Give the number of an allocation of your own.",
            detail=FIELD,
        )
    if job.state is JobState.RUNNING and found.shares:
        return
    why = backend.explain(job)
    if job.state in (JobState.PENDING, JobState.HELD):
        start = ""
        if job.expected_start is not None:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(job.expected_start))
            start = f" It is expected to start at {when}."
        raise InvalidInput(
            f"{named} has not started. {why}".strip(),
            hint=f"Start the cluster when the job runs.{start}",
            detail=FIELD,
        )
    if job.state is JobState.SUSPENDED:
        raise InvalidInput(
            f"{named} is suspended. {why}".strip(), hint="Resume it first.", detail=FIELD
        )
    unknown = job.state in (JobState.UNKNOWN, JobState.RUNNING)
    raise InvalidInput(
        f"{backend.title} does not tell which nodes job {number} has."
        if unknown
        else f"{named} has ended. {why}".strip(),
        hint=OTHERWISE if unknown else "Ask for another allocation.",
        detail=FIELD,
    )


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
