"""Whole job scripts, rendered from the example profile of a documentation page."""

from __future__ import annotations

import os
import re
from pathlib import Path

from jupyter_gpucluster.core.cluster import Spec
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.script.job import MARK, render
from jupyter_gpucluster.profiles import Profile, find_profile
from tests.launch.specs import spec_for

ROOT = Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
SCRATCH = Path("/tmp/gpc-7f3a2b")
DIRECTORY = ClusterDirectory(Path("/home/ann/.local/share/jupyter/gpucluster/clusters/7f3a2b"))


def example_of(page: str) -> str:
    """Return the first profile of a page of ``docs/backends``."""
    text = (ROOT / "docs" / "backends" / f"{page}.md").read_text("utf-8")
    match = re.search(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert match, f"{page}.md has no example"
    return match[1]


def rendered(
    profile: Profile,
    name: str,
    directory: ClusterDirectory,
    *,
    workers: int = 1,
    environment: str = "",
    scratch: Path = SCRATCH,
) -> tuple[Spec, str]:
    """Return the spec of a cluster of a profile, and the script of its jobs."""
    spec = spec_for(
        profile,
        directory,
        name=name,
        workers=workers,
        machine=Machine(cpus=8, memory=2**34),
        python="/opt/dask/bin/python",
        environment=environment,
        scratch=scratch,
    )
    text = render(profile, spec, directory)
    return spec, text.replace(MARK, "gpc-7f3a2b-1")


def script_of(example: str, data: Path) -> str:
    """Render the script of a profile that is written below Jupyter's data directory."""
    place = data / "gpucluster" / "profiles"
    place.mkdir(parents=True)
    (place / "example.yaml").write_text(example, "utf-8")
    profile = find_profile("example").profile
    return rendered(profile, "example", DIRECTORY, workers=2, environment="dask")[1]


def golden(name: str, text: str) -> str:
    """Return what a script must be; ``UPDATE_GOLDEN=1`` takes it as it is now."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    return path.read_text("utf-8")
