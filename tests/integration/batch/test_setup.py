"""``setup`` on real batch systems: its facts are those of their configuration, and jobs start."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.queue import ProcessRunner
from jupyter_gpucluster.core.site import Site
from tests.setup.facts import SLURM, by_key, measure

from .conftest import as_root
from .described_slurm import USER, DescribedSlurm
from .ordinary_user import python_for_anybody
from .real_site import NEUTRAL, OPEN_TO_ALL, RealSite


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
    site: DescribedSlurm,
) -> None:
    with python_for_anybody(USER) as (python, folders):
        home = Path(tempfile.mkdtemp(prefix="user-", dir=OPEN_TO_ALL))
        shutil.chown(home, USER)
        environment = {**NEUTRAL, **site.environment, "HOME": str(home), "TMPDIR": str(home)}
        environment["JUPYTER_DATA_DIR"] = str(home / "data")
        environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
        typed = ["runuser", "-u", USER, "--", python, "-m", "jupyter_gpucluster"]

        def types(*words: str) -> Any:
            run = subprocess.run(
                [*typed, *words, "--json"], env=environment, cwd=home, capture_output=True
            )
            return json.loads(run.stdout)

        try:
            assert "yours: chem, lab1" in types("setup", "--yes")["hint"]
            told = types("setup", "--yes", "--account", "lab1")
            assert "systems" in told, told
            [slurm] = [each for each in told["systems"] if each["title"] == "Slurm"]
            found = {each["name"]: each for each in slurm["proposals"]}
            unusable = [name for name, each in found.items() if not each["usable"]]
            assert unusable == ["slurm-parent"]
            assert found["slurm-chem"]["choices"]["accounts"] == ["chem"]
            checked = types("doctor", "slurm-gpu", "--job")["checks"]  # there is no GPU here
            checks = {each["check"]: each["result"] for each in checked}
            assert (checks["probe job"], checks["nodes to here"]) == ("ok", "ok")
        finally:
            shutil.rmtree(home)


def test_grid_engine_and_oar_describe_themselves_to_an_ordinary_user(
    grid_engine: RealSite, oar: RealSite
) -> None:
    assert surveyed("sge", grid_engine, grid_engine.user).queues == ()  # it has no GPUs
    [queue] = surveyed("oar", oar, oar.user).queues
    assert (queue.gpus, queue.cpus_per_gpu, queue.memory_per_gpu) == (2, 4, 4 * 2**30)
