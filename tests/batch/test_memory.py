"""Memory, asked for in the ways of systems and sites."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch import BACKENDS, find_backend
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import JobShape

GIB = 2**30
JOB = {"cpus": 4, "memory": 16 * GIB}


def asked(backend: str, request: str, **changes: int | str) -> list[str]:
    """Return what a job asks for, without its usual lines."""
    shape = JobShape(**{**JOB, "memory_request": request, **changes})  # type: ignore[arg-type]
    lines = find_backend(backend).directives(shape, "gpc-abc123-1", "/c/logs/gpc-abc123-1.out")
    return [line.partition(" ")[2] for line in lines]


@pytest.mark.parametrize(
    "backend,request_,lines",
    [
        ("slurm", "", ["--mem=16384M"]),
        ("slurm", "mem-per-cpu", ["--mem-per-cpu=4096M"]),
        ("slurm", "mem-per-gpu", ["--mem-per-gpu=8192M"]),
        ("sge", "", ["-l mem_free=4096M"]),
        ("sge", "m_mem_free", ["-l m_mem_free=4096M"]),
        ("sge", "mem_req/job", ["-l mem_req=16384M"]),
        ("sge", "h_vmem,mem_free/job", ["-l h_vmem=4096M", "-l mem_free=16384M"]),
        ("oar", "mem_core", ["-p mem_core>=4096"]),
    ],
)
def test_memory_is_asked_for_as_the_site_spells_it(
    backend: str, request_: str, lines: list[str]
) -> None:
    assert [line for line in asked(backend, request_, gpus=2) if "mem" in line] == lines


def test_oar_takes_one_condition_so_that_two_become_one() -> None:
    assert "-p \"gpu_model='a100' AND mem_core>=4096\"" in asked(
        "oar", "mem_core", gpus=1, gpu_type="a100"
    )


@pytest.mark.parametrize("backend", sorted(BACKENDS.keys() - {"local", "demo"}))
def test_none_asks_for_no_memory_anywhere(backend: str) -> None:
    assert not any("mem" in line.lower() for line in asked(backend, "none"))


@pytest.mark.parametrize("backend", ["slurm", "pbs", "torque", "moab", "lsf", "htcondor"])
def test_a_way_that_a_system_does_not_know_is_refused(backend: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        asked(backend, "h_vmem")
    assert caught.value.detail == "job.memory_request"
    assert "none" in caught.value.hint


@pytest.mark.parametrize("backend", ["sge", "oar"])
def test_a_name_cannot_become_another_directive(backend: str) -> None:
    with pytest.raises(InvalidInput):
        asked(backend, "mem_free=1 -q other")
