"""Settings that pods share with the one that Jupyter runs in."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.contradictions import directives_of
from jupyter_gpucluster.batch.kubernetes.kubectl import ACCOUNT
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.job import JobShape, Submission
from jupyter_gpucluster.launch import plan
from jupyter_gpucluster.launch.plan import completed
from jupyter_gpucluster.profiles import Profile
from tests.commands import put_command

KUBERNETES = find_backend("kubernetes")
HUB = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
TOKEN = {"name": "kube-api-access-x", "mountPath": ACCOUNT, "readOnly": True}
HOME = {"name": "home", "mountPath": "/home/ann", "subPath": "ann's {x}"}
CLAIM = {"name": "home", "persistentVolumeClaim": {"claimName": "homes"}}
OWN: dict[str, Any] = {
    "metadata": {"name": "jupyter-ann", "namespace": "hub", "uid": "5b0c"},
    "spec": {
        "containers": [
            {"name": "istio-proxy", "image": "mesh:1"},
            {
                "name": "notebook",
                "image": "dask-gpu:1",
                "volumeMounts": [TOKEN, HOME],
                "securityContext": {"allowPrivilegeEscalation": False},
                "resources": {"limits": {"cpu": "1"}},
                "env": [{"name": "JUPYTERHUB_API_TOKEN", "value": "secret"}],
            },
        ],
        "volumes": [{"name": "kube-api-access-x", "projected": {}}, CLAIM, {"name": "mesh"}],
        "securityContext": {"runAsUser": 1000, "fsGroup": 100},
        "serviceAccountName": "user",
        "imagePullSecrets": [{"name": "pull"}],
        "nodeName": "n1",
    },
}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a pod; return where kubectl writes what it is asked."""
    monkeypatch.setattr(plan, "_answers", {})
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", HUB["KUBERNETES_SERVICE_HOST"])
    return put_command(tmp_path, monkeypatch, "kubectl", f"echo {shlex.quote(json.dumps(OWN))}")


def a_profile(*directives: str, **more: Any) -> Profile:
    given = {"title": "x", "backend": "kubernetes", "job": {"gpus": 0, "directives": directives}}
    return Profile.model_validate(given | more)


def pod_of(profile: Profile) -> dict[str, Any]:
    """Return the pod that a job of a profile is."""
    shape = JobShape(directives=profile.job.directives)
    text = "\n".join(
        directives_of(KUBERNETES, shape, KUBERNETES.directives(shape, "gpc-abc123-1", "/o"))
    )
    sent = Submission("gpc-abc123-1", "/j.sh", text=text)
    return dict(json.loads(KUBERNETES.stdin(sent))["items"][0])


def test_pods_are_like_the_one_that_jupyter_is_in_and_go_with_it(asked: Path) -> None:
    pod = pod_of(completed(a_profile()))
    assert pod["spec"] == {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "worker",
                "image": "dask-gpu:1",
                "command": ["/bin/bash", "/j.sh"],
                "env": [{"name": "GPUCLUSTER_TASK", "value": "0"}],
                "volumeMounts": [HOME],
                "securityContext": {"allowPrivilegeEscalation": False},
            }
        ],
        "volumes": [CLAIM],
        "securityContext": {"runAsUser": 1000, "fsGroup": 100},
        "serviceAccountName": "user",
        "imagePullSecrets": [{"name": "pull"}],
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "jupyter-ann", "uid": "5b0c"}
    assert pod["metadata"]["ownerReferences"] == [owner]
    assert asked.read_text().endswith(f"\nget pod {os.uname().nodename} --output=json\n")


