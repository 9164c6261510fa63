"""Hosts that many users share: found by their commands, and used sparingly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpucluster.cli.arguments import default_profile
from jupyter_gpucluster.core.cluster import Spec, Target
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch import sizes
from jupyter_gpucluster.launch.plan import make_plan, start_remarks
from jupyter_gpucluster.launch.profile_catalog import places
from jupyter_gpucluster.launch.request import Request
from jupyter_gpucluster.launch.sizes import SWITCH, is_login_node
from jupyter_gpucluster.launch.spec import make_spec

Write = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def on_a_login_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("sbatch", "squeue", "scancel"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.delenv(SWITCH)
    sizes._has_commands.cache_clear()


@pytest.fixture
def write(home: Path) -> Write:
    """Return a call that writes a profile of the user."""

    def profile(name: str, text: str) -> None:
        folder = home / "data" / "gpucluster" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(f"title: {name}\n{text}")

    return profile


def spec_of(request: Request) -> tuple[Target, Spec]:
    """Return the target and the spec of a plan."""
    plan = make_plan(request)
    return plan.target, make_spec(plan, ClusterDirectory(Path("/x")), Path("/y"))


def test_what_shares_the_host_is_small_and_short_unless_its_profile_says_otherwise(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(64)))
    target, spec = spec_of(Request("local"))
    assert target == Target(2, 2)
    assert (spec.worker.threads, spec.policy.max_lifetime) == (1, 1200)
    found = places()
    assert found["login_node"]
    [local] = [each for each in found["profiles"] if each["name"] == "local"]
    assert local["default_workers"] == 2
    assert "This login node, shared with others" in local["words"]
    write("mine", "backend: local\nworkers: {threads: 3}\npolicy: {max_lifetime: 2 h}\n")
    _, spec = spec_of(Request("mine", target=Target(1, 1)))
    assert (spec.worker.threads, spec.policy.max_lifetime) == (3, 7200)
    write("queued", "backend: slurm\n")
    assert spec_of(Request("queued"))[1].policy.max_lifetime is None


def test_no_login_node_is_a_host_in_a_job_or_one_that_is_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert is_login_node()
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("SLURM_JOB_END_TIME", "1800000000")
    found = places()
    assert not found["login_node"]
    expected = {"name": "Slurm job 12", "nodes": "n[1-2]", "ends": 1800000000.0}
    assert expected.items() <= found["inside"].items()
    monkeypatch.delenv("SLURM_JOB_ID")
    assert places()["inside"] is None
    monkeypatch.setenv(SWITCH, "no")
    assert not is_login_node()


def test_without_a_profile_commands_take_the_only_one_with_jobs(write: Write) -> None:
    with pytest.raises(InvalidInput, match="must be named") as none:
        default_profile()
    assert "setup writes profiles for jobs" in none.value.hint
    write("gpu", "backend: slurm\n")
    assert default_profile() == "gpu"
    write("cpu", "backend: slurm\n")
    with pytest.raises(InvalidInput) as both:
        default_profile()
    assert "--profile cpu or gpu" in both.value.hint
    write("cpu", "backend: slurm\ndefault: true\n")
    assert default_profile() == "cpu"


@pytest.mark.parametrize(
    "text, workers, remarks",
    [
        ("backend: slurm\njob: {gpus: 1}\n", 3, []),
        ("backend: slurm\njob: {gpus: 4}\n", 8, ["8 GPUs = 2 jobs of 4, on 2 nodes."]),
        (
            "backend: slurm\njob: {gpus: 8, nodes: 2}\nlauncher: srun\n",
            12,
            ["16 GPUs = 2 jobs of 8, on 4 nodes (12 requested)."],
        ),
        (
            "backend: slurm\njob: {gpus: 4, cpus: 2}\n",
            4,
            [
                "4 GPUs = 1 job of 4, on 1 node.",
                "4 x 1 = 4 threads of workers share the 2 cores of each job.",
            ],
        ),
    ],
)
def test_a_start_says_how_many_jobs_it_submits_and_which_share_cores(
    write: Write, text: str, workers: int, remarks: list[str]
) -> None:
    write("site", text)
    plan = make_plan(Request("site", target=Target(workers, workers)))
    spec = make_spec(plan, ClusterDirectory(Path("/x")), Path("/y"))
    assert list(start_remarks(spec, plan)) == remarks
