"""Arguments of dask-cuda's workers about GPU memory."""

from __future__ import annotations

import importlib
import importlib.util
import shlex
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Target
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch.script.job import MARK, render
from jupyter_gpucluster.profiles import Profile, find_profile, load_profiles
from tests.integration.local.conftest import put_profile
from tests.launch.specs import DIRECTORY, spec_for

MACHINE = Machine(cpus=8, memory=2**34, gpus=("0", "1"))
GIB = 2**30
POOL: dict[str, Any] = {
    "rmm_pool": "20 GiB",
    "rmm_libraries": ["cupy", "torch"],
    "device_memory_limit": None,
}
ASYNC: dict[str, Any] = {"rmm_async": True, "cudf_spill": True}


def worker_line(machine: Machine = MACHINE, *, protocol: str = "tls", **workers: Any) -> list[str]:
    """Return the words that start a worker of a local profile."""
    profile = Profile.model_validate(
        {"title": "x", "backend": "local", "workers": workers, "network": {"protocol": protocol}}
    )
    spec = spec_for(profile, workers=2, machine=machine)
    text = render(profile, spec, DIRECTORY).replace(MARK, "gpc-abc123-1")
    return shlex.split(text.splitlines()[-1])


def test_a_pool_is_asked_for_by_its_absolute_size() -> None:
    words = worker_line(**POOL)
    assert words[words.index("--rmm-pool-size") + 1] == str(20 * GIB)
    assert words[words.index("--set-rmm-allocator-for-libs") + 1] == "cupy,torch"
    assert words[words.index("--device-memory-limit") + 1] == "0"
    assert "--rmm-async" not in words


def test_nothing_is_said_about_gpu_memory_unless_asked_for() -> None:
    told = " ".join([*worker_line(), *worker_line(Machine(cpus=8, memory=2**34), **POOL)])
    assert not any(word in told for word in ("rmm", "spill", "device-memory"))


def test_ucx_is_chosen_in_so_many_words_and_has_no_certificates() -> None:
    words = worker_line(protocol="ucx")
    assert words[words.index("--protocol") + 1] == "ucx"
    assert not any(word.startswith("--tls") for word in words)


@pytest.mark.parametrize(
    "line, words",
    [
        ("{rmm_pool: 1 GiB, rmm_async: true}", "exclude each other"),
        ("{rmm_libraries: [cupy]}", "needs `rmm_pool` or `rmm_async`"),
        ("{rmm_libraries: [numpy], rmm_async: true}", "numpy"),
        ("{rmm_pool: 80 %}", "rmm_pool"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(home: Path, line: str, words: str) -> None:
    put_profile(home, "pools", f"workers: {line}\n")
    [problem] = load_profiles().problems
    assert words in problem.message
    assert problem.line == 3


def test_a_good_profile_is_kept(home: Path) -> None:
    put_profile(home, "pools", "workers: {rmm_async: true, rmm_libraries: [cupy]}\n")
    assert find_profile("pools").profile.workers.rmm_libraries == ("cupy",)


def put_slurm(home: Path, name: str, text: str) -> None:
    path = home / "data" / "gpucluster" / "profiles" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"title: {name}\nbackend: slurm\n{text}")


@pytest.mark.parametrize(
    "keys, hours",
    [
        ("", None),  # jobs follow each other as long as they are used
        ("policy: {at_walltime: stop}", 16.0),  # two jobs of four GPUs for two hours
        ("policy: {max_lifetime: 12 h}", 96.0),
        ("policy: {max_lifetime: 12 h, at_walltime: stop}", 16.0),
        ("policy: {max_lifetime: 12 h, gpu_hours: 20}", 20.0),
        ("policy: {gpu_hours: 20}\nlimits: {gpu_hours: 10}", 10.0),
    ],
)
def test_gpu_hours_are_estimated_before_a_start(home: Path, keys: str, hours: float | None) -> None:
    put_slurm(home, "big", f"job: {{gpus: 4, walltime: 2 h}}\n{keys}\n")
    script = Clusters().script("big", target=Target(6, 6))
    assert script.gpu_hours_estimate == hours
    assert script.survival


def test_clusters_without_gpus_or_without_an_end_have_no_estimate(home: Path) -> None:
    assert Clusters().script("local").gpu_hours_estimate is None
    put_slurm(home, "endless", "job: {gpus: 1, queue: debug}\n")
    assert Clusters().script("endless").gpu_hours_estimate is None


if importlib.util.find_spec("dask_cuda"):
    # dask-cuda 26.02 imports a module of distributed that distributed has deprecated.
    @pytest.mark.filterwarnings("ignore:the distributed.cli.utils module:DeprecationWarning")
    @pytest.mark.parametrize("workers", [{}, POOL, ASYNC])
    def test_dask_cuda_itself_understands_the_line(workers: dict[str, Any]) -> None:
        parser = importlib.import_module("dask_cuda.cli").worker
        words = worker_line(**workers)
        # Certificates have to exist.
        kept = [__file__ if word.endswith(".pem") else word for word in words]
        read = parser.make_context("worker", kept[kept.index("dask_cuda.cli") + 1 :]).params
        assert read["rmm_async"] is bool(workers.get("rmm_async"))
        assert read["enable_cudf_spill"] is bool(workers.get("cudf_spill"))
        assert read["rmm_pool_size"] == (str(20 * GIB) if "rmm_pool" in workers else None)
