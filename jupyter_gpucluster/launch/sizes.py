"""Profile and machine -> sizes: where workers run, and how many of them there may be."""

from __future__ import annotations

from dataclasses import dataclass

from ..batch import BACKENDS
from ..host.hardware import Machine
from ..host.memory_shares import LEAST_SHARE
from ..profiles import Profile

MOST_DEFAULT_WORKERS = 4


@dataclass(frozen=True)
class Sizes:
    """Place and sizes of a profile's clusters, as seen from a machine."""

    simulated: bool
    spread: bool
    """True if a launcher spreads local workers over the nodes of an allocation."""
    alone: bool
    """True if the workers share this machine, with its real cores, memory and GPUs."""
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

    @property
    def here(self) -> bool:
        """True if jobs are processes of this machine, also simulated ones."""
        return self.alone or self.simulated


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
        per_job = int(job.gpus) if gpus else job.nodes * (1 if ranks == "auto" else ranks)
    default, ceiling = 1, None
    if spread:
        default = ceiling = per_job
    elif alone and gpus:
        default = ceiling = len(machine.gpus)
    elif alone:
        default = min(machine.cpus, MOST_DEFAULT_WORKERS)
    if memory is not None and profile.workers.memory_limit == "auto":
        default = max(1, min(default, memory // LEAST_SHARE))
    return Sizes(
        simulated,
        spread,
        alone,
        gpus,
        per_job,
        memory,
        default=min(default, limit or default),
        maximum=min((x for x in (limit, ceiling) if x), default=None),
    )
