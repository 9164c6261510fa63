"""Kubernetes' dialect: manifests, and what kubectl and the API's objects say."""

from __future__ import annotations

import contextlib
import json
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpucluster.batch import arguments_elsewhere, cancel_command, elsewhere
from jupyter_gpucluster.batch.contradictions import directives_of
from jupyter_gpucluster.batch.kubernetes.dialect import Kubernetes
from jupyter_gpucluster.batch.kubernetes.kubectl import CONTEXT, NAMESPACE
from jupyter_gpucluster.batch.kubernetes.manifest import escaped, pod_of, steps_of
from jupyter_gpucluster.batch.kubernetes.pod_status import DISRUPTED, FAILED, REASONS
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import (
    Capacity,
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Submission,
)
from tests.batch.answers import answer
from tests.batch.recorded import recordings

KUBERNETES = Kubernetes()
MARK = "gpc-abc123-1"
HEAD = "\n".join(["#!/bin/bash", "#KUBERNETES spec.containers[0].image = python:3.12"])
THREE = Submission(MARK, "/home/ann/jobs/gpc-abc123-1.sh", 3, text=f"{HEAD}\necho hello\n")
LABELS = {"jupyter-gpucluster/mark": MARK, "jupyter-gpucluster/task": "1"}
FROM_SERVER = 'Error from server ({0}): error when creating "STDIN": {1}\n'
QUOTA = (
    f'pods "{MARK}-1" is forbidden: exceeded quota: gpu-quota, requested: '
    "requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1"
)
TAKEN = FROM_SERVER.format("AlreadyExists", 'pods "gpc-abc123-1-{0}" already exists')


def listing(*items: dict[str, Any]) -> CommandResult:
    return answer(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))


def pod(phase: str = "Pending", **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": f"{MARK}-1", "namespace": "physics", "labels": LABELS},
        "spec": {"nodeName": "gpu01", "containers": [{"name": "worker"}]},
        "status": {"phase": phase, **status},
    }


def container(**state: Any) -> dict[str, Any]:
    """Return the part of a pod's status that tells of our container, beside a mesh's."""
    mesh = {"name": "istio-proxy", "state": {"running": {}}}
    return {"containerStatuses": [mesh, {"name": "worker", "state": state}]}


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    told = {"type": kind, "status": status, "reason": reason, "message": message}
    return {"conditions": [{"type": "Initialized", "status": "True"}, told]}


def refused(stderr: str, code: int = 1, stdout: str = "") -> BackendError:
    """Return the error of a submission that is refused, not lost."""
    with pytest.raises(BackendError) as caught:
        KUBERNETES.parse_submit(THREE, answer(stdout, code, stderr))
    assert not isinstance(caught.value, BackendUnavailable)
    return caught.value


def told(described: dict[str, Any]) -> JobStatus:
    return KUBERNETES.parse_status(listing(described))[f"{MARK}-1"]


def test_a_queue_is_a_label_for_kueue() -> None:
    lines = KUBERNETES.directives(JobShape(gpus=2, queue="gpu-queue"), MARK, "/logs/x.out")
    assert lines[1:] == [
        r"#KUBERNETES metadata.labels.kueue\.x-k8s\.io/queue-name = gpu-queue",
        r"#KUBERNETES spec.containers[0].resources.limits.nvidia\.com/gpu = 2",
    ]


@pytest.mark.parametrize(
    "request_,limits",
    [("amd.com/gpu", [r"amd\.com/gpu = 1"]),
     ("nvidia.com/mig-1g.5gb", [r"nvidia\.com/mig-1g\.5gb = 1"]), ("none", [])],
)  # fmt: skip
def test_gpus_may_be_other_vendors_and_slices_or_none(request_: str, limits: list[str]) -> None:
    lines = KUBERNETES.directives(JobShape(gpus=1, gpu_request=request_), MARK, "/o")
    limited = [f"#KUBERNETES spec.containers[0].resources.limits.{limit}" for limit in limits]
    assert lines == ["#KUBERNETES spec.restartPolicy = Never", *limited]


@pytest.mark.parametrize(
    "count,written",
    [(6 * 10**9, "6G"), (2**30, "1Gi"), (500 * 2**20, "500Mi"), (10**7, "10M"), (2**10, "1Ki"),
     (12345, "12345")],
)  # fmt: skip
def test_memory_is_written_without_a_loss(count: int, written: str) -> None:
    [_, line] = KUBERNETES.directives(JobShape(memory=count), MARK, "/o")
    assert line.endswith(f"limits.memory = {written}")


