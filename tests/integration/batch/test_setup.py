"""``setup`` on real batch systems: its facts are those of their configuration, and jobs start."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.queue import ProcessRunner
from jupyter_gpucluster.cli import perform
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.core.site import Site
from tests.setup.facts import SLURM, by_key, measure

from .conftest import as_root
from .described_slurm import USER, DescribedSlurm
from .real_site import RealSite


def surveyed(system: str, site: RealSite, user: str) -> Site:
    """Let a system describe itself to an ordinary user."""
    dialect = find_backend(system)
    runner = ProcessRunner({**os.environ, **site.environment})
    answers = {
        name: asyncio.run(runner.run(["runuser", "-u", user, "--", *argv]))
        for name, argv in dialect.survey(user).items()
    }
    return dialect.parse_survey(answers)


@pytest.fixture(scope="module")
def site() -> Iterator[DescribedSlurm]:
    """Start a Slurm whose partitions differ, in place of the one that tests share."""
    with as_root(DescribedSlurm) as slurm:
        yield slurm


def test_no_fact_about_a_real_slurm_is_wrong_or_left_out(site: DescribedSlurm) -> None:
    counted = measure(by_key(surveyed("slurm", site, USER)), SLURM)
    assert counted == {"right": 70}


def test_a_rehearsal_decides_about_accounts_and_a_saved_profile_starts_a_job(
    site: DescribedSlurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    site.run("sacctmgr", "-i", "add", "user", "root", "Account=lab1", "Cluster=testing")
    assert perform(["setup", "--json", "--yes"], Terminal()) == 0
    systems = json.loads(capsys.readouterr().out)["systems"]
    [slurm] = [each for each in systems if each["title"] == "Slurm"]
    usable = {each["name"]: each["usable"] for each in slurm["proposals"]}
    assert usable["slurm-gpu"]
    assert not usable["slurm-chem"]
    assert not usable["slurm-parent"]
    assert perform(["doctor", "slurm-gpu", "--job", "--json"], Terminal()) == 1  # no GPUs here
    checks = {each["check"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["probe job"]["result"] == "ok"
    assert checks["nodes to here"]["result"] == "ok"


def test_grid_engine_and_oar_describe_themselves_to_an_ordinary_user(
    grid_engine: RealSite, oar: RealSite
) -> None:
    assert surveyed("sge", grid_engine, grid_engine.user).queues == ()  # it has no GPUs
    [queue] = surveyed("oar", oar, oar.user).queues
    assert (queue.gpus, queue.cpus_per_gpu, queue.memory_per_gpu) == (2, 4, 4 * 2**30)
