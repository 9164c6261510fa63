"""Requests that cannot be met are refused in one clear message, and leave nothing behind."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.client.gpucluster import GPUCluster
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import (
    ClusterConflict,
    ClusterNotFound,
    GpuClusterError,
    InvalidInput,
    LimitReached,
    ProfileNotFound,
    StateError,
    UnsuitableEnvironment,
)
from jupyter_gpucluster.state.view import ClusterView

from .conftest import Start, WriteProfile, start_ready
from .driving import fixed, processes_of

HOSTILE_NAMES = [
    "",
    "../x",
    "a\nb",
    "a" * 300,
    "-rf",
    ".hidden",
    "a b",
    "a/b",
    "ünï",
    "\u202ename",
    "a\0b",
]


def refusal(clusters: Clusters, profile: str = "local", **request: Any) -> GpuClusterError:
    """Return the error of a start that must fail, after a look at what it left."""
    before = clusters.list(ended=True)
    with pytest.raises(GpuClusterError) as caught:
        clusters.start(profile, **request)
    assert clusters.list(ended=True) == before
    directories = [path for path in clusters.root.glob("*") if path.name != ".lock"]
    assert len(directories) == len(before)
    assert len(list(Path(tempfile.gettempdir()).glob("gpc-*"))) == sum(
        not view.ended for view in before
    )
    error = caught.value
    assert error.message
    assert "\n" not in error.message
    assert "Traceback" not in error.message
    assert error.hint
    return error


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2", 10**30])
def test_a_number_of_workers_that_makes_no_sense(clusters: Clusters, workers: Any) -> None:
    error = refusal(clusters, target=fixed(workers))
    assert isinstance(error, InvalidInput)
    assert error.detail == "target"


def test_a_range_that_is_upside_down(clusters: Clusters) -> None:
    assert refusal(clusters, target=Target(3, 2)).detail == "target"


def test_more_workers_than_the_profile_allows(
    clusters: Clusters, write_profile: WriteProfile
) -> None:
    few = write_profile("few", "limits: {workers: 3}\n")
    error = refusal(clusters, few, target=fixed(4))
    assert isinstance(error, LimitReached)
    assert "3" in error.hint


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name(clusters: Clusters, name: str) -> None:
    error = refusal(clusters, name=name, target=fixed(1))
    assert isinstance(error, InvalidInput)
    assert error.detail == "name"
    assert error.message.isascii()
    assert len(error.message) < 120


def test_an_unknown_profile(clusters: Clusters) -> None:
    error = refusal(clusters, "lokal")
    assert isinstance(error, ProfileNotFound)
    assert "local" in error.hint


@pytest.mark.parametrize(
    "options", [{"memroy": "1 GB"}, {"memory": "lots"}, {"threads": 0}, {"threads": "two"}]
)
def test_a_bad_option(clusters: Clusters, options: dict[str, Any]) -> None:
    assert isinstance(refusal(clusters, target=fixed(1), options=options), InvalidInput)


@pytest.mark.parametrize("python", ["/bin/true", "/no/such/python", "/etc/passwd", "/tmp"])
def test_a_python_that_is_none(clusters: Clusters, python: str) -> None:
    error = refusal(clusters, target=fixed(1), python=python)
    assert isinstance(error, UnsuitableEnvironment)


def test_an_unknown_kernel(clusters: Clusters) -> None:
    assert isinstance(refusal(clusters, target=fixed(1), kernel="none-such"), InvalidInput)


def test_a_cluster_that_is_not_there(clusters: Clusters) -> None:
    for verb in (clusters.get, clusters.stop, clusters.forget, clusters.why, clusters.logs):
        for name in ("nobody", "../x", "a\nb", "abcdef", ""):
            with pytest.raises(ClusterNotFound) as caught:
                verb(name)
            assert caught.value.hint == "No cluster is running."
            assert caught.value.__notes__ == ["hint: No cluster is running."]
            assert "\n" not in caught.value.message


def test_a_name_that_is_taken_and_is_free_again_afterwards(
    clusters: Clusters, start: Start
) -> None:
    first = start(name="mine")
    error = refusal(clusters, name="mine", target=fixed(1))
    assert isinstance(error, ClusterConflict)
    assert isinstance(refusal(clusters, name=first.id, target=fixed(1)), ClusterConflict)
    with pytest.raises(ClusterNotFound):
        clusters.logs("mine", "no-such-job")
    clusters.stop("mine")
    clusters.wait_stopped("mine", timeout=30)
    assert clusters.why("mine") == "mine is stopped.\nStopped by you."
    with pytest.raises(ClusterNotFound) as caught:
        clusters.get("nobody")
    assert "list --all" in caught.value.hint
    for verb in (clusters.client_code, clusters.endpoint):
        with pytest.raises(ClusterConflict):
            verb("mine")
    with pytest.raises(ClusterConflict):
        clusters.update("mine", target=fixed(2))
    assert clusters.stop("mine").phase is Phase.STOPPED
    second = start(name="mine")
    assert second.id != first.id
    assert clusters.get("mine").id == second.id
    with pytest.raises(ClusterConflict, match="2 clusters have the name mine") as ambiguous:
        clusters.forget("mine")
    assert ambiguous.value.hint.endswith(f"jupyter gpucluster forget {first.id}")
    clusters.forget(first.id)
    assert [view.id for view in clusters.list(ended=True)] == [second.id]


def test_one_cluster_more_than_a_user_may_have(
    clusters: Clusters, write_profile: WriteProfile
) -> None:
    one = write_profile("one", "limits: {clusters: 1}\n")
    first = clusters.start(one, target=fixed(1))
    assert first.name == "one-1"
    error = refusal(clusters, one, target=fixed(1))
    assert isinstance(error, LimitReached)
    assert "one-1" in error.message


def test_the_files_of_a_cluster_may_lie_elsewhere(
    clusters: Clusters, write_profile: WriteProfile, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "head: {directory: '$PLACE/{who}'}\noptions: {who: {type: string, default: ann}}\n"
    far = write_profile("far", text)
    error = refusal(clusters, far, target=fixed(1))
    assert (error.detail, "not set here" in error.message) == ("head.directory", True)
    assert list(clusters.list(ended=True)) == []
    monkeypatch.setenv("PLACE", str(home / "scratch"))
    view = start_ready(clusters, far)
    assert view.directory == str(home / "scratch" / "ann" / view.id)
    assert (clusters.root / view.id).stat().st_mode & 0o7777 == 0o600
    clusters.stop(view.id)
    clusters.wait_stopped(view.id, timeout=60)
    clusters.forget(view.id)
    assert not (clusters.root / view.id).exists()
    assert not Path(view.directory).exists()


def test_the_same_request_twice_at_once_starts_one_cluster(clusters: Clusters) -> None:
    views: list[ClusterView] = []

    def request() -> None:
        views.append(clusters.start("local", target=fixed(1), request_id="the-same"))

    threads = [threading.Thread(target=request) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(views) == 3
    assert len({view.id for view in views}) == 1
    assert len(clusters.list()) == 1
    clusters.stop(views[0].id)
    clusters.wait_stopped(views[0].id, timeout=30)
    again = clusters.start("local", target=fixed(1), request_id="the-same")
    assert again.id == views[0].id
    assert not processes_of(again.id)


def test_reuse_takes_the_cluster_that_runs_and_names_what_differs(clusters: Clusters) -> None:
    request: dict[str, Any] = {"target": fixed(1), "reuse": True}
    first = clusters.start("local", **request)
    assert first.name == "local"
    assert clusters.start("local", **request).id == first.id
    assert clusters.start("local", reuse=True).id == first.id
    for changes, words in (
        ({"target": fixed(2)}, "number of workers is 1, not 2"),
        ({"python": "/usr/bin/env"}, ""),
    ):
        error = refusal(clusters, **{**request, **changes})
        assert words in error.message
    clusters.stop(first.id)
    clusters.wait_stopped(first.id, timeout=30)
    again = clusters.start("local", **request)
    assert again.id != first.id
    # A later process, as after the restart of a kernel, takes it too, and lets go of it.
    with GPUCluster("local", 1, reuse=True) as cluster:
        assert cluster.id == again.id
    assert clusters.get(again.id).phase is not Phase.STOPPED
    with GPUCluster("local", 1, reuse=True) as cluster:
        assert cluster.id == again.id
    assert [view.name for view in clusters.live()] == ["local"]


def test_a_failed_cluster_keeps_its_name_while_it_is_listed(
    clusters: Clusters, write_profile: WriteProfile
) -> None:
    profile = write_profile(
        "broken", "environment: {prologue: [exit 3]}\npolicy: {replacements: 0}\n"
    )
    names = []
    for _ in range(2):
        view = clusters.start(profile, target=fixed(1))
        names.append(view.name)
        with pytest.raises(GpuClusterError):
            clusters.wait_ready(view.id, timeout=60)
        clusters.wait_stopped(view.id, timeout=30)
    assert names == ["broken-1", "broken-2"]


def test_starts_at_once_get_different_names(clusters: Clusters) -> None:
    threads = [
        threading.Thread(target=lambda: clusters.start("local", target=fixed(1))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(view.name for view in clusters.list()) == ["local-1", "local-2", "local-3"]


def test_no_space_for_temporary_files(
    clusters: Clusters, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(home / "missing"))
    error = refusal(clusters, target=fixed(1))
    assert isinstance(error, StateError)
    assert "TMPDIR" in error.hint