def test_a_submission_is_one_list_of_pods_that_differ_by_their_number() -> None:
    assert KUBERNETES.submit(THREE) == ["kubectl", "create", "--output=name", "--filename=-"]
    given = json.loads(KUBERNETES.stdin(THREE))
    assert (given["kind"], given["apiVersion"]) == ("List", "v1")
    assert [item["metadata"]["name"] for item in given["items"]] == [
        f"{MARK}-0", f"{MARK}-1", f"{MARK}-2",
    ]  # fmt: skip
    assert given["items"][1] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{MARK}-1",
            "labels": {"app.kubernetes.io/managed-by": "jupyter-gpucluster", **LABELS},
        },
        "spec": {
            "containers": [
                {
                    "name": "worker",
                    "image": "python:3.12",
                    "command": ["/bin/bash", "/home/ann/jobs/gpc-abc123-1.sh"],
                    "env": [{"name": "GPUCLUSTER_TASK", "value": "1"}],
                }
            ]
        },
    }


def manifest(*directives: str, **shape: Any) -> dict[str, Any]:
    """Return the pod of a job with these directives of its profile's own."""
    job = JobShape(directives=directives, **shape)
    text = "\n".join(
        directives_of(KUBERNETES, job, KUBERNETES.directives(job, MARK, "/logs/x.out"))
    )
    return dict(json.loads(KUBERNETES.stdin(Submission(MARK, "/j.sh", text=text)))["items"][0])


def test_directives_set_any_field_by_its_path() -> None:
    made = manifest(
        'spec.volumes[0] = {"name": "home", "persistentVolumeClaim": {"claimName": "home-ann"}}',
        'spec.containers[0].volumeMounts[0] = {"name": "home", "mountPath": "/home/ann"}',
        'spec.tolerations[0] = {"key": "nvidia.com/gpu", "operator": "Exists"}',
        'spec.containers[0].env[0] = {"name": "A", "value": "1"}',
        r"spec.nodeSelector.example\.org/rack = 7",
        "spec.containers[0].resources.requests.cpu = 500m",
        "spec.hostIPC = true",
        "spec.priorityClassName = batch",
        "metadata.annotations.note = 1 = 1, NaN",
        cpus=1,
    )
    spec = made["spec"]
    assert spec["volumes"][0]["persistentVolumeClaim"] == {"claimName": "home-ann"}
    assert spec["containers"][0]["volumeMounts"] == [{"name": "home", "mountPath": "/home/ann"}]
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert [each["name"] for each in spec["containers"][0]["env"]] == ["A", "GPUCLUSTER_TASK"]
    assert spec["nodeSelector"] == {"example.org/rack": "7"}
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": 1}, "requests": {"cpu": "500m"}}
    assert (spec["hostIPC"], spec["priorityClassName"]) == (True, "batch")
    assert made["metadata"]["annotations"] == {"note": "1 = 1, NaN"}


