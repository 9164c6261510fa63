"""Checks of this machine, with facts of our own in place of the machine's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpucluster.doctor import batch_system, here
from jupyter_gpucluster.doctor.findings import Result
from jupyter_gpucluster.doctor.here import Subject
from jupyter_gpucluster.host.detach import Survival
from jupyter_gpucluster.launch.python_environments import Environment
from jupyter_gpucluster.node import probe
from jupyter_gpucluster.profiles import Profile

INTERFACES = {"lo": "127.0.0.1", "eth0": "10.0.0.7", "ib0": "10.9.0.7"}
GIB = 2**30
Facts = pytest.MonkeyPatch


def a_subject(backend: str = "slurm", tried: bool = False, **keys: Any) -> Subject:
    profile = Profile.model_validate({"title": "x", "backend": backend, **keys})
    return Subject(Path("/home/ada/clusters"), here.kind_of(profile), profile, tried=tried)


@pytest.mark.parametrize(
    "named, usual, tried, result, words",
    [
        ("ib0", "10.0.0.7", False, Result.OK, "ib0 (10.9.0.7)"),
        (None, "10.0.0.7", False, Result.OK, "10.0.0.7 (no interface is set)"),
        ("hsn0", "10.0.0.7", False, Result.FAILED, "lo (127.0.0.1), eth0 (10.0.0.7), ib0"),
        ("lo", "10.0.0.7", False, Result.WARNING, "only this machine can reach"),
        (None, "127.0.1.1", False, Result.WARNING, "only this machine can reach"),
        (None, "127.0.1.1", True, Result.OK, "127.0.1.1"),
    ],
)
def test_a_scheduler_listens_where_nodes_may_reach_it(
    monkeypatch: Facts, named: str | None, usual: str, tried: bool, result: Result, words: str
) -> None:
    monkeypatch.setattr(probe, "interfaces", lambda: INTERFACES)
    monkeypatch.setattr(probe, "usual_address", lambda: usual)
    finding = here.network(a_subject(tried=tried, network={"interface": named}))
    assert finding is not None
    assert (finding.result, words in finding.found) == (result, True)


@pytest.mark.parametrize(
    "subject",
    [a_subject(head={"placement": "job"}), a_subject("local")],
    ids=["the head runs in a job", "all run here"],
)
def test_a_scheduler_elsewhere_or_on_loopback_needs_no_network_of_this_host(
    subject: Subject,
) -> None:
    assert here.network(subject) is None


@pytest.mark.parametrize(
    "changes, private, backend, result, words",
    [
        ({}, "", "slurm", Result.OK, "nfs4, 90.0 GiB free"),
        ({"file_system": "ext4"}, "", "slurm", Result.WARNING, "a disk of this machine alone"),
        ({"file_system": "fuse.sshfs"}, "", "slurm", Result.OK, "fuse.sshfs"),
        ({"file_system": "ext4"}, "", "local", Result.OK, "ext4"),
        ({"free": GIB // 2}, "", "slurm", Result.WARNING, "nearly full: 0.5 GiB free"),
        ({"free_files": 0}, "", "slurm", Result.WARNING, "nearly full: 90.0 GiB free, 0 files"),
        ({"free_files": None}, "", "slurm", Result.OK, "90.0 GiB free"),
        ({"trouble": "/home: Permission denied"}, "", "slurm", Result.FAILED, "Permission denied"),
        ({}, "It is writable by others.", "slurm", Result.FAILED, "writable by others."),
    ],
)
def test_cluster_directories_are_private_and_roomy_and_seen_by_nodes(
    monkeypatch: Facts,
    changes: dict[str, Any],
    private: str,
    backend: str,
    result: Result,
    words: str,
) -> None:
    facts: dict[str, Any] = {"path": "/home/ada/clusters", "trouble": "", "file_system": "nfs4"}
    facts |= {"free": 90 * GIB, "free_files": 10_000_000, **changes}
    monkeypatch.setattr(probe, "directory", lambda path: facts)
    monkeypatch.setattr(here, "_not_private", lambda root: private)
    finding = here.cluster_directory(a_subject(backend))
    assert (finding.result, words in finding.found) == (result, True)
    assert bool(finding.way_out) is (result is not Result.OK)


@pytest.mark.parametrize(
    "limits, workers, words",
    [
        ([1024, 4096], 4, ""),
        ([-1, -1], 10_000, ""),
        ([1024, 4096], 300, ""),  # the scheduler raises its limit
        ([1024, 2048], 300, "higher hard limit"),
        ([1024, -1], 300, ""),
        ([1024, 1024], 300, "higher hard limit"),
    ],
)
def test_open_files_are_compared_with_the_needs_of_so_many_workers(
    monkeypatch: Facts, limits: list[int], workers: int, words: str
) -> None:
    monkeypatch.setattr(probe, "open_files", lambda: limits)
    finding = here.open_files(a_subject(limits={"workers": workers}))
    assert (finding.result is Result.WARNING) is bool(words)
    assert words in finding.way_out


def test_a_head_that_ends_with_jupyter_is_a_warning_with_a_fix(monkeypatch: Facts) -> None:
    survival = Survival(False, "No: it ends with the pod.")
    monkeypatch.setattr(here, "find_survival", lambda job: survival)
    finding = here.outlives_jupyter(a_subject())
    assert finding is not None
    assert finding.result is Result.WARNING
    assert "head.placement: job" in finding.way_out
    assert here.outlives_jupyter(a_subject(head={"placement": "job"})) is None


@pytest.mark.parametrize(
    "present, agent, keys, result",
    [
        (True, False, ["id_ed25519"], Result.OK),
        (True, True, [], Result.WARNING),
        (True, False, [], Result.WARNING),
        (False, True, ["id_rsa"], Result.FAILED),
    ],
)
def test_keys_in_an_agent_alone_do_not_reach_the_nodes_of_a_job(
    home: Path, monkeypatch: Facts, present: bool, agent: bool, keys: list[str], result: Result
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/ssh" if present else None)
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent" if agent else "")
    (home / ".ssh").mkdir()
    for key in keys:
        (home / ".ssh" / key).touch()
    finding = here.ssh(a_subject(launcher="ssh"))
    assert finding is not None
    assert finding.result is result
    assert here.ssh(a_subject(launcher="ssh", tried=True)) is None


def test_only_a_minor_release_of_python_or_another_dask_is_a_difference() -> None:
    ours = {"python": "3.11.7", "dask": "2026.8.0", "distributed": "2026.8.0"}
    parties = [("/env/python", {**ours, "python": "3.11.2"}), ("this process", ours)]
    assert here.differences(parties, here.DECISIVE) == {}
    theirs = {"distributed": "2026.8.0", "python": "3.12.1"}
    assert here.differences([*parties, ("workers", theirs)], here.DECISIVE) == {
        "python": "python 3.11 in /env/python and this process; python 3.12 in workers",
        "dask": "dask 2026.8.0 in /env/python and this process; dask missing in workers",
    }


@pytest.mark.parametrize(
    "troubles, seconds, result, fix",
    [
        ({}, 1.5, Result.OK, ""),
        ({}, 75.0, Result.WARNING, "node-local file system"),
        ({"dask_cuda": "No module named 'dask_cuda'"}, 1.0, Result.FAILED, "dask-cuda[cu12]"),
        (
            {"dask_cuda": "ImportError: cannot import name 'bindings' from 'cuda' (unknown)"},
            1.0,
            Result.FAILED,
            "CUDA's own packages are missing",
        ),
        ({"": "/x/python: No such file or directory"}, 0.0, Result.FAILED, "nodes share"),
    ],
)
def test_an_import_that_fails_or_is_slow_names_its_fix(
    troubles: dict[str, str], seconds: float, result: Result, fix: str
) -> None:
    facts = {"versions": {"distributed": "1"}, "troubles": troubles, "seconds": seconds}
    finding = here.judge_imports(facts, "/x/python")
    assert (finding.result, fix in finding.way_out) == (result, True)


def test_commands_that_are_not_here_are_named(monkeypatch: Facts) -> None:
    here_too = {"squeue": "/usr/bin/squeue"}
    monkeypatch.setattr(shutil, "which", here_too.get)
    finding = batch_system.commands(a_subject())
    assert finding is not None
    assert (finding.result, "sbatch, scancel" in finding.found) == (Result.FAILED, True)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert batch_system.commands(a_subject()) is None


def test_workers_of_the_simulated_site_need_no_dask_cuda(monkeypatch: Facts) -> None:
    imported: list[str] = []

    def first_import(python: str, modules: list[str], variables: object) -> dict[str, Any]:
        imported.extend(modules)
        return {"seconds": 0.1, "troubles": {}, "versions": {}}

    monkeypatch.setattr(probe, "first_import", first_import)
    subject = a_subject("demo", job={"gpus": 2, "queue": "debug"})
    plan: Any = SimpleNamespace(environment=Environment("", "", "/x/python", suitable=True))
    here.imports(replace(subject, plan=plan))
    assert imported == ["distributed"]
