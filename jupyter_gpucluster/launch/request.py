"""The request of a start: one object from a front end to the cluster's record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ..core.cluster import Target
from ..core.fast_dataclass import frozen


@frozen
class Request:
    """A user's request for a cluster; a preview and the doctor take the same."""

    profile: str
    """The profile's name."""
    name: str | None = None
    """The cluster's name; None = the profile's and a number."""
    target: Target | None = None
    """The number of workers; None = what the profile and the machine suggest."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values of the profile's options."""
    python: str = ""
    """The path of a Python; empty = the kernel's, else the profile's, else the calling one."""
    kernel: str = ""
    """The name of a kernel, in place of a Python."""
    request_id: str = ""
    """Of two requests with the same one the second gets the first's cluster."""
    reuse: bool = False
    """True if a live cluster of that name, by default the profile's, is taken in place of a new
    one; it must have the requested profile, options, Python and number of workers."""
    owned: bool = False
    """True if the cluster ends with the calling process, also if that is killed."""
    allocation: str = ""
    """Number of the user's batch job to put the workers into; empty = the one we are in, if any."""
