"""Shares of local workers in the machine's memory, and refusals with figures."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpucluster.core.cluster import Spec
from jupyter_gpucluster.core.errors import LimitReached
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.host.memory_shares import amount, check_memory, share_of
from jupyter_gpucluster.launch.sizes import sizes_of
from jupyter_gpucluster.profiles import Profile
from tests.launch.specs import spec_for

GIB = 2**30
SMALL = Machine(cpus=8, memory=3 * GIB // 2)
CPUS = Machine(cpus=8, memory=24 * GIB)
GPUS = Machine(cpus=8, memory=24 * GIB, gpus=("0", "1", "2", "3"))


def a_profile(backend: str = "local", **sections: Any) -> Profile:
    return Profile.model_validate({"title": "x", "backend": backend, **sections})


def a_spec(profile: Profile, workers: int = 2, machine: Machine = CPUS) -> Spec:
    return spec_for(profile, workers=workers, machine=machine)


def refusal(spec: Spec, workers: int, *, automatic: bool = False) -> tuple[str, str]:
    with pytest.raises(LimitReached) as caught:
        check_memory(spec, workers, automatic=automatic)
    assert caught.value.detail == "target"
    return caught.value.message, caught.value.hint


def test_shares_follow_the_number_of_workers_down_to_512_mib() -> None:
    spec = a_spec(a_profile())
    assert [share_of(spec, workers) for workers in (0, 1, 2, 3)] == [
        24 * GIB, 24 * GIB, 12 * GIB, 8 * GIB
    ]  # fmt: skip
    check_memory(spec, 0)
    check_memory(spec, 48)
    assert refusal(spec, 49) == (
        "49 workers would have 501.5 MiB of memory each: a worker needs 512 MiB, and 24 GiB are"
        " available on this machine.",
        "Ask for 48 or fewer.",
    )


@pytest.mark.parametrize(
    "machine, sections",
    [
        (GPUS, {}),
        (CPUS, {"workers": {"resources": {"big": 1}}}),
        (CPUS, {"environment": {"prologue": ["module load x"]}}),
        (CPUS, {"workers": {"memory_limit": 12 * GIB}}),
    ],
)
def test_a_limit_that_stays_is_refused_above_the_machine_s_memory(
    machine: Machine, sections: dict[str, Any]
) -> None:
    spec = a_spec(a_profile(**sections), machine=machine)
    assert (spec.worker.memory_limit, share_of(spec, 3)) == (12 * GIB, None)
    check_memory(spec, 2)
    assert refusal(spec, 3) == (
        "3 workers with 12 GiB each need 36 GiB of memory: 24 GiB are available on this machine.",
        "Ask for 2 or fewer. Or start a cluster with a memory limit of 8 GiB or less.",
    )


def test_too_small_a_share_is_refused_at_the_start_under_a_nanny_too() -> None:
    spec = a_spec(a_profile(workers={"resources": {"big": 1}}), workers=128)
    assert "192 MiB of memory each" in refusal(spec, 128, automatic=True)[0]


def test_groups_keep_their_limits_and_the_others_share_the_rest() -> None:
    spec = a_spec(a_profile(groups={"io": {"count": 2, "workers": {"memory_limit": 3 * GIB}}}))
    assert share_of(spec, 2) == 9 * GIB
    assert share_of(spec, 3) == 6 * GIB
    assert refusal(spec, 37)[1] == "Ask for 36 or fewer."


def test_no_limit_and_memory_of_other_machines_are_not_looked_at() -> None:
    for profile in (
        a_profile(workers={"memory_limit": None}),
        a_profile("slurm", job={"memory": 2**50}),
        a_profile("demo", job={"gpus": 1}),
    ):
        spec = a_spec(profile)
        check_memory(spec, 1000, automatic=True)
        assert share_of(spec, 2) is None


def test_a_small_machine_gets_no_more_workers_than_its_memory_holds() -> None:
    assert sizes_of(a_profile(), CPUS).default == 4
    assert sizes_of(a_profile(), SMALL).default == 3
    assert sizes_of(a_profile(job={"memory": GIB // 4}), SMALL).default == 1


def test_a_part_of_the_machine_is_shared_where_the_profile_asks_for_one() -> None:
    assert share_of(a_spec(a_profile(job={"memory": 6 * GIB})), 3) == 2 * GIB


@pytest.mark.parametrize(
    "count, words",
    [
        (10, "10 B"),
        (512 * 2**20, "512 MiB"),
        (24 * GIB - 1, "23.9 GiB"),
        (10**14, "90.9 TiB"),
    ],
)
def test_amounts_are_never_shown_as_more_than_they_are(count: int, words: str) -> None:
    assert amount(count) == words
