"""What can be wrong with a place before anything is started there: checks, by a job too."""

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
