"""Kubernetes: https://kubernetes.io/docs/reference/kubectl/ and the API's reference, Pod v1 core.

A job is a bare pod: roles for Dask allow pods only.  The script's head holds what its manifest
says, as ``#KUBERNETES`` lines; `Kubernetes.stdin` makes the manifests of them.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import BackendError, BackendUnavailable, InvalidInput
from ...core.job import Capacity, CommandResult, JobShape, JobState, JobStatus, Submission
from ..base import Backend, Destination, Question, Routing, Sent, ended_with
from ..directives import Syntax
from ..quoting import memory_of
from ..refusal import refusal
from .kubectl import (
    CONTEXT,
    DNS_LABEL,
    FREE,
    IMAGE,
    LIST,
    NAMESPACE,
    arguments_elsewhere,
    ask_about_own_pod,
    ask_about_place,
    elsewhere,
    like_own_pod,
    placed,
    refuse_without_context,
    without_file,
)
from .manifest import PREFIX, RESERVED, Fields, escaped, look, pod_of, read_object
from .pod_status import MARK, OURS, PRODUCT, REASONS, TASK, TASK_VARIABLE, gpus_of, status_of

MANAGED, KUEUE = "app.kubernetes.io/managed-by", "kueue.x-k8s.io/queue-name"
LIMITS = "spec.containers[0].resources.limits"
MOST_MARKS = 50
"""More of them would make a URL that proxies refuse; then all pods of ours are listed."""
LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
RESOURCE = re.compile(rf"[a-z0-9][-a-z0-9]*(\.[-a-z0-9]+)+/{LABEL.pattern}", re.ASCII)
CREATED = re.compile(r"^pod/(\S+)", re.MULTILINE)
EXISTS = re.compile(r'\(AlreadyExists\).*pods "([^"]+)" already exists$', re.MULTILINE)
SILENT = re.compile(
    r"unable to connect to the server|connection (?:to the server \S+ was )?(?:refused|reset)"
    r"|dial tcp|i/o timeout|handshake timeout|deadline exceeded|timed out|no route to host"
    r"|unexpected EOF"
    r"|\((?:ServiceUnavailable|InternalError|TooManyRequests|Timeout|ServerTimeout)\)|etcdserver"
    r"|currently unable to handle the request|http2: ",
    re.IGNORECASE,
)
"""No answer, as opposed to a refusal."""
NOWHERE = "localhost:8080"
"""The address that kubectl uses without a configured cluster; no server answers there."""
UNITS = (("Gi", 2**30), ("G", 10**9), ("Mi", 2**20), ("M", 10**6), ("Ki", 2**10))


SYNTAX = Fields(
    "#KUBERNETES",
    keys={
        "metadata.namespace": ("account",),
        f"metadata.labels.{KUEUE}": ("queue",),
        "spec.activeDeadlineSeconds": ("walltime",),
        "spec.containers.0.resources.limits.cpu": ("cpus",),
        "spec.containers.0.resources.limits.memory": ("memory",),
        "spec.containers.0.resources.limits.nvidia.com/*": ("gpus",),
        "spec.containers.0.resources.limits.{gpu}/*": ("gpus",),
        f"spec.nodeSelector.{PRODUCT}": ("gpu_type",),
    },
    name="metadata.name",
    arrays=(),
    waits=(),
    refused=RESERVED,
    arguments=False,
)


class Kubernetes(Backend):
    """Dialect of kubectl create, get and delete."""

    name = "kubernetes"
    title = "Kubernetes"
    syntax: Syntax = SYNTAX
    lacks = frozenset("look_up denies history parse_history find allocation".split())
    job_class = ""
    most_tasks = 100
    task = "${GPUCLUSTER_TASK:-0}"
    restarts = "0"
    listing_proves = True
    keeps_ended = True
    launchers = frozenset({"none", "mpirun", "mpiexec"})
    unasked: frozenset[str] = frozenset()
    job_variables = ("KUBERNETES_SERVICE_HOST",)
    job_words = "the pod"
    job_prefixes = ()
    node_lists = ()
    steering = ("KUBECTL_", "KUBERC")
    locating = ()
    selecting = ("KUBECONFIG", CONTEXT, NAMESPACE)
    # The user's file of kubectl's defaults may make `delete` ask, or `get` show other things.
    command_variables = (("KUBERC", "off"),)
    own_logs = ()
    image_option = IMAGE
    needs_node = False
    rehearsal = ("--dry-run=server",)
    interactive = None
    batch_only = frozenset()
    remarks: re.Pattern[str] | None = re.compile(r"^No resources found.*$", re.MULTILINE)

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        if job.nodes > 1:
            raise InvalidInput(
                "A pod is on one node.",
                hint="Set job.nodes: 1 and ask for more workers instead.",
                detail="job.nodes",
            )
        lines = ["spec.restartPolicy = Never"]
        if job.account:
            lines.append(f"metadata.namespace = {_name(job.account, 'job.account', DNS_LABEL)}")
        if job.queue:
            queue = _name(job.queue, "job.queue", LABEL)
            lines.append(f"metadata.labels.{escaped(KUEUE)} = {queue}")
        if job.walltime is not None:
            lines.append(f"spec.activeDeadlineSeconds = {job.walltime}")
        if job.cpus is not None:
            lines.append(f"{LIMITS}.cpu = {job.cpus}")
        if (memory := memory_of(job, self.title)) is not None:
            lines.append(f"{LIMITS}.memory = {_quantity(memory)}")
        if job.gpus and job.gpu_request != "none":
            request = job.gpu_request or "nvidia.com/gpu"
            resource = _name(request, "job.gpu_request", RESOURCE)
            lines.append(f"{LIMITS}.{escaped(resource)} = {job.gpus}")
        if job.gpus and job.gpu_type:
            kind = _name(job.gpu_type, "job.gpu_type", LABEL)
            lines.append(f"spec.nodeSelector.{escaped(PRODUCT)} = {kind}")
        return [f"{PREFIX}{line}" for line in lines]

    def submit(self, submission: Submission) -> list[str]:
        return ["kubectl", "create", "--output=name", "--filename=-"]

    def stdin(self, submission: Submission) -> str:
        # Behind the script's head are a profile's own lines, and values of any text.
        head = itertools.takewhile(lambda line: line.startswith("#"), submission.text.split("\n"))
        pod = pod_of(SYNTAX.option_of(line) for line in head if line.startswith(PREFIX))
        pods = [_numbered(pod, submission, task) for task in range(submission.count)]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}) + "\n"

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        names = tuple(_pod_name(submission.mark, task) for task in range(submission.count))
        created = tuple(name for name in names if name in CREATED.findall(result.stdout))
        # Nobody else has these names: what is there was taken before, and its answer was lost.
        if {*created, *EXISTS.findall(result.stderr)} >= set(names):
            return names
        refuse_without_context(result)
        if result.exit_code and (not SILENT.search(result.stderr) or NOWHERE in result.stderr):
            error = refusal(self.title, result, REASONS.phrases, submission.count)
            words = error.message.replace('error when creating "STDIN": ', "")
            raise BackendError(words, hint=error.hint, detail=error.detail, accepted=created)
        raise BackendUnavailable("Kubernetes did not answer kubectl.", detail=result.stderr)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        marks = sorted({id.rpartition("-")[0] or id for id in ids if LABEL.fullmatch(id)})
        wanted = f"{MANAGED}={OURS}"
        if 0 < len(marks) <= MOST_MARKS:
            wanted = f"{MARK} in ({','.join(marks)})"
        return ["sh", "-c", LIST, "kubectl", wanted]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        return {job.id: job for job in map(status_of, _items(result))}  # `UNREAD` has no name

    def explain(self, status: JobStatus) -> str:
        reason, _, message = (part.rstrip(".") for part in status.reason.partition(": "))
        waits = f"Kubernetes says: {status.reason.rstrip('.')}." if reason else "Waits for a node."
        if reason == "Unschedulable":
            said = message.partition(" preemption:")[0].rstrip(".")
            waits = f"{said}. {REASONS.say('unschedulable', said)}".strip()
        failed = f"Kubernetes ended it: {status.reason.rstrip('.') or 'no reason given'}."
        if (code := status.exit_code) is not None:
            failed = REASONS.say("failed", str(code)) or ended_with(code)
        sentences = {
            JobState.PENDING: waits,
            JobState.HELD: waits,
            JobState.OUT_OF_MEMORY: "It used more memory than job.memory gives it; ask for more.",
            JobState.TIMEOUT: REASONS.say("ended", "DeadlineExceeded"),
            JobState.CANCELLED: "It was deleted.",
            JobState.PREEMPTED: "It had to make room.",
            JobState.FAILED: failed,
        }
        message = message or "no reason given"
        known = replace(status, reason=reason)
        return REASONS.explain(known, self.title, sentences, id=status.id, message=message)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["kubectl", "delete", "pods", "--wait=false", "--ignore-not-found", *ids]

    def routing(self, job: Sent) -> Routing:
        where = job.account, job.submit_args
        return Routing(elsewhere(*where), arguments_elsewhere(*where))

    def enter(self, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
        tty = ["--tty"] if terminal else []
        return ["kubectl", "exec", "--stdin", *tty, id, "--", *words]

    def questions(self, job: Sent, variables: Mapping[str, str]) -> list[Question]:
        return [ask_about_place(job), *ask_about_own_pod(job, variables)]

    def completed(
        self,
        jobs: Sequence[Sent],
        results: Sequence[CommandResult],
        variables: Mapping[str, str],
        *,
        given: Sequence[str] = (),
        owned: bool = True,
    ) -> list[Destination]:
        there = placed(jobs, results[0], variables)
        return like_own_pod(there, results[1:], given, owned=owned)

    def on_a_node(self, variables: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
        return without_file(variables)

    def capacity(self) -> list[str] | None:
        return ["sh", "-c", FREE, "kubectl"]

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        if result.exit_code and "(Forbidden)" in result.stderr:
            raise BackendError(
                "Kubernetes does not show you the nodes and all pods, so free GPUs are unknown.",
                hint="Starting works without it; a role that may list nodes and the pods of all"
                " namespaces shows them.",
                detail=result.stderr,
            )
        return gpus_of(_items(result))


def _name(text: str, what: str, pattern: re.Pattern[str]) -> str:
    if pattern.fullmatch(text):
        return text
    example = "amd.com/gpu" if pattern is RESOURCE else "gpu-team"
    raise InvalidInput(
        f"{what} {text!r} is not a name that Kubernetes accepts there.",
        hint=f"Write it as Kubernetes does, such as {example}.",
        detail=what,
    )


def _quantity(count: int) -> str:
    """Write bytes in the largest unit that is exact."""
    unit, size = next(((unit, size) for unit, size in UNITS if count % size == 0), ("", 1))
    return f"{count // size}{unit}"


def _pod_name(mark: str, task: int) -> str:
    return f"{mark.lower()}-{task}"


def _numbered(pod: dict[str, Any], submission: Submission, task: int) -> dict[str, Any]:
    """Return one of the pods of a submission; what makes it a job of ours is not up to a profile.

    Raises
    ------
    InvalidInput
        A directive left no container.
    """
    pod = copy.deepcopy(pod)
    meta, container = pod.setdefault("metadata", {}), look(pod, "spec", "containers", 0)
    labels = meta.setdefault("labels", {}) if isinstance(meta, dict) else None
    env = container.setdefault("env", []) if isinstance(container, dict) else None
    if not isinstance(labels, dict) or not isinstance(env, list):
        raise InvalidInput(
            "With job.directives the pod has no container for a worker.",
            hint="Set single fields of metadata and spec.containers[0].",
            detail="job.directives",
        )
    meta["name"] = _pod_name(submission.mark, task)
    labels |= {MANAGED: OURS, MARK: submission.mark, TASK: str(task)}
    container["command"] = ["/bin/bash", submission.script]
    env.append({"name": TASK_VARIABLE, "value": str(task)})
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _items(result: CommandResult) -> list[dict[str, Any]]:
    """Return the objects that kubectl printed; one that could not list prints none, or some."""
    items = look(read_object(result), "items")
    if not isinstance(items, list):
        refuse_without_context(result)
        said = (result.stderr or result.stdout)[-2000:]
        raise BackendUnavailable("Kubernetes did not answer kubectl get.", detail=said)
    return [item if isinstance(item, dict) else {} for item in items]
