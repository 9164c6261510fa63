"""Clusters on LSF, HTCondor and Cobalt, or what stands in for them: each leads one whole life."""

from __future__ import annotations

import json

import pytest
from distributed import get_worker

from jupyter_gpucluster.client.connect import connect
from tests.waiting import until

from .life import Life, live_and_end_clean, worker_of, write_profile
from .ordinary_user import Person
from .places import SimulatedPlace
from .suffering import suffer

GROUPS = """
workers: {resources: {CARD: 1}}
groups: {io: {count: 1, workers: {resources: {IO: 4}}}}
"""


@pytest.mark.parametrize("place", ["lsf", "htcondor", "cobalt"], indirect=True)
def test_a_cluster_lives_and_ends_clean(place: SimulatedPlace, somebody: Person) -> None:
    live_and_end_clean(place, somebody, lambda life: suffer(life, place))


@pytest.mark.parametrize("place", ["lsf"], indirect=True)
def test_two_kinds_of_workers_get_their_tasks(place: SimulatedPlace, somebody: Person) -> None:
    place.open()
    life = Life(somebody, write_profile(somebody, place, place.words.job, GROUPS), 1)
    life.until(lambda v: v.workers.ready == 1 and "1 of 1 io workers" in v.words)
    assert len(place.queue()) == 2
    groups = {worker_of(job): job.group for job in somebody.clusters.jobs(life.id)}
    with connect(somebody.clusters.get(life.id).name) as client:
        for resource, group in (("CARD", ""), ("IO", "io")):
            ran = client.submit(where, resources={resource: 1}, pure=False).result()
            assert groups[ran] == group
    life.stop()
    assert place.queue() == []


@pytest.mark.parametrize("place", ["lsf", "kubernetes"], indirect=True)
def test_the_doctor_s_job_is_one_of_the_system_and_gone_in_the_end(
    place: SimulatedPlace, somebody: Person
) -> None:
    place.open()
    profile = write_profile(somebody, place, place.words.job)
    code, said = somebody.work.command("doctor", profile, "--job", "--json")
    report = json.loads(said)
    assert code == 0, said
    assert [answer["imports"]["troubles"] for answer in report["job"]["answers"]] == [{}]
    until(lambda: place.left() == [])


def where() -> str:
    return str(get_worker().name)
