"""Write profiles from what the batch systems of this host report.

Runs in the Python that has this package installed.
May import doctor, clusters and below.
"""

from __future__ import annotations

from .desk import Desk
from .proposals import Proposal, System, allocation, propose, save

__all__ = ["Desk", "Proposal", "System", "allocation", "propose", "save"]
