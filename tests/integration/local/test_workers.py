"""One worker of a cluster is restarted, or given back."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Target
from jupyter_gpucluster.core.errors import ClusterConflict

from .conftest import start_ready
from .driving import until


def test_a_worker_is_given_back_and_another_restarted(clusters: Clusters) -> None:
    view = start_ready(clusters, workers=2)
    one, two = clusters.workers(view.id)
    assert one["memory_limit"] > one["memory_used"] > 0
    assert (one["can_be_dropped"], one["per_job"]) == (True, 1)
    assert clusters.update(view.id, drop=one["name"]).target == Target(1, 1)
    until(lambda: [each["name"] for each in clusters.workers(view.id)] == [two["name"]])
    assert [event.job for event in clusters.events(view.id) if event.kind == "scale"] == [
        one["job"]
    ]
    clusters.update(view.id, restart=two["name"])
    [other] = until(
        lambda: [each for each in clusters.workers(view.id) if each["name"] != two["name"]]
    )
    assert len(clusters.workers(view.id)) == 1
    assert other["job"] != two["job"]
    for change in ({"drop": one["name"]}, {"restart": "nobody"}):
        with pytest.raises(ClusterConflict):
            clusters.update(view.id, **change)