def test_what_the_profile_says_counts(asked: Path) -> None:
    data = 'spec.volumes[0] = {"name": "data"}'
    said = a_profile(data, "spec.securityContext.runAsUser = 7", "spec.containers[0].image = own:1")
    pod = pod_of(completed(said))
    assert pod["spec"]["volumes"] == [{"name": "data"}]
    assert "volumeMounts" not in pod["spec"]["containers"][0]
    assert pod["spec"]["securityContext"] == {"runAsUser": 7}
    assert pod["spec"]["containers"][0]["image"] == "own:1"
    assert pod["spec"]["serviceAccountName"] == "user"
    container = {"container": {"runtime": "pod", "image": "own:2"}}
    lines = completed(a_profile(environment=container)).job.directives
    assert not any("image =" in line for line in lines)


def test_worker_groups_are_like_it_too(asked: Path) -> None:
    group = {"count": 2, "job": {"directives": ["spec.volumes[0].name = own"]}}
    profile = completed(a_profile(groups={"cpu": group}))
    lines = profile.groups["cpu"].job.directives
    assert any(line.startswith("spec.containers[0].image =") for line in lines)
    assert not any("volumeMounts" in line for line in lines)
    assert any("volumeMounts" in line for line in profile.job.directives)


def test_a_head_in_a_pod_of_its_own_does_not_go_with_jupyter(asked: Path) -> None:
    pod = pod_of(completed(a_profile(head={"placement": "job", "submit": "relay"})))
    assert "ownerReferences" not in pod["metadata"]


@pytest.mark.parametrize("account,same", [("hub", True), ("elsewhere", False)])
def test_volumes_and_accounts_are_of_the_namespace(asked: Path, account: str, same: bool) -> None:
    profile = a_profile(job={"gpus": 0, "account": account})
    assert bool(completed(profile).job.directives) is same


def test_elsewhere_nothing_is_asked(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = Profile.model_validate({"title": "x", "backend": "slurm"})
    assert completed(slurm) is slurm
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    profile = a_profile()
    assert completed(profile).job.directives == ()
    assert "get pod" not in asked.read_text()


@pytest.mark.parametrize("script", ["exit 1", "echo '{'", "echo '[]'", "echo '{\"spec\": 5}'"])
def test_where_the_pod_may_not_be_looked_at_nothing_is_added(
    script: str, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = put_command(tmp_path, monkeypatch, "kubectl", script)
    for _ in range(3):  # as often as somebody types
        assert completed(a_profile(), draft=True).job.directives == ()
    assert calls.read_text().count("get pod") == 1


def test_a_pod_that_was_not_shown_is_asked_for_again_later(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(*, draft: bool = True) -> bool:
        return bool(completed(a_profile(), draft=draft).job.directives)

    put_command(tmp_path, monkeypatch, "kubectl", "exit 1")
    assert not shown()
    put_command(tmp_path, monkeypatch, "kubectl", f"echo {shlex.quote(json.dumps(OWN))}")
    assert not shown()
    monkeypatch.setattr(plan, "REFUSED_SECONDS", 0.0)
    assert shown()


def test_a_start_asks_for_a_pod_that_was_not_shown_to_a_draft_just_before(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_command(tmp_path, monkeypatch, "kubectl", "exit 1")
    assert completed(a_profile(), draft=True).job.directives == ()
    put_command(tmp_path, monkeypatch, "kubectl", f"echo {shlex.quote(json.dumps(OWN))}")
    assert completed(a_profile()).job.directives


def test_our_own_pod_is_asked_for_in_the_context_that_the_profile_names(asked: Path) -> None:
    completed(a_profile(job={"gpus": 0, "submit_args": ["--context=near"]}))
    assert "\n--context=near get pod " in asked.read_text()


def test_a_preview_shows_it(asked: Path, home: Path) -> None:
    profiles = home / "data" / "gpucluster" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "beside.yaml").write_text("{title: x, backend: kubernetes, job: {gpus: 0}}")
    shown = Clusters(home / "clusters").script("beside")
    assert '#KUBERNETES spec.containers[0].image = "dask-gpu:1"\n' in shown.text
    assert "kubectl create --output=name --filename=- <<'END'" in shown.command
