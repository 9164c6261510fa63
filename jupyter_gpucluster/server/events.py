"""Hints on Jupyter's event stream that a cluster has changed, at most one a second for each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_events import EventLogger

SCHEMA_ID = "https://events.jupyter.org/jupyter_gpucluster/cluster_changed/v1"
"""What pages listen for; the data are ``{"id", "revision"}``."""
SCHEMA = Path(__file__).parent / "cluster_changed.yaml"
PAUSE_SECONDS = 1.0


class Hints:
    """Tells pages which clusters to ask for again.

    A page needs no request for a revision that it has.  Events are not kept for those who come
    late, and not every user may listen, so pages also poll, slowly.

    Parameters
    ----------
    logger
        The server's event logger.
    """

    def __init__(self, logger: EventLogger) -> None:
        self.logger = logger
        self.heard = True
        """Whether somebody listened to the last hint."""
        self._waiting: dict[str, int] = {}
        self._pauses: dict[str, asyncio.TimerHandle] = {}
        if SCHEMA_ID not in logger.schemas:
            logger.register_event_schema(SCHEMA)

    def tell(self, cluster_id: str, revision: int) -> None:
        """Say that a cluster has changed: now, or when a second has passed since the last time."""
        if cluster_id in self._pauses:
            self._waiting[cluster_id] = revision
            return
        told = self.logger.emit(schema_id=SCHEMA_ID, data={"id": cluster_id, "revision": revision})
        self.heard = told is not None
        self._pauses[cluster_id] = asyncio.get_running_loop().call_later(
            PAUSE_SECONDS, self._resume, cluster_id
        )

    def _resume(self, cluster_id: str) -> None:
        del self._pauses[cluster_id]
        if cluster_id in self._waiting:
            self.tell(cluster_id, self._waiting.pop(cluster_id))

    def close(self) -> None:
        """Drop what has not been told yet."""
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        self._waiting.clear()
