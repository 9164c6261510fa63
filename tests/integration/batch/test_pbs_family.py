"""Clusters on PBS and Torque, or what stands in for them: each leads one whole life."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.core.cluster import Phase

from .life import Life, live_and_end_clean, write_profile
from .ordinary_user import Person
from .places import SimulatedPlace
from .suffering import suffer


@pytest.mark.parametrize("place", ["pbs", "torque"], indirect=True)
def test_a_cluster_lives_and_ends_clean(place: SimulatedPlace, somebody: Person) -> None:
    live_and_end_clean(place, somebody, lambda life: suffer(life, place))


@pytest.mark.parametrize(
    "place,line,cause",
    [
        ("pbs", "spack load cuda || exit 1", "The node has no such command"),
        ("pbs", "export PYTHONHOME=/nowhere", "PYTHONHOME or PYTHONPATH gives"),
    ],
    indirect=["place"],
)
def test_a_job_that_ends_before_its_worker_connects_names_the_cause(
    line: str, cause: str, place: SimulatedPlace, somebody: Person
) -> None:
    more = f"environment: {{prologue: ['{line}']}}\npolicy: {{replacements: 0}}\n"
    place.open()
    view = Life(somebody, write_profile(somebody, place, place.words.job, more), 1).ended()
    assert view.phase is Phase.FAILED
    assert "It ended with exit code 1." in view.reason
    assert cause in view.reason
