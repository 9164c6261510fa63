"""Specs of profiles, as a starter of this machine makes them, and jobs that a shell runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from jupyter_gpucluster.batch import on_this_machine
from jupyter_gpucluster.core.cluster import Spec, Target
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.detach import Survival
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.plan import Plan
from jupyter_gpucluster.launch.python_environments import Environment
from jupyter_gpucluster.launch.request import Request
from jupyter_gpucluster.launch.script.job import MARK
from jupyter_gpucluster.launch.sizes import sizes_of
from jupyter_gpucluster.launch.spec import make_spec
from jupyter_gpucluster.profiles import LoadedProfile, Profile

DIRECTORY = ClusterDirectory(Path("/state/abc123"))
MACHINE = Machine(4, 2**33)
SCRATCH = Path("/tmp/x")


def spec_for(
    profile: Profile,
    directory: ClusterDirectory = DIRECTORY,
    *,
    name: str = "x",
    workers: int = 1,
    machine: Machine = MACHINE,
    python: str = "/opt/python",
    environment: str = "",
    scratch: Path = SCRATCH,
) -> Spec:
    """Return the spec of a cluster of a profile."""
    plan = Plan(
        Request(name),
        LoadedProfile(name, profile, (), (), ()),
        profile,
        sizes_of(profile, machine),
        profile.head.placement == "server" or on_this_machine(profile.backend),
        Target(workers, workers),
        machine,
        Environment(environment, "", python, suitable=True),
        Survival(True, ""),
    )
    return make_spec(plan, directory, scratch)


class ShellJob:
    """A job whose script is run by a shell as a batch system would run it."""

    directory: ClusterDirectory
    script: str
    variables: Mapping[str, str]
    key = "gpc-abc123-1_0"

    def start(self, **variables: str) -> subprocess.Popen[bytes]:
        """Start the job in a session of its own, with standard input closed."""
        path = self.directory.jobs / "gpc-abc123-1.sh"
        path.write_text(self.script.replace(MARK, "gpc-abc123-1"))
        subprocess.run(["/bin/bash", "-n", str(path)], check=True)
        return subprocess.Popen(
            ["/bin/bash", str(path)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, **self.variables, **variables},
        )

    def log(self) -> str:
        """Return the text that the job and its ranks have written."""
        path = self.directory.logs / f"{self.key}.log"
        return path.read_text() if path.exists() else ""
