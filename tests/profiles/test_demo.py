"""The profiles of the simulated site: hidden, complete, and called what they are."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.launch.profile_catalog import places
from jupyter_gpucluster.profiles import load_profiles
from jupyter_gpucluster.profiles.search import DEMO, DEMO_SWITCH

NAMES = sorted(path.stem for path in DEMO.glob("*.yaml"))


def test_nobody_sees_them_who_did_not_switch_them_on() -> None:
    assert NAMES
    assert not load_profiles(all_sites=True).profiles.keys() & set(NAMES)


def test_switched_on_they_are_offered_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEMO_SWITCH, "1")
    found = load_profiles()
    assert found.profiles.keys() >= {*NAMES, "local"}
    assert found.problems == []


def test_each_is_labelled_as_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEMO_SWITCH, "1")
    shown = {place["name"]: place for place in places()["profiles"]}
    for name in NAMES:
        assert shown[name]["simulated"] is True
        assert "simulation" in shown[name]["title"]
        assert shown[name]["words"].startswith("Simulation")
        assert shown[name]["unit"] == "GPUs"
    assert shown["local"]["simulated"] is False


def test_the_ordinary_one_is_chosen_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEMO_SWITCH, "1")
    assert [place["name"] for place in places()["profiles"] if place["default"]] == ["demo-quick"]
