"""The pods of a cluster stay in the context that kubectl has at its start."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import elsewhere, find_backend
from jupyter_gpucluster.batch.kubernetes import kubectl
from jupyter_gpucluster.batch.kubernetes.kubectl import CONTEXT
from jupyter_gpucluster.batch.queue import ProcessRunner, Queue
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.head.process import NodeRunner
from jupyter_gpucluster.launch.plan import completed
from jupyter_gpucluster.launch.spec import group_profile
from jupyter_gpucluster.profiles import Profile
from tests.commands import put_command

HUB = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
CONTEXTS: dict[str, dict[str, str]] = {
    "near": {"namespace": "physics"},
    "far": {"namespace": "chemistry"},
    "bare": {},
    "usual": {"namespace": "default"},
    "odd": {"namespace": "No Name"},
}


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a pod finds its service account."""
    place = tmp_path / "account"
    place.mkdir()
    for name, text in (("token", "secret"), ("namespace", "hub\n")):
        (place / name).write_text(text)
    monkeypatch.setattr(kubectl, "ACCOUNT", str(place))
    return place


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that kubectl reads."""
    contexts = [
        {"name": name, "context": {"cluster": "c", "user": "ann", **more}}
        for name, more in CONTEXTS.items()
    ]
    access = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "ann", "user": {"token": "secret"}}],
        "contexts": contexts,
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(access))
    switch(path, "near")
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def switch(file: Path, context: str) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"current-context": context}))


def a_profile(groups: dict[str, Any] | None = None, **job: Any) -> Profile:
    given = {"title": "x", "backend": "kubernetes", "job": {"gpus": 0, **job}}
    return Profile.model_validate(given | {"groups": groups or {}})


def place(profile: Profile, **variables: str) -> tuple[tuple[str, ...], str]:
    """Return how the jobs of a profile are sent where, by arguments and a namespace."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        job = completed(profile).job
    return tuple(job.submit_args), job.account


def test_what_kubectl_is_set_to_is_settled(file: Path) -> None:
    assert place(a_profile()) == (("--context=near",), "physics")
    switch(file, "far")
    assert place(a_profile()) == (("--context=far",), "chemistry")
    assert place(a_profile(account="small")) == (("--context=far",), "small")


def test_what_the_profile_says_counts(file: Path) -> None:
    own = ("--validate=false", "--context=far")
    assert place(a_profile(submit_args=own)) == (own, "chemistry")
    with pytest.raises(InvalidInput, match="no context 'nosuch'") as caught:
        place(a_profile(submit_args=["--context=nosuch"]))
    assert caught.value.detail == "job.submit_args"


@pytest.mark.parametrize(
    "context,beside,in_a_pod",
    [
        ("near", "physics", "physics"),
        ("bare", "default", "hub"),
        ("usual", "default", "default"),
        ("odd", "", ""),
    ],
)
def test_a_namespace_that_is_not_named_is_the_pods_own_or_the_usual(
    file: Path, account: Path, context: str, beside: str, in_a_pod: str
) -> None:
    switch(file, context)
    assert place(a_profile())[1] == beside
    assert place(a_profile(), **HUB)[1] == in_a_pod
    (account / "namespace").unlink()
    assert place(a_profile(), **HUB, POD_NAMESPACE="hub")[1] == in_a_pod
    (account / "token").unlink()  # then kubectl knows of no pod, either
    assert place(a_profile(), **HUB, POD_NAMESPACE="hub")[1] == beside


def test_without_a_file_a_pod_has_a_namespace_only(tmp_path: Path, account: Path) -> None:
    nothing = {"KUBECONFIG": str(tmp_path / "none")}
    assert place(a_profile(), **nothing) == ((), "")
    assert place(a_profile(), **nothing, **HUB) == ((), "hub")
    (account / "token").unlink()
    assert place(a_profile(), **nothing, **HUB) == ((), "")


@pytest.mark.parametrize("script", ["exit 1", "echo '{'", "echo '[]'", "echo 5; exit 0"])
def test_what_kubectl_does_not_tell_is_left_open(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_command(tmp_path, monkeypatch, "kubectl", script)
    assert place(a_profile()) == ((), "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert place(a_profile()) == ((), "")


def test_worker_groups_are_there_too(file: Path) -> None:
    groups = {
        "cpu": {"count": 1, "job": {"submit_args": ["--validate=false"]}},
        "io": {"count": 1},
    }
    profile = completed(a_profile(groups))
    for name in groups:
        job = group_profile(profile, name).job
        assert ("--context=near" in job.submit_args, job.account) == (True, "physics")
    other = {"io": {"count": 1, "job": {"account": "chemistry"}}}
    with pytest.raises(InvalidInput, match="a cluster's jobs are of one"):
        group_profile(completed(a_profile(other)), "io")


@pytest.mark.parametrize("has_file", [True, False])
def test_a_head_in_a_pod_without_the_file_takes_its_service_account(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_file: bool
) -> None:
    calls = put_command(tmp_path, monkeypatch, "kubectl", f'echo "${CONTEXT}"')
    variables = {**os.environ, CONTEXT: "near", "HOME": str(tmp_path)}
    if not has_file:
        del variables["KUBECONFIG"]
    argv = ["kubectl", "--context=near", "--namespace=physics", "delete", "pods", "p"]
    result = asyncio.run(NodeRunner("kubernetes", variables).run(argv))
    assert result.stdout == ("near\n" if has_file else "\n")
    given = "--context=near " if has_file else ""
    assert calls.read_text() == f"{given}--namespace=physics delete pods p\n"


@pytest.mark.parametrize(
    "name",
    ["arn:aws:eks:eu-west-1:12:cluster/x", "gke_p_europe-west1-b_c", "ann@site: a b", "$x'`"],
)
def test_a_context_may_have_any_name(file: Path, name: str) -> None:
    access = json.loads(file.read_text())
    access["contexts"].append({"name": name, "context": {"cluster": "c", "user": "ann"}})
    file.write_text(json.dumps(access))
    switch(file, name)
    profile = completed(a_profile())
    assert profile.job.submit_args == (f"--context={name}",)
    queue = Queue(
        find_backend("kubernetes"),
        ProcessRunner(elsewhere(profile.backend, profile.job) | dict(os.environ)),
    )
    assert asyncio.run(queue.poll(["gpc-abc123-1-0"])) is None
    assert queue.fix == ""  # the context was found, and its server asked in vain
    file.write_text(json.dumps(access | {"contexts": []}))
    assert asyncio.run(queue.poll(["gpc-abc123-1-0"])) is None
    assert shlex.quote(name) in queue.fix


def test_a_head_in_a_job_of_another_system_looks_for_no_file_of_kubectls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = put_command(tmp_path, monkeypatch, "sbatch", "")
    variables = {"PATH": os.environ["PATH"], "HOME": "/" + "x" * 5000}
    asyncio.run(NodeRunner("slurm", variables).run(["sbatch", "--context=x", "job.sh"]))
    assert calls.read_text() == "--context=x job.sh\n"
    # A place that cannot be looked at has no file.
    NodeRunner("kubernetes", variables | {CONTEXT: "near"})
