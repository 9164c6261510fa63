"""Workers of two kinds on one scheduler: tasks find theirs, and both come and go together."""

from __future__ import annotations

from distributed import get_worker

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase

from .conftest import Start, WriteProfile
from .driving import client_of, ended, fixed, live_jobs, until

TWO_KINDS = """
workers: {memory_limit: 1 GiB, resources: {CARD: 1}}
groups:
  io:
    count: 1
    workers: {threads: 2, resources: {IO: 4}}
"""


def where() -> str:
    return str(get_worker().name)


def test_each_kind_of_workers_gets_its_tasks_and_is_kept_at_its_number(
    clusters: Clusters, start: Start, write_profile: WriteProfile
) -> None:
    profile = write_profile("two-kinds", TWO_KINDS)
    shown = clusters.script(profile, target=fixed(1))
    assert shown.text.count("#!/bin/sh") == 2
    assert "--resources IO=4" in shown.text
    view = start(profile)
    until(lambda: "1 of 1 io workers" in clusters.get(view.id).words)
    assert clusters.get(view.id).workers.asked == 1
    groups = {job.key: job.group for job in clusters.jobs(view.id)}
    assert sorted(groups.values()) == ["", "io"]
    with client_of(view) as client:
        ask = {"pure": False, "allow_other_workers": False}
        card = client.submit(where, resources={"CARD": 1}, **ask).result()
        io = client.submit(where, resources={"IO": 1}, **ask).result()
        assert (groups[card], groups[io]) == ("", "io")
        # The target counts the cluster's own workers only; without any there are no others.
        clusters.update(view.id, target=fixed(2))
        until(lambda: clusters.get(view.id).workers.ready == 2)
        assert sorted(job.group for job in live_jobs(clusters, view)) == ["", "", "io"]
    clusters.update(view.id, target=fixed(0))
    until(lambda: not live_jobs(clusters, view))
    clusters.update(view.id, target=fixed(1))
    until(lambda: sorted(job.group for job in live_jobs(clusters, view)) == ["", "io"])
    clusters.stop(view.id)
    over = until(lambda: ended(clusters, view))
    assert over.phase is Phase.STOPPED
