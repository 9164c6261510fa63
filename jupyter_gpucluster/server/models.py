"""Clusters as REST shows them; texts are kept, since most clusters stay as they were."""

from __future__ import annotations

import hashlib
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
        self._texts: dict[str, tuple[ClusterView, str, str]] = {}

    def model(self, view: ClusterView) -> dict[str, Any]:
        """Return a cluster ready for JSON."""
        alive = view.scheduler_address and view.phase not in ENDED | {Phase.UNREACHABLE}
        dashboard = url_path_join(self.base_url, "gpucluster/dashboard", view.id) + "/"
        return {**to_json(view), "dashboard": dashboard if alive else None}

    def list(self, views: Sequence[ClusterView]) -> tuple[str, str]:
        """Return the text of a list and its ETag, which changes with what pages show."""
        known, kept_now = self._texts, {}
        for view in views:
            kept = known.get(view.id)
            if kept is None or kept[0] is not view:
                model = self.model(view)
                kept = (view, json.dumps(model), json.dumps(as_shown(model)))
            kept_now[view.id] = kept
        self._texts = kept_now
        texts = ", ".join(text for _, text, _ in kept_now.values())
        shown = hashlib.sha256("".join(shown for _, _, shown in kept_now.values()).encode())
        return f'{{"clusters": [{texts}]}}', f'"{shown.hexdigest()[:32]}"'


def as_shown(model: dict[str, Any]) -> dict[str, Any]:
    """Return a cluster with its figures as coarse as pages show them."""
    queued = model["phase"] == Phase.PENDING.value and model["workers"]["ready"] == 0
    gpus = [
        {
            "worker": gpu["worker"],
            "place": [gpu["name"], gpu["index"], gpu["host"]],
            "readings": [gpu[name] for name in ("utilization", "temperature", "ecc_errors")],
            "memory": [shown_bytes(gpu["memory_used"]), gpu["memory_total"]],
            "power": gpu["power"] and round(gpu["power"]),
            "remarks": [gpu["slowed"], gpu["xids"]],
        }
        for gpu in model["gpus"]
    ]
    hours = model["gpu_hours"]
    return {
        **model,
        "memory_used": shown_bytes(model["memory_used"]),
        "gpu_hours": round(hours, 1 if hours < 10 else 0),
        "gpus": gpus,
        "gpu_memory_used": shown_bytes(sum(gpu["memory_used"] for gpu in model["gpus"])),
        "listed": model["listed"] if queued else None,
    }


def shown_bytes(size: int) -> str:
    """Return an amount of memory as `bytes` in ``src/model/words.ts`` does."""
    power = max(0, (max(size, 1).bit_length() - 1) // 10)
    value = size / 1024**power
    return f"{value:.{1 if value < 10 and power else 0}f} {power}"
