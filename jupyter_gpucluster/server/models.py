"""Clusters as REST shows them; texts are kept, since most clusters stay as they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jupyter_server.utils import url_path_join

from ..core.cluster import ENDED, Phase
from ..core.serialize import to_json

if TYPE_CHECKING:
    from ..state.view import ClusterView


class Models:
    """Makes JSON of clusters.

    Parameters
    ----------
    base_url
        The server's base URL, with a slash at its end.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._texts: dict[str, tuple[ClusterView, str]] = {}

    def model(self, view: ClusterView) -> dict[str, Any]:
        """Return a cluster ready for JSON."""
        alive = view.scheduler_address and view.phase not in ENDED | {Phase.UNREACHABLE}
        dashboard = url_path_join(self.base_url, "gpucluster/dashboard", view.id) + "/"
        return {**to_json(view), "dashboard": dashboard if alive else None}

    def list(self, views: Sequence[ClusterView]) -> str:
        """Return the text of a list; a look that found nothing new hands out the same views."""
        known, texts = self._texts, {}
        for view in views:
            kept = known.get(view.id)
            same = kept is not None and kept[0] is view
            texts[view.id] = kept if kept and same else (view, json.dumps(self.model(view)))
        self._texts = texts
        return f'{{"clusters": [{", ".join(text for _, text in texts.values())}]}}'
