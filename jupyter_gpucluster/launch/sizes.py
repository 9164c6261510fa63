"""Profile and machine -> sizes: where workers run, and how many; few on a shared login node."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass

from ..batch import BACKENDS, missing_programs
from ..batch.variables import surrounding_job
from ..host.hardware import Machine
from ..host.memory_shares import LEAST_SHARE
from ..profiles import Profile

MOST_DEFAULT_WORKERS = 4
SWITCH = "JUPYTER_GPUCLUSTER_LOGIN_NODE"
"""A variable: `no` if a host with a batch system's commands is no login node."""
ON_OWN_COMPUTERS = ("kubernetes",)
"""Systems whose commands are on people's own computers, too."""
LOGIN_WORKERS = 2
LOGIN_SECONDS = 20 * 60.0
LOGIN_WORDS = (
    "This login node, shared with others: by default 2 workers of 1 thread, for 20 minutes."
)


@dataclass(frozen=True)
class Sizes:
    """Place and sizes of a profile's clusters, as seen from a machine."""

    simulated: bool
    spread: bool
    """True if a launcher spreads local workers over the nodes of an allocation."""
    alone: bool
    """True if the workers share this machine, with its real cores, memory and GPUs."""
    here: bool
    """True if jobs are processes of this machine, also simulated ones."""
    gpus: bool
    """True if each worker gets a GPU."""
    per_job: int
    """Workers of one job."""
    memory: int | None
    """Bytes of this machine that local workers share; None where nodes have them."""
    default: int
    """Workers of a cluster without a given number."""
    maximum: int | None
    """The most workers of a cluster; None where only the site knows."""


def sizes_of(profile: Profile, machine: Machine) -> Sizes:
    """Return the sizes of a profile."""
    dialect, job, limit = BACKENDS.get(profile.backend), profile.job, profile.limits.workers
    simulated = dialect is not None and dialect.simulated
    local = dialect is not None and dialect.on_this_machine and not simulated
    spread = local and profile.launcher.name != "none"
    alone = local and not spread
    gpus = local and bool(machine.gpus) if job.gpus == "auto" else job.gpus > 0
    memory = min(job.memory or machine.memory, machine.memory) if alone else None
    ranks = profile.launcher.ranks_per_node
    if profile.workers.per_job != "auto":
        per_job = profile.workers.per_job
    elif alone:
        per_job = 1
    else:
        each = len(machine.gpus) if gpus else 1 if ranks == "auto" else ranks
        per_job = job.gpus if gpus and isinstance(job.gpus, int) else job.nodes * each
    default, ceiling = 1, None
    if spread:
        default = ceiling = per_job
    elif alone and gpus:
        default = ceiling = len(machine.gpus)
    elif alone:
        default = min(machine.cpus, MOST_DEFAULT_WORKERS)
    if alone and is_login_node():
        default = min(default, LOGIN_WORKERS)
    if memory is not None and profile.workers.memory_limit == "auto":
        default = max(1, min(default, memory // LEAST_SHARE))
    return Sizes(
        simulated,
        spread,
        alone,
        alone or simulated,
        gpus,
        per_job,
        memory,
        default=min(default, limit or default),
        maximum=min((x for x in (limit, ceiling) if x), default=None),
    )


def is_login_node() -> bool:
    """Return True on a host with a batch system's commands, outside of its jobs."""
    return os.environ.get(SWITCH) != "no" and not surrounding_job() and _has_commands()


@functools.cache
def _has_commands() -> bool:
    return any(
        not (each.on_this_machine or each.name in ON_OWN_COMPUTERS or missing_programs(each))
        for each in BACKENDS.every()
    )


def sparing(profile: Profile, sizes: Sizes) -> Profile:
    """Return the profile with little for what it leaves open, if its workers share a login node."""
    if not sizes.alone or not is_login_node():
        return profile
    workers, policy = profile.workers, profile.policy
    if workers.threads == "auto":
        workers = workers.model_copy(update={"threads": 1})
    if policy.max_lifetime is None:
        policy = policy.model_copy(update={"max_lifetime": LOGIN_SECONDS})
    return profile.model_copy(update={"workers": workers, "policy": policy})
