"""Every public job for Dask that we know of can be written as a profile, and asks for the same."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from jupyter_gpucluster.batch import BACKENDS, WAYS_OUT, find_backend
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.profile_catalog import one_place
from jupyter_gpucluster.launch.script.job import MARK, render
from jupyter_gpucluster.launch.spec import make_spec
from jupyter_gpucluster.profiles import apply_options, find_profile

from .conftest import Site as Levels

SITES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("public_sites.yaml").read_text("utf-8")
)
COLLECTED = "fb811ccc6ea77f3268095dab7803615d02dacbbacafe8404943d1097df5ba95e"
"""SHA-256 of the collection's sorted ids, a line each."""
PREFIXES = {
    "slurm": "#SBATCH ", "pbs": "#PBS ", "torque": "#PBS ", "moab": "#PBS ", "lsf": "#BSUB ",
    "sge": "#$ ", "oar": "#OAR ", "htcondor": "#CONDOR ", "cobalt": "#COBALT ", "local": "#",
    "kubernetes": "#KUBERNETES ",
}  # fmt: skip


def script_of(name: str, site: Levels) -> str:
    """Return the script of one of the table's profiles, read from a user's file."""
    text = yaml.safe_dump({"title": name, **SITES[name]["profile"]})
    # A shipped profile of the same name would be merged with it.
    site.write("user", f"public-{name}.yaml", text)
    profile = apply_options(find_profile(f"public-{name}").profile, {})
    directory = ClusterDirectory(Path("/home/ann/clusters/7f3a2b"))
    spec = make_spec(
        profile,
        name=name,
        workers=1,
        machine=Machine(cpus=8, memory=2**34),
        python="/opt/dask/bin/python",
        environment="",
        directory=directory,
        scratch=Path("/tmp/gpc-7f3a2b"),
        options={},
    )
    text = render(profile, spec, find_backend(profile.backend), directory)
    return text.replace(MARK, "gpc-7f3a2b-1")


def test_the_table_has_every_entry_with_its_source() -> None:
    assert len(SITES) == 83
    assert all(entry["source"] for entry in SITES.values())
    assert {entry["profile"]["backend"] for entry in SITES.values()} == {*PREFIXES}


def test_the_table_has_the_collections_entries() -> None:
    assert hashlib.sha256("\n".join(sorted(SITES)).encode()).hexdigest() == COLLECTED


@pytest.mark.parametrize("name", SITES)
def test_a_profile_asks_for_what_the_site_s_own_job_asks_for(
    name: str, site: Levels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LSF_ENVDIR", "/nonexistent")
    entry = SITES[name]
    lines = script_of(name, site).splitlines()
    prefix = PREFIXES[entry["profile"]["backend"]]
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
