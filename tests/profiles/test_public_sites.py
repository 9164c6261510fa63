"""Every public job for Dask that we know of can be written as a profile, and asks for the same."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_gpucluster.batch import BACKENDS, WAYS_OUT, find_backend
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.launch.profile_catalog import one_place
from jupyter_gpucluster.profiles import find_profile
from tests.profiles.conftest import Site as Levels
from tests.profiles.conftest import script_of

SITES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("public_sites.yaml").read_text("utf-8")
)
COLLECTED = "fb811ccc6ea77f3268095dab7803615d02dacbbacafe8404943d1097df5ba95e"
"""SHA-256 of the collection's sorted ids, a line each."""


def test_the_table_has_every_entry_with_its_source() -> None:
    assert len(SITES) == 83
    assert all(entry["source"] for entry in SITES.values())
    assert {entry["profile"]["backend"] for entry in SITES.values()} == BACKENDS.keys() - {"demo"}


def test_the_table_has_the_collections_entries() -> None:
    assert hashlib.sha256("\n".join(sorted(SITES)).encode()).hexdigest() == COLLECTED


@pytest.mark.parametrize("name", SITES)
def test_a_profile_asks_for_what_the_site_s_own_job_asks_for(
    name: str, site: Levels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LSF_ENVDIR", "/nonexistent")
    entry = SITES[name]
    # A shipped profile of the same name would be merged with it.
    site.write("user", f"public-{name}.yaml", yaml.safe_dump({"title": name, **entry["profile"]}))
    lines = script_of(f"public-{name}").splitlines()
    prefix = f"{BACKENDS[entry['profile']['backend']].syntax.prefix} "
    asked = [line.removeprefix(prefix) for line in lines[1:] if line.startswith(prefix)]
    assert [line for line in entry["asks"] if line not in asked] == [], asked
    commands = "\n".join(line for line in lines if not line.startswith("#"))
    assert entry.get("runs", "") in commands


@pytest.mark.parametrize("backend", WAYS_OUT)
def test_what_no_dialect_speaks_is_refused_with_the_way_out(backend: str, site: Levels) -> None:
    assert backend not in BACKENDS
    site.write("user", "to-come.yaml", yaml.safe_dump({"title": "x", "backend": backend}))
    with pytest.raises(InvalidInput, match="cannot start clusters by") as caught:
        find_backend(find_profile("to-come").profile.backend)
    assert "`backend: existing`" in caught.value.hint
    assert one_place("to-come")["words"] == "This version cannot start it."
