"""The examples of the profile reference are profiles, and do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jupyter_gpucluster.profiles import apply_options, find_profile, load_profiles
from tests.profiles.conftest import Site

PAGE = (Path(__file__).parents[2] / "docs" / "profiles.md").read_text()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_is_a_profile_without_problems(site: Site, number: int) -> None:
    site.write("user", "example.yaml", EXAMPLES[number])
    found = load_profiles()
    assert found.problems == []
    assert "example" in found.profiles


def test_the_example_of_locks_locks(site: Site) -> None:
    [text] = [text for text in EXAMPLES if "locked:" in text]
    site.write("system", "example.yaml", text)
    site.write("user", "example.yaml", "limits: {workers: 1000}\njob: {queue: x, gpus: 2}\n")
    profile = find_profile("example").profile
    assert (profile.limits.workers, profile.job.queue, profile.job.gpus) == (64, "gpu", 2)


def test_the_example_of_options_fills_its_places(site: Site) -> None:
    [text] = [text for text in EXAMPLES if "options:" in text]
    site.write("system", "example.yaml", text)
    profile = find_profile("example").profile
    done = apply_options(profile, {"project": "m1234", "walltime": "2 h", "idle": "10 min"})
    assert done.job.account == "m1234_g"
    assert done.job.walltime == 7200
    assert done.job.directives == ("-C a100",)
    assert done.environment.prologue == ("module load cudatoolkit",)
    assert done.policy.idle_timeout == 600
