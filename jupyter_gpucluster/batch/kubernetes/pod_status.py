"""The API's answers: a pod as the state of a job, nodes as free GPUs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ...core.job import Capacity, JobState, JobStatus
from ..base import by_word, local_time
from ..reasons import Reasons
from .manifest import look

REASONS = Reasons("kubernetes")
OURS = "jupyter-gpucluster"
MARK, TASK = f"{OURS}/mark", f"{OURS}/task"
"""Labels of a pod of ours."""
TASK_VARIABLE = "GPUCLUSTER_TASK"
"""By which a shell in the pod knows its number; no other container of the pod has it."""
GPU, PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"
GPUS = re.compile(r"[\w.-]+/gpu|nvidia\.com/mig-[\w.-]+", re.ASCII)
"""Resources that are GPUs or slices of them."""
KUEUE = "kueue.x-k8s.io/"
"""Beginning of the scheduling gates that Kueue takes away by itself."""

DISRUPTED = by_word(
    preempted="PreemptionByScheduler EvictionByEvictionAPI",
    node_fail="DeletionByTaintManager DeletionByPodGC",
)
"""Of the condition DisruptionTarget, reasons to delete a pod: its outcome goes with it."""

FAILED = by_word(
    timeout="DeadlineExceeded",
    preempted="Evicted Preempting",
    node_fail="NodeLost NodeShutdown Shutdown Terminated",
)
"""Of a pod's own status, reasons with which a kubelet or a controller has ended it."""


def status_of(pod: dict[str, Any]) -> JobStatus:
    """Return the job that a pod is."""
    said, container = _dict(look(pod, "status")), _container(pod)
    over = _dict(look(container, "state", "terminated"))
    state, reason = _state(pod, said, container)
    code, began = over.get("exitCode"), local_time(said.get("startTime"))
    seconds = look(pod, "spec", "activeDeadlineSeconds")
    node = _text(look(pod, "spec", "nodeName"))
    task = _text(look(pod, "metadata", "labels", TASK))
    running = look(container, "state", "running", "startedAt")
    started = local_time(running) or local_time(over.get("startedAt"))
    return JobStatus(
        id=_text(look(pod, "metadata", "name")),
        state=state,
        mark=_text(look(pod, "metadata", "labels", MARK)),
        task=int(task) if re.fullmatch(r"\d{1,6}", task, re.ASCII) else 0,
        reason=" ".join(reason.split())[:2000],
        nodes=(node,) if node else (),
        exit_code=code if isinstance(code, int) else None,
        started=started,
        ended=local_time(over.get("finishedAt")),
        # The deadline counts from the time at which the pod came to its node.
        ends=began + seconds if began and started and isinstance(seconds, int) else None,
        unsatisfiable=REASONS.find("waiting", reason.partition(": ")[0]).unsatisfiable,
    )


def _state(
    pod: dict[str, Any], said: dict[str, Any], container: dict[str, Any]
) -> tuple[JobState, str]:
    """Return a pod's state, and the reason that Kubernetes gives with its message behind it."""
    phase, over = said.get("phase"), _dict(look(container, "state", "terminated"))
    if (known := FAILED.get(_text(said.get("reason")))) is not None:
        return known, _told(said)
    disrupted = _condition(pod, "DisruptionTarget", "True")
    if (known := DISRUPTED.get(_text(disrupted.get("reason")))) is not None:
        return known, _told(disrupted)
    if phase in ("Succeeded", "Failed") or over:
        # Another container, such as a mesh's, may keep the pod running.
        why = _told(said) or _told(over)
        if over.get("reason") == "OOMKilled":
            return JobState.OUT_OF_MEMORY, why
        done = phase == "Succeeded" or over.get("exitCode") == 0
        return (JobState.DONE if done else JobState.FAILED), why
    if look(pod, "metadata", "deletionTimestamp"):
        return JobState.ENDING, ""
    if phase == "Pending":
        return _waiting(pod, container)
    return (JobState.RUNNING if phase == "Running" else JobState.UNKNOWN), _told(said)


def _waiting(pod: dict[str, Any], container: dict[str, Any]) -> tuple[JobState, str]:
    unplaced = _condition(pod, "PodScheduled", "False")
    if unplaced.get("reason") == "SchedulingGated":
        gates = [_text(gate.get("name")) for gate in _dicts(look(pod, "spec", "schedulingGates"))]
        if gates and all(gate.startswith(KUEUE) for gate in gates):
            return JobState.PENDING, "Kueue"
        return JobState.HELD, _told(unplaced)
    why = _told(unplaced) or _told(_dict(look(container, "state", "waiting")))
    return JobState.PENDING, why


def gpus_of(items: Sequence[dict[str, Any]]) -> list[Capacity]:
    """Return free and total GPUs of each kind, from all nodes and all pods."""
    kinds: dict[tuple[str, str], str] = {}
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for node in (item for item in items if item.get("kind") == "Node"):
        ready = bool(_condition(node, "Ready", "True"))
        closed = look(node, "spec", "unschedulable") is True or not ready
        for resource, count in _gpus(look(node, "status", "allocatable")):
            product = _text(look(node, "metadata", "labels", PRODUCT)) if resource == GPU else ""
            kind = kinds[_text(look(node, "metadata", "name")), resource] = product or resource
            total[kind] += count
            free[kind] += 0 if closed else count
    for pod in (item for item in items if item.get("kind") == "Pod"):
        if look(pod, "status", "phase") in ("Succeeded", "Failed"):
            continue
        node_name = _text(look(pod, "spec", "nodeName"))
        for container in _dicts(look(pod, "spec", "containers")):
            for resource, count in _gpus(look(container, "resources", "limits")):
                if kind := kinds.get((node_name, resource), ""):
                    free[kind] -= count
    return [Capacity(kind, max(0, free[kind]), total[kind]) for kind in sorted(total)]


def _gpus(amounts: object) -> Iterator[tuple[str, int]]:
    for resource, amount in _dict(amounts).items():
        if GPUS.fullmatch(resource) and re.fullmatch(r"\d{1,6}", str(amount), re.ASCII):
            yield resource, int(amount)


def _container(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the status of our container: a mesh may have added others, also before it."""
    made = _dicts(look(pod, "spec", "containers"))
    ours = [it for it in made if any(e.get("name") == TASK_VARIABLE for e in _dicts(it.get("env")))]
    name = look(ours or made, 0, "name")
    found = _dicts(look(pod, "status", "containerStatuses"))
    return next((each for each in found if each.get("name") == name), {})


def _condition(thing: dict[str, Any], kind: str, status: str) -> dict[str, Any]:
    found = _dicts(look(thing, "status", "conditions"))
    return next((it for it in found if (it.get("type"), it.get("status")) == (kind, status)), {})


def _told(thing: dict[str, Any]) -> str:
    """Return reason and message of a status, a condition or a container's state."""
    return ": ".join(filter(None, (_text(thing.get("reason")), _text(thing.get("message")))))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
