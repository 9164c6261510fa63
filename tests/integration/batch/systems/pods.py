"""Pods as a Kubernetes API server, its scheduler and its kubelets keep them.

Words and fields are those of the API's reference (Pod v1 core) and of the sources that write them:
admission plugins, kube-scheduler, kubelet, pod garbage collector.
"""

from __future__ import annotations

import copy
import re
import signal
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .engine import Job, Site, signal_session

GPU = "nvidia.com/gpu"
CAPACITY = {"cpu": "64", "memory": "512Gi", GPU: "4", "pods": "110"}
LABELS = {f"{GPU}.product": "NVIDIA-A100-SXM4-40GB", f"{GPU}.count": "4"}
NODES = ("gpu01", "gpu02")
CLAIM = "home"
"""The one claim of a volume that there is."""
GATE = "kueue.x-k8s.io/admission"
UNITS = {"": 1.0, "m": 1e-3, "M": 1e6, "G": 1e9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
QUANTITY = re.compile(rf"([0-9.]+)({'|'.join(UNITS)})")
DISRUPTED = {
    "eviction": ("TerminationByKubelet", "The node was low on resource: memory."),
    "preemption": (
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    ),
    "shutdown": (
        "TerminationByKubelet",
        "Pod was terminated in response to imminent node shutdown.",
    ),
    "node": ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
}
"""Why somebody other than their user ends pods, and the words of the condition that tells it."""
ENDS = {
    "walltime": (
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    ),
    "eviction": ("Evicted", DISRUPTED["eviction"][1]),
    "shutdown": ("Terminated", DISRUPTED["shutdown"][1]),
    "node": ("NodeLost", "Node {} which was running pod {} is unresponsive"),
}
"""Reason and message of the status of pods that a kubelet has not ended by itself."""
HELPLESS = "{} Preemption is not helpful for scheduling."
VICTIMLESS = "{} No preemption victims found for incoming pod."
PULL = 'Back-off pulling image "{}"'
NO_PULL = 'failed to pull and unpack image "{0}": failed to resolve reference "{0}": {0}: not found'


def amount(quantity: object) -> float:
    """Read a quantity of the API; raises `ValueError` for what is none."""
    match = QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(quantity)
    return float(match[1]) * UNITS[match[2]]


def asked(pod: Mapping[str, Any]) -> dict[str, float]:
    """Return what a pod asks for."""
    total = {"pods": 1.0}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        for name, value in {
            **(resources.get("limits") or {}),
            **(resources.get("requests") or {}),
        }.items():
            total[name] = total.get(name, 0.0) + amount(value)
    return total


def add(site: Site, pod: dict[str, Any]) -> Job:
    """Keep a pod that was admitted; its container runs when it is scheduled."""
    spec, meta = pod["spec"], pod["metadata"]
    container = spec["containers"][0]
    argv = [*(container.get("command") or ["/bin/true"]), *(container.get("args") or [])]
    [job] = site.add(
        name=meta["name"],
        script=argv[0],
        arguments=argv[1:],
        variables={each["name"]: each.get("value", "") for each in container.get("env") or []},
        walltime=spec.get("activeDeadlineSeconds"),
        ready=False,
        state="held" if spec.get("schedulingGates") else "waiting",
        given={"pod": pod},
    )
    job.output = f"{site.base}/spool/{job.number}.log"
    meta["uid"] = f"5b0c6bd2-8d3e-4f59-9a51-{job.number:012d}"
    meta["creationTimestamp"] = stamp(job.submitted)
    return job


def settle(site: Site) -> None:
    """Forget pods that are deleted and have ended; find nodes for those that wait."""
    site.jobs = [job for job in site.jobs if job.state != "ended" or not gone(job)]
    there = {job.given["pod"]["metadata"]["uid"] for job in site.jobs}
    for job in site.jobs:
        owners = job.given["pod"]["metadata"].get("ownerReferences") or []
        if owners and not there & {owner["uid"] for owner in owners}:
            delete(site, job, force=False)
    for job in site.jobs:
        if job.state == "waiting" and "node" not in job.given:
            job.given["why"], node = find_node(site, job)
            if node:
                job.given |= {"node": node, "bound": time.time()}
                image = job.given["pod"]["spec"]["containers"][0]["image"]
                job.ready = "nosuch" not in image
        elif job.state == "waiting":
            job.given["pulls"] = job.given.get("pulls", 0) + 1


def namespace_of(job: Job) -> str:
    return str(job.given["pod"]["metadata"]["namespace"])


def gone(job: Job) -> bool:
    return bool(job.given.get("deleted") or job.by == "preemption")


def find_node(site: Site, job: Job) -> tuple[str, str]:
    """Return why a pod is on no node, or the name of the one for it."""
    spec, wanted = job.given["pod"]["spec"], asked(job.given["pod"])
    total = len(NODES)
    for volume in spec.get("volumes") or []:
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", CLAIM)
        if claim != CLAIM:
            why = f'0/{total} nodes are available: persistentvolumeclaim "{claim}" not found.'
            return f"{why} preemption: 0/{total} nodes are available: {HELPLESS.format(total)}", ""
    reasons: dict[str, int] = {}
    for node in NODES:
        faults = misfits(site, node, spec, wanted)
        if not faults:
            return "", node
        for fault in faults:
            reasons[fault] = reasons.get(fault, 0) + 1
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    crowded = all(reason.startswith("Insufficient") for reason in reasons)
    after = VICTIMLESS if crowded else HELPLESS
    why = f"0/{total} nodes are available: {told}."
    return f"{why} preemption: 0/{total} nodes are available: {after.format(total)}", ""


def misfits(
    site: Site, node: str, spec: Mapping[str, Any], wanted: Mapping[str, float]
) -> list[str]:
    """Return what keeps a pod from a node."""
    if not site.slots:
        return ["node(s) were unschedulable"]
    selector = spec.get("nodeSelector") or {}
    if not selector.items() <= labels(node).items():
        return ["node(s) didn't match Pod's node affinity/selector"]
    free = {name: amount(value) for name, value in CAPACITY.items()}
    for job in site.living():
        if job.given.get("node") == node:
            for name, value in asked(job.given["pod"]).items():
                free[name] = free.get(name, 0.0) - value
    return [f"Insufficient {name}" for name, value in wanted.items() if value > free.get(name, 0.0)]


def labels(node: str) -> dict[str, str]:
    return {**LABELS, "kubernetes.io/hostname": node, "kubernetes.io/os": "linux"}


def delete(site: Site, job: Job, *, force: bool) -> None:
    """Delete a pod: one that runs is asked to end first."""
    job.given.setdefault("deleted", time.time())
    site.end([job], by=job.by or "user")
    if force and job.pid:
        signal_session(job.pid, signal.SIGKILL)


def disturb(site: Site, jobs: Iterable[Job], by: str) -> None:
    """End pods for one of the reasons in `DISRUPTED`."""
    for job in jobs:
        if by == "node":
            job.by = by
            signal_session(job.pid, signal.SIGKILL)
        else:
            site.end([job], by=by)


def describe(job: Job) -> dict[str, Any]:
    """Return a pod as the API shows it."""
    pod: dict[str, Any] = copy.deepcopy(job.given["pod"])
    spec, meta = pod["spec"], pod["metadata"]
    if job.state == "held" and not spec.get("schedulingGates"):
        spec["schedulingGates"] = [{"name": GATE}]
    elif job.state != "held":
        spec.pop("schedulingGates", None)
    if node := job.given.get("node"):
        spec["nodeName"] = node
    since = job.given.get("deleted") or (job.asked if job.by in ("preemption", "node") else 0)
    if since or job.by == "node":
        meta["deletionTimestamp"] = stamp(since or job.ended)
        meta["deletionGracePeriodSeconds"] = 30
    pod["status"] = status(job)
    return pod


def status(job: Job) -> dict[str, Any]:
    """Return a pod's status as its scheduler and its kubelet write it."""
    said: dict[str, Any] = {"phase": phase(job), "qosClass": "Guaranteed"}
    conditions = [scheduled(job)]
    if job.given.get("node"):
        said |= {"hostIP": "127.0.0.1", "startTime": stamp(job.given["bound"])}
        said["containerStatuses"] = [container(job)]
        ready = job.state == "running" and job.by != "node"
        why = {} if ready else {"reason": "PodCompleted" if job.code == 0 else "PodFailed"}
        conditions.insert(0, condition("Initialized", True, job.given["bound"]))
        conditions.insert(1, condition("Ready", ready, job.started, **why))
    if job.started:
        said["podIP"] = "127.0.0.1"
    if job.by in DISRUPTED:
        reason, message = DISRUPTED[job.by]
        conditions.insert(
            0, condition("DisruptionTarget", True, job.ended, reason=reason, message=message)
        )
    if job.by in ENDS and (job.state == "ended" or job.by == "node"):
        said["reason"], message = ENDS[job.by]
        said["message"] = message.format(job.given["node"], job.name)
    return {**said, "conditions": conditions}


def phase(job: Job) -> str:
    if job.state == "ended" and job.by != "node":
        return "Succeeded" if job.code == 0 and job.by not in ENDS else "Failed"
    return "Running" if job.started else "Pending"


def scheduled(job: Job) -> dict[str, Any]:
    """Return the condition that tells whether a pod has its node."""
    if "node" in job.given:
        return condition("PodScheduled", True, job.given["bound"])
    reason, message = "Unschedulable", job.given.get("why", "")
    if job.state == "held":
        reason = "SchedulingGated"
        message = "Scheduling is blocked due to non-empty scheduling gates"
    return condition("PodScheduled", False, job.submitted, reason=reason, message=message)


def condition(type_: str, holds: bool, since: float, **more: str) -> dict[str, Any]:
    told = {"type": type_, "status": str(holds), "lastTransitionTime": stamp(since or time.time())}
    return {**told, "lastProbeTime": None, **more}


def container(job: Job) -> dict[str, Any]:
    """Return the status of a pod's one container."""
    asked = job.given["pod"]["spec"]["containers"][0]
    image = asked["image"]
    state: dict[str, Any]
    if job.state == "ended" and job.by != "node":
        state = {"terminated": terminated(job)}
    elif job.started:
        state = {"running": {"startedAt": stamp(job.started)}}
    elif job.ready:
        state = {"waiting": {"reason": "ContainerCreating"}}
    elif job.given.get("pulls", 0) > 1:
        state = {"waiting": {"reason": "ImagePullBackOff", "message": PULL.format(image)}}
    else:
        message = f"rpc error: code = NotFound desc = {NO_PULL.format(image)}"
        state = {"waiting": {"reason": "ErrImagePull", "message": message}}
    runs = "running" in state
    found = f"{image}@sha256:{'0' * 64}" if job.started else ""
    started = {"ready": runs, "started": runs, "restartCount": 0, "lastState": {}}
    return {"name": asked["name"], "image": image, "imageID": found, "state": state, **started}


def terminated(job: Job) -> dict[str, Any]:
    code = job.code if job.code >= 0 else 128 - job.code
    reason = "Completed" if code == 0 else "Error"
    times = {"startedAt": stamp(job.started), "finishedAt": stamp(job.ended)}
    if job.by == "memory":
        code, reason = 137, "OOMKilled"
    return {"exitCode": code, "reason": reason, "containerID": "containerd://0", **times}


def stamp(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
