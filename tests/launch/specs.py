"""Specs of profiles, as a starter of this machine makes them."""

from __future__ import annotations

from pathlib import Path

from jupyter_gpucluster.core.cluster import Spec
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.spec import make_spec
from jupyter_gpucluster.profiles import Profile

DIRECTORY = ClusterDirectory(Path("/state/abc123"))
MACHINE = Machine(4, 2**33)
SCRATCH = Path("/tmp/x")


def spec_for(
    profile: Profile,
    directory: ClusterDirectory = DIRECTORY,
    *,
    workers: int = 1,
    machine: Machine = MACHINE,
    python: str = "/opt/python",
    scratch: Path = SCRATCH,
) -> Spec:
    """Return the spec of a cluster of a profile."""
    return make_spec(
        profile,
        name="x",
        workers=workers,
        machine=machine,
        python=python,
        environment="",
        directory=directory,
        scratch=scratch,
        options={},
    )