@pytest.mark.parametrize(
    "directive,words",
    [
        ("metadata.name = mine", "the job's name"),
        ("metadata.generateName = x", "by whose name"),
        ("metadata.namespace = physics", "job.account"),
        ('spec.containers[0].command = ["sleep"]', "what runs in the pod"),
        ("spec.containers[0].args[0] = x", "what runs in the pod"),
        ("spec.restartPolicy = OnFailure", "start again"),
        ("spec.containers[2].image = x", "is not a field of the pod"),
        ("spec.containers[9999999].image = x", "is not the path"),
        ("spec.containers[0].name.x = 1", "is not a field of the pod"),
        ("spec..x = 1", "is not the path"),
        ("spec.x. = 1", "is not the path"),
        ('spec.nodeSelector["a"] = 1', "is not the path"),
        ("nodes 5", "is not the path"),
        ("spec.containers[0].resources.limits.cpu = 2", "job.cpus"),
        ("spec.containers[0].resources.limits.memory = 1Gi", "job.memory"),
        ("spec.containers[0].resources = {}", "job.cpus"),
        (r"spec.containers[0].resources.limits.nvidia\.com/gpu = 2", "job.gpus"),
        (r"spec.nodeSelector.nvidia\.com/gpu\.product = T4", "job.gpu_type"),
        ("spec.activeDeadlineSeconds = 60", "job.walltime"),
    ],
)
def test_a_directive_that_cannot_be_or_contradicts_is_refused(directive: str, words: str) -> None:
    shape = {"cpus": 4, "gpus": 1, "gpu_type": "A100", "memory": 2**33, "walltime": 3600}
    with pytest.raises(InvalidInput) as caught:
        manifest(directive, **shape)
    assert words in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    "directives,skipped,words",
    [
        (['metadata = {"namespace": "other"}'], (), "job.account"),
        ([r"metadata.name\space = other"], (), "job.account"),
        ([], ("metadata.namespace",), "job.account"),
        (['metadata = {"generateName": "x"}'], (), "by whose name"),
        (['spec = {"containers": [{"name": "w", "image": "i"}]}'], (), "start again"),
        ([r"spec.restart\Policy = Always"], (), "start again"),
        ([], ("restartPolicy",), "start again"),
        ([], ("#KUBERNETES",), "job.account"),
        (['spec.containers[0] = {"name": "w", "args": ["x"]}'], (), "what runs in the pod"),
        (['spec.containers[00].command = ["sleep"]'], (), "what runs in the pod"),
        # These leave no pod.
        (["spec.containers = []"], (), ""),
        (["spec.containers[0] = text"], (), ""),
        (["metadata = text"], (), ""),
        (["metadata.labels = [1]"], (), ""),
        (["spec.containers[0].env = {}"], (), ""),
        (["spec = 5"], (), ""),
    ],
)
def test_what_is_not_up_to_a_profile_is_refused_in_any_spelling(
    directives: list[str], skipped: tuple[str, ...], words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        manifest(*directives, account="physics" if skipped else "", skip_directives=skipped)
    assert words in caught.value.message


def test_only_the_head_of_a_script_is_the_manifest() -> None:
    text = f"{HEAD}\nexport A='\n#KUBERNETES spec.hostNetwork = true\n'\n#KUBERNETES is here\n"
    [made] = json.loads(KUBERNETES.stdin(replace(THREE, count=1, text=text)))["items"]
    assert "hostNetwork" not in made["spec"]


def test_text_may_be_quoted_wherever_the_field_is() -> None:
    made = manifest(
        'metadata.annotations.inject = "false"',
        'spec.nodeSelector.rack = "7"',
        'spec.priorityClassName = "batch"',
        "metadata.annotations.note = 5",
    )
    assert made["metadata"]["annotations"] == {"inject": "false", "note": "5"}
    assert made["spec"]["nodeSelector"] == {"rack": "7"}
    assert made["spec"]["priorityClassName"] == "batch"


@pytest.mark.parametrize(
    "argument",
    ["--namespace=x", "-n x", "-nx", "--context x", "--context=", "--kubeconfig=/x", "--cluster=x"],
)
def test_an_argument_that_sends_pods_where_nobody_looks_is_refused(argument: str) -> None:
    job = JobShape(submit_args=tuple(argument.split()))
    with pytest.raises(InvalidInput) as caught:
        directives_of(KUBERNETES, job, KUBERNETES.directives(job, MARK, "/o"))
    assert caught.value.detail == "job.submit_args"
    fine = JobShape(submit_args=("--validate=false", "--context=x"))
    assert directives_of(KUBERNETES, fine, KUBERNETES.directives(fine, MARK, "/o"))


@settings(deadline=None)
@given(keys=st.lists(st.from_regex(r"[a-z]([a-z./_-]*[a-z])?", fullmatch=True), min_size=1))
def test_any_key_is_written_as_a_step_of_a_path(keys: list[str]) -> None:
    assert steps_of(".".join(map(escaped, keys))) == tuple(keys)


@settings(deadline=None)
@given(path=st.text(alphabet='ab.[]01\\{}$"= /', max_size=20), text=st.text(max_size=20))
def test_no_directive_raises_anything_but_our_errors(path: str, text: str) -> None:
    with contextlib.suppress(InvalidInput):
        made = pod_of([(path, text)])
        assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_the_answer_of_kubectl_names_the_pods() -> None:
    names = tuple(f"{MARK}-{task}" for task in range(3))
    created = "".join(f"pod/{name}\n" for name in names)
    assert KUBERNETES.parse_submit(THREE, answer(created)) == names
    warned = answer(created, 0, 'Warning: would violate PodSecurity "restricted:latest"\n')
    assert KUBERNETES.parse_submit(THREE, warned) == names


def test_pods_that_are_there_already_were_taken_before() -> None:
    again = answer(f"pod/{MARK}-2\n", 1, TAKEN.format(0) + TAKEN.format(1))
    assert len(KUBERNETES.parse_submit(THREE, again)) == 3
    with pytest.raises(BackendError):
        KUBERNETES.parse_submit(THREE, answer("", 1, TAKEN.format(0)))


def test_a_submission_that_is_partly_refused_names_what_was_accepted() -> None:
    error = refused(FROM_SERVER.format("Forbidden", QUOTA), stdout=f"pod/{MARK}-0\n")
    assert error.accepted == (f"{MARK}-0",)
    assert "exceeded quota" in error.message
    assert "STDIN" not in error.message
    assert "kubectl describe quota" in error.hint
    assert "exit code 1" in error.detail


@pytest.mark.parametrize(
    "stderr",
    [
        "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host"
        " or port?",
        "Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout",
        "Unable to connect to the server: net/http: TLS handshake timeout",
        "Unable to connect to the server: EOF",
        FROM_SERVER.format("InternalError", "Internal error occurred: etcdserver: leader changed"),
        FROM_SERVER.format("TooManyRequests", "the server has received too many requests"),
        "Error from server: etcdserver: request timed out",
        "error: the server is currently unable to handle the request",
    ],
)
def test_silence_is_no_refusal(stderr: str) -> None:
    with pytest.raises(BackendUnavailable):
        KUBERNETES.parse_submit(THREE, answer("", 1, stderr))


REFUSALS = [
    ("NotFound", 'namespaces "nosuch" not found', "job.account"),
    ("Forbidden", 'pods is forbidden: User "ann" cannot create resource "pods" in API group "" in'
     ' the namespace "closed"', "role"),
    ("Forbidden", 'pods "x" is forbidden: maximum memory usage per Container is 8Gi, but limit is'
     " 16Gi", "job.memory"),
    ("Forbidden", 'pods "x" is forbidden: failed quota: q: must specify limits.cpu for: worker',
     "job.cpus"),
    ("Forbidden", 'pods "x" is forbidden: violates PodSecurity "baseline:latest": host namespaces'
     " (hostNetwork=true)", "securityContext"),
    ("Forbidden", 'pods "x" is forbidden: no PriorityClass with name p was found',
     "priorityClassName"),
    ("Forbidden", 'pods "x" is forbidden: error looking up service account physics/s:'
     ' serviceaccount "s" not found', "serviceAccountName"),
    ("Forbidden", 'pods "x" is forbidden: unable to create new content in namespace physics because'
     " it is being terminated", "job.account"),
    ("Forbidden", 'pods "x" is forbidden: exceeded quota: gpu-quota, requested:'
     " requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0, limited:"
     " requests.nvidia.com/gpu=1", "describe quota"),
    ("Invalid", 'Pod "x" is invalid: spec.containers[0].image: Required value',
     "environment.container"),
    ("Invalid", 'Pod "x" is invalid: metadata.labels: Invalid value: "a b": a valid label must be'
     " an empty string", "job.directives"),
    ("BadRequest", 'Pod in version "v1" cannot be handled as a Pod: quantities must match the'
     " regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'", "500m"),
    ("BadRequest", 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown'
     ' field "spec.prority"', "path"),
    ("BadRequest", 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number'
     " into Go struct field EnvVar.spec.containers.env.value of type string", "quotes"),
]  # fmt: skip


@pytest.mark.parametrize("kind,words,fix", REFUSALS)
def test_a_refusal_has_a_way_out(kind: str, words: str, fix: str) -> None:
    error = refused(FROM_SERVER.format(kind, words))
    assert words in error.message
    assert fix in error.hint


@pytest.mark.parametrize(
    "code,stderr,fix",
    [
        (127, "kubectl: No such file or directory", "where Jupyter runs"),
        (1, "The connection to the server localhost:8080 was refused - did you specify the right"
         " host or port?", "KUBECONFIG"),
        (1, "error: You must be logged in to the server (Unauthorized)", "log in again"),
        (1, "error: You must be logged in to the server (the server has asked for the client to"
         " provide credentials)", "log in again"),
    ],
)  # fmt: skip
def test_who_has_no_access_is_told_so(code: int, stderr: str, fix: str) -> None:
    assert fix in refused(stderr, code).hint
    with pytest.raises(BackendUnavailable):
        KUBERNETES.parse_status(answer("", code, stderr))


def test_all_commands_work_where_pods_are_sent_to(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    program.chmod(0o755)
    job = JobShape(account="physics", submit_args=("--context=old", "--context=arn:a/b c"))
    argv = KUBERNETES.status("ann", [f"{MARK}-0", f"{MARK}-1", "gpc-abc123-2-0"])
    for variables, words in (
        ({}, []),
        (elsewhere("kubernetes", job), ["--context=arn:a/b c", "--namespace=physics"]),
        ({CONTEXT: "$(a) b", NAMESPACE: "x --all"}, ["--context=$(a) b", "--namespace=x --all"]),
    ):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **variables}
        said = subprocess.check_output(argv, env=environment, text=True).splitlines()
        selector = "--selector=jupyter-gpucluster/mark in (gpc-abc123-1,gpc-abc123-2)"
        assert said == [*words, "get", "pods", "--output=json", selector]
    cancel = cancel_command(KUBERNETES, ["p"], arguments_elsewhere("kubernetes", job))
    assert cancel == [
        "kubectl", "--context=arn:a/b c", "--namespace=physics",
        "delete", "pods", "--wait=false", "--ignore-not-found", "p",
    ]  # fmt: skip
    assert arguments_elsewhere("kubernetes", JobShape()) == ()


GONE = "Error in configuration: context was not found for specified context: site a\n"


@pytest.mark.parametrize("said", [GONE, 'error: context "site a" does not exist\n'])
def test_a_context_that_is_not_there_any_more_is_no_answer_and_has_a_way_out(said: str) -> None:
    for ask in (partial(KUBERNETES.parse_submit, THREE), KUBERNETES.parse_status):
        with pytest.raises(BackendUnavailable, match="lacks the context 'site a'") as caught:
            ask(answer("", 1, said))
        assert "kubectl config rename-context OTHER 'site a'" in caught.value.hint


def test_all_pods_of_ours_are_listed_where_one_is_lost_or_there_are_too_many() -> None:
    everything = "app.kubernetes.io/managed-by=jupyter-gpucluster"
    assert KUBERNETES.status("ann", [])[-1] == everything
    assert KUBERNETES.status("ann", [f"gpc-abc123-{n}-0" for n in range(51)])[-1] == everything
    assert KUBERNETES.status("ann", ["a) or (b"])[-1] == everything


def test_a_running_pod_tells_its_node_its_start_and_its_end() -> None:
    running = pod(
        "Running",
        startTime="2026-11-28T10:00:00Z",
        **container(running={"startedAt": "2026-11-28T10:00:20Z"}),
    )
    running["spec"]["activeDeadlineSeconds"] = 600
    assert told(running) == JobStatus(
        f"{MARK}-1", JobState.RUNNING, MARK, 1, nodes=("gpu01",), started=1795860020.0,
        ends=1795860600.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "message,advice",
    [
        ("0/9 nodes are available: 9 Insufficient nvidia.com/gpu.", "job.gpus"),
        ("0/9 nodes are available: 2 Insufficient nvidia.com/gpu, 7 node(s) didn't match Pod's node"
         " affinity/selector.", "job.gpus"),
        ("0/9 nodes are available: 9 Insufficient amd.com/gpu.", "job.gpus"),
        ("0/9 nodes are available: 9 Insufficient nvidia.com/mig-1g.5gb.", "slices"),
        ("0/9 nodes are available: 9 Insufficient memory.", "job.memory"),
        ("0/9 nodes are available: 9 Insufficient cpu.", "job.cpus"),
        ("0/9 nodes are available: 9 node(s) didn't match Pod's node affinity/selector.",
         "job.gpu_type"),
        ("0/9 nodes are available: 9 node(s) had untolerated taint {nvidia.com/gpu: present}.",
         "spec.tolerations"),
        ('0/9 nodes are available: persistentvolumeclaim "home" not found.', "claimName"),
        ("0/9 nodes are available: pod has unbound immediate PersistentVolumeClaims.", "pvc"),
        ("0/9 nodes are available: 9 node(s) had volume node affinity conflict.", "ReadWriteMany"),
        ("0/9 nodes are available: 9 node(s) were unschedulable.", "administrators"),
    ],
)  # fmt: skip
def test_a_pod_without_a_node_says_what_it_waits_for(message: str, advice: str) -> None:
    more = f"{message} preemption: 0/9 nodes are available: 9 Preemption is not helpful."
    status = told(pod(**condition("PodScheduled", "False", "Unschedulable", more)))
    assert (status.state, status.unsatisfiable) == (JobState.PENDING, False)
    words = KUBERNETES.explain(status)
    assert words.startswith(message)
    assert advice in words
    assert "preemption" not in words


@pytest.mark.parametrize(
    "reason,message,words",
    [
        ("ContainerCreating", "", f"kubectl describe pod {MARK}-1"),
        ("ImagePullBackOff", 'Back-off pulling image "nosuch:1"', '"nosuch:1". Check'),
        ("ErrImagePull", "rpc error: {x}", "rpc error: {x}. Check environment.container.image"),
        ("InvalidImageName", 'couldn\'t parse image name "A:1"', "no valid name"),
        ("CreateContainerConfigError", 'secret "s" not found', 'secret "s" not found'),
        ("SomethingNew", "of a version to come", "SomethingNew: of a version to come."),
    ],
)
def test_a_container_that_does_not_start_says_why(reason: str, message: str, words: str) -> None:
    waiting = container(waiting={"reason": reason, **({"message": message} if message else {})})
    status = told(pod(**waiting))
    assert status.state is JobState.PENDING
    assert words in KUBERNETES.explain(status)
    assert status.unsatisfiable == (reason == "InvalidImageName")


def test_what_kueue_holds_back_waits_and_what_others_do_is_held() -> None:
    gated = pod(**condition("PodScheduled", "False", "SchedulingGated", "non-empty gates"))
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert told(gated).state is JobState.PENDING
    assert "Kueue" in KUBERNETES.explain(told(gated))
    gated["spec"]["schedulingGates"].append({"name": "example.org/wait"})
    assert told(gated).state is JobState.HELD
    assert "gate" in KUBERNETES.explain(told(gated))


ENDS: list[tuple[dict[str, Any], JobState, str]] = [
    (pod("Succeeded", **container(terminated={"exitCode": 0})), JobState.DONE, ""),
    (pod("Failed", **container(terminated={"exitCode": 3, "reason": "Error"})), JobState.FAILED,
     "exit code 3"),
    (pod("Failed", **container(terminated={"exitCode": 127, "reason": "Error"})), JobState.FAILED,
     "volumeMounts"),
    (pod("Failed", **container(terminated={"exitCode": 137, "reason": "OOMKilled"})),
     JobState.OUT_OF_MEMORY, "job.memory"),
    (pod("Running", **container(terminated={"exitCode": 1})), JobState.FAILED, "exit code 1"),
    (pod("Failed", **container(terminated={"exitCode": 128, "reason": "StartError", "message":
     'exec: "/bin/bash": no such file'})), JobState.FAILED, "needs /bin/bash"),
    (pod("Failed", reason="DeadlineExceeded", message="Pod was active on the node longer than the"
     " specified deadline"), JobState.TIMEOUT, "walltime"),
    (pod("Failed", reason="Evicted", message="The node was low on resource: memory. "),
     JobState.PREEMPTED, "low on resource: memory"),
    (pod("Failed", reason="Terminated", message="Pod was terminated in response to imminent node"
     " shutdown."), JobState.NODE_FAIL, "shut down"),
    (pod("Running", reason="NodeLost", message="Node gpu01 which was running pod x is"
     " unresponsive"), JobState.NODE_FAIL, "does not answer"),
    (pod("Failed", reason="UnexpectedAdmissionError", message="Allocate failed due to no healthy"
     " devices present"), JobState.FAILED, "unhealthy"),
    (pod("Failed", reason="OutOfnvidia.com/gpu", message="Node didn't have enough resource"),
     JobState.FAILED, "less free"),
    (pod("Failed", reason="Other", message="new\nlines"), JobState.FAILED, "Other: new lines"),
    (pod("Running", **condition("DisruptionTarget", "True", "PreemptionByScheduler", "make room")),
     JobState.PREEMPTED, "priority"),
    (pod("Running", **condition("DisruptionTarget", "True", "EvictionByEvictionAPI")),
     JobState.PREEMPTED, "emptied"),
    (pod("Running", **condition("DisruptionTarget", "True", "DeletionByTaintManager")),
     JobState.NODE_FAIL, "down"),
    (pod("Unknown"), JobState.UNKNOWN, ""),
]  # fmt: skip


@pytest.mark.parametrize("described,state,words", ENDS)
def test_every_end_of_a_pod_has_its_state_and_its_words(
    described: dict[str, Any], state: JobState, words: str
) -> None:
    status = told(described)
    assert status.state is state
    assert words in KUBERNETES.explain(status)


def test_a_container_that_a_mesh_put_before_ours_says_nothing_about_it() -> None:
    made = pod("Running", **container(terminated={"exitCode": 3, "reason": "Error"}))
    env = [{"name": "GPUCLUSTER_TASK", "value": "1"}]
    made["spec"]["containers"] = [{"name": "istio-proxy"}, {"name": "worker", "env": env}]
    assert (told(made).state, told(made).exit_code) == (JobState.FAILED, 3)


def test_a_pod_that_is_deleted_is_ending_until_its_container_has_ended() -> None:
    deleted = pod("Running", **container(running={}))
    deleted["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z"
    assert told(deleted).state is JobState.ENDING
    deleted["status"] |= {"phase": "Failed", **container(terminated={"exitCode": 143})}
    assert told(deleted).state is JobState.FAILED


@pytest.mark.parametrize("reason", [*DISRUPTED, *FAILED])
def test_every_reason_of_an_end_has_a_sentence(reason: str) -> None:
    state = {**DISRUPTED, **FAILED}[reason]
    words = KUBERNETES.explain(JobStatus("p", state, reason=f"{reason}: something"))
    assert words == REASONS.say("ended", reason, message="something")


def node(name: str, gpus: str, product: str = "A100", **more: Any) -> dict[str, Any]:
    ready = {"conditions": [{"type": "Ready", "status": more.pop("ready", "True")}]}
    labels = {"nvidia.com/gpu.product": product} if product else {}
    amounts = {"allocatable": {"cpu": "64", "memory": "1Ti", "nvidia.com/gpu": gpus, **more}}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {**ready, **amounts},
    }


def user_of(where: str, gpus: object, phase: str = "Running") -> dict[str, Any]:
    limits = {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    spec = {"nodeName": where, "containers": [limits, {"name": "proxy"}]}
    return {"kind": "Pod", "spec": spec, "status": {"phase": phase}}


def test_free_gpus_are_those_that_no_pod_on_an_open_node_has() -> None:
    closed = node("gpu03", "4")
    closed["spec"] = {"unschedulable": True}
    found = KUBERNETES.parse_capacity(
        listing(
            node("gpu01", "4"),
            node("gpu02", "4"),
            closed,
            node("gpu04", "4", ready="False"),
            node("old01", "2", "", **{"amd.com/gpu": "8"}),
            node("cpu01", "0", ""),
            user_of("gpu01", "3"),
            user_of("gpu02", 1),
            user_of("gpu02", "4", "Succeeded"),
            user_of("gpu03", "4"),
            user_of("", "4", "Pending"),
            user_of("gpu01", "many"),
        )
    )
    assert found == [
        Capacity("A100", 0, 16),
        Capacity("amd.com/gpu", 8, 8),
        Capacity("nvidia.com/gpu", 2, 2),
    ]


def test_nothing_is_known_of_gpus_where_nodes_may_not_be_listed() -> None:
    stderr = 'Error from server (Forbidden): nodes is forbidden: User "ann" cannot list resource'
    with pytest.raises(BackendError, match="free GPUs are unknown"):
        KUBERNETES.parse_capacity(answer("", 1, stderr))
    with pytest.raises(BackendUnavailable):
        KUBERNETES.parse_capacity(answer("", 1, "Unable to connect to the server: EOF"))


def test_gpus_are_counted_on_the_nodes_and_in_the_pods() -> None:
    [recording] = recordings("kubernetes", "capacity")
    [found] = KUBERNETES.parse_capacity(recording.result)
    assert (found.partition, found.free, found.total) == ("NVIDIA-A100-SXM4-40GB", 6, 8)
