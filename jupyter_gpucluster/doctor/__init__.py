"""Check a machine, a profile or a cluster before and while it is used, by a job too.

Runs in the Python that has this package installed.
May import clusters and below.
"""

from __future__ import annotations

from .checkup import WAIT_SECONDS, examine_machine, examine_profile
from .cluster import examine_cluster
from .findings import Finding, Report, Result

__all__ = [
    "WAIT_SECONDS",
    "Finding",
    "Report",
    "Result",
    "examine_cluster",
    "examine_machine",
    "examine_profile",
]
