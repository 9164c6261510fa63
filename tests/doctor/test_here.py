"""Findings about this machine, from facts about it."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpucluster.doctor import Result, here
from jupyter_gpucluster.host.detach import Survival

INTERFACES = {"lo": "127.0.0.1", "eth0": "10.0.0.7", "ib0": "10.9.0.7"}
GIB = 2**30


def a_directory(**changes: Any) -> dict[str, Any]:
    facts = {"path": "/home/ada/clusters", "trouble": "", "file_system": "nfs4"}
    return {**facts, "free": 90 * GIB, "free_files": 10_000_000, **changes}


@pytest.mark.parametrize(
    "named, usual, batch, result, words",
    [
        ("ib0", "10.0.0.7", True, Result.OK, "ib0 (10.9.0.7)"),
        ("", "10.0.0.7", True, Result.OK, "10.0.0.7, as no interface is named"),
        ("hsn0", "10.0.0.7", True, Result.FAILED, "lo (127.0.0.1), eth0 (10.0.0.7), ib0"),
        ("lo", "10.0.0.7", True, Result.WARNING, "only this machine reaches"),
        ("", "127.0.1.1", True, Result.WARNING, "only this machine reaches"),
        ("", "127.0.1.1", False, Result.OK, "127.0.1.1"),
    ],
)
def test_a_scheduler_listens_where_nodes_may_reach_it(
    named: str, usual: str, batch: bool, result: Result, words: str
) -> None:
    finding = here.look_at_network(INTERFACES, usual, named, "network.interface", batch=batch)
    assert (finding.result, words in finding.found) == (result, True)


@pytest.mark.parametrize(
    "changes, private, batch, result, words",
    [
        ({}, "", True, Result.OK, "nfs4, 90.0 GiB free"),
        ({"file_system": "ext4"}, "", True, Result.WARNING, "a disk of this machine alone"),
        ({"file_system": "fuse.sshfs"}, "", True, Result.OK, "fuse.sshfs"),
        ({"file_system": "ext4"}, "", False, Result.OK, "ext4"),
        ({"free": GIB // 2}, "", True, Result.WARNING, "nearly full: 0.5 GiB free"),
        ({"free_files": 0}, "", True, Result.WARNING, "nearly full: 90.0 GiB free, 0 files"),
        ({"free_files": None}, "", True, Result.OK, "90.0 GiB free"),
        ({"trouble": "/home: Permission denied"}, "", True, Result.FAILED, "Permission denied"),
        ({}, "It is writable by others.", True, Result.FAILED, "writable by others."),
    ],
)
def test_cluster_directories_are_private_and_roomy_and_seen_by_nodes(
    changes: dict[str, Any], private: str, batch: bool, result: Result, words: str
) -> None:
    finding = here.look_at_directory(a_directory(**changes), private, batch=batch)
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
def test_open_files_are_told_by_what_so_many_workers_want(
    limits: list[int], workers: int, words: str
) -> None:
    finding = here.look_at_open_files(limits, workers)
    assert (finding.result is Result.WARNING) is bool(words)
    assert words in finding.way_out


def test_a_head_that_ends_with_jupyter_is_a_warning_with_a_way_out() -> None:
    finding = here.look_at_survival(Survival(False, "No: it ends with the pod."))
    assert finding.result is Result.WARNING
    assert "head.placement: job" in finding.way_out


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
    present: bool, agent: bool, keys: list[str], result: Result
) -> None:
    assert here.look_at_ssh(present, agent, keys).result is result


def test_only_a_minor_release_of_python_or_another_dask_is_a_difference() -> None:
    ours = {"python": "3.11.7", "dask": "2026.8.0", "distributed": "2026.8.0"}
    same = here.look_at_versions("/env/python", {**ours, "python": "3.11.2"}, ours, "/usr/python")
    assert same.result is Result.OK
    theirs = {**ours, "dask": "2026.7.1", "python": "3.12.1"}
    other = here.look_at_versions("/env/python", theirs, ours, "/usr/python")
    assert other.result is Result.WARNING
    assert "this process has python 3.11.7, dask 2026.8.0 (/usr/python)" in other.found


@pytest.mark.parametrize(
    "troubles, seconds, result, cure",
    [
        ({}, 1.5, Result.OK, ""),
        ({}, 75.0, Result.WARNING, "node-local file system"),
        ({"dask_cuda": "No module named 'dask_cuda'"}, 1.0, Result.FAILED, "dask-cuda[cu12]"),
        (
            {"dask_cuda": "ImportError: cannot import name 'bindings' from 'cuda' (unknown)"},
            1.0,
            Result.FAILED,
            "came without CUDA's own packages",
        ),
        ({"": "/x/python: No such file or directory"}, 0.0, Result.FAILED, "nodes share"),
    ],
)
def test_an_import_that_fails_or_is_slow_names_its_cure(
    troubles: dict[str, str], seconds: float, result: Result, cure: str
) -> None:
    facts = {"versions": {"distributed": "1"}, "troubles": troubles, "seconds": seconds}
    finding = here.look_at_imports(facts, "/x/python")
    assert (finding.result, cure in finding.way_out) == (result, True)


def test_commands_that_are_not_here_are_named() -> None:
    assert here.look_at_commands("Slurm", []) is None
    finding = here.look_at_commands("Slurm", ["sbatch", "scancel"])
    assert finding is not None
    assert (finding.result, "sbatch, scancel" in finding.found) == (Result.FAILED, True)
