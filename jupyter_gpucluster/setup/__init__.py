"""Write profiles from what the batch systems of this host report.

Runs in the Python that has this package installed.
May import doctor, clusters and below.
"""

from __future__ import annotations

from .proposals import Proposal, System, allocation, propose, save

__all__ = ["Proposal", "System", "allocation", "propose", "save"]
