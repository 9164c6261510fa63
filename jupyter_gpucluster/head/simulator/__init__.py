"""The simulated site behind the demo profiles.

Runs in the cluster's Python.
May import core, host and head.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..local_scheduler import JobServer


def make_server(site: Path | None, *arguments: Any) -> JobServer:
    """Return the server of a demo cluster, or of a local one where there is no simulated site."""
    if site is None:
        return JobServer(*arguments)
    from .server import DemoServer  # most clusters are not simulated

    return DemoServer(*arguments, site=site)
