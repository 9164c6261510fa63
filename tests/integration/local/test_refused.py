"""A refusal is shown once by each command, and in short by the list."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_gpucluster.cli.describe import cluster_table
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import GpuClusterError

from ...cli.conftest import CommandLine
from .driving import fixed

SITES = "Please choose a project, see https://docs.example.org/projects-and-their-budgets"
SBATCH = f"""#!/bin/sh
echo 'sbatch: error: ******************************************' >&2
echo 'sbatch: error: * {SITES} *' >&2
echo 'sbatch: error: ******************************************' >&2
echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job \\
submit limit, user's size and/or time limits)" >&2
exit 1
"""
PROFILE = 'title: Site\nbackend: slurm\njob: {cpus: 1, walltime: "00:10:00", queue: gpu}\n'


@pytest.fixture
def no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Slurm that refuses all jobs and has none."""
    commands = {"sbatch": SBATCH, **dict.fromkeys(("squeue", "sacct", "scancel"), "#!/bin/sh\n")}
    for name, text in commands.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("no_slurm")
def test_a_refusal_is_shown_once(clusters: Clusters, home: Path) -> None:
    profile = home / "data" / "gpucluster" / "profiles" / "site.yaml"
    profile.parent.mkdir(parents=True, exist_ok=True)
    profile.write_text(PROFILE)
    view = clusters.start("site", name="refused", target=fixed(3))
    with pytest.raises(GpuClusterError):
        clusters.wait_ready(view.id, timeout=60)
    clusters.wait_stopped(view.id, timeout=60)
    view = clusters.get(view.id)
    assert view.phase is Phase.FAILED
    command = CommandLine(home)
    for verb in ("why", "show"):
        text = command(verb, "refused").out
        # In the sentence, and in the output of sbatch, which is kept with it.
        assert text.count(SITES) == 2
        assert text.count("Slurm refused the job") == 1
        assert text.count("see above") >= 3
    [row] = cluster_table([view], "").rows
    assert len(row[-1]) <= 120
    assert row[-1].startswith(f"Slurm refused the job: {SITES}")
    listed = command("list", "--all").out
    assert "exit code" not in listed
    assert listed.count("Slurm refused the job") == 1
