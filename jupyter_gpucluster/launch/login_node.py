"""Login nodes, which many users share: where one is, and what a cluster takes there."""

from __future__ import annotations

import functools
import os

from ..batch import login_systems
from ..batch.variables import surrounding_job
from ..profiles import Profile
from .sizes import Sizes

SWITCH = "JUPYTER_GPUCLUSTER_LOGIN_NODE"
"""A variable: `no` if a host with a batch system's commands is no login node."""
WORKERS = 2
SECONDS = 20 * 60.0
WORDS = "This login node, shared with others: by default 2 workers of 1 thread, for 20 minutes."


def is_login_node() -> bool:
    """Return True on a host with a batch system's commands, outside of its jobs."""
    return os.environ.get(SWITCH) != "no" and not surrounding_job() and bool(_systems())


@functools.cache
def _systems() -> tuple[str, ...]:
    return tuple(login_systems())


def default_workers(sizes: Sizes) -> int:
    """Return the workers of a cluster without a given number."""
    return min(sizes.default, WORKERS) if sizes.alone and is_login_node() else sizes.default


def sparing(profile: Profile, sizes: Sizes) -> Profile:
    """Return the profile with little for what it leaves open, if its workers share a login node."""
    if not sizes.alone or not is_login_node():
        return profile
    workers, policy = profile.workers, profile.policy
    if workers.threads == "auto":
        workers = workers.model_copy(update={"threads": 1})
    if policy.max_lifetime is None:
        policy = policy.model_copy(update={"max_lifetime": SECONDS})
    return profile.model_copy(update={"workers": workers, "policy": policy})
