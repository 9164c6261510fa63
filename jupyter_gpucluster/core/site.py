"""Answers of a batch system about its site: queues with GPUs, and what the user may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from .fast_dataclass import frozen


@frozen
class GpuQueue:
    """A queue and its nodes with one type of GPU; 0 and empty = the system does not report it."""

    name: str
    gpus: int = 0
    """GPUs of the largest node."""
    gpu_type: str = ""
    cpus_per_gpu: int = 0
    """Cores that each node has for each of its GPUs, at least."""
    memory_per_gpu: int = 0
    """Bytes, likewise."""
    nodes: int = 0
    whole_nodes: bool = False
    """True if each job gets all of its nodes."""
    walltime: int = 0
    """Longest walltime in seconds; -1 = no limit."""
    default_walltime: int = 0
    """Walltime of a job that requests none, in seconds; -1 = no limit."""
    most_gpus: int = 0
    """Limit of the GPUs of a job or user."""
    open_to: str = ""
    """Users that the queue accepts."""
    closed: str = ""
    """The reason why this user cannot use it."""
    accounts: tuple[str, ...] = ()
    """Accounts of the user that may be allowed; a rehearsal decides if the answers do not."""
    qos: tuple[str, ...] = ()
    """Qualities of service that the user may choose."""
    qos_needed: bool = False
    """True if a job must name one."""
    remark: str = ""
    """A sentence about its jobs."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """More keys of a profile's ``job``, such as how memory is requested."""
    address: str = ""
    """Name or address of one of the nodes."""


@frozen
class Site:
    """The answers of one batch system."""

    queues: tuple[GpuQueue, ...] = ()
    account_variables: tuple[str, ...] = ()
    """Variables that name the user's account to the commands."""
    qos: Mapping[str, str] = field(default_factory=dict)
    """Limits of each quality of service, in words."""
    qos_directive: str = ""
    """The directive that chooses one, with ``{qos}`` in it."""
    questions: Mapping[str, str] = field(default_factory=dict)
    """By key of a profile, what to ask the site, for keys that this system reports to no user."""
