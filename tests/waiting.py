"""Wait for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 30.0
"""Far more than anything here takes, also on a busy machine."""


def until(true: Callable[[], object]) -> None:
    """Wait until something is true; the test fails where it does not become so."""
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
