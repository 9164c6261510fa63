"""Kubernetes' reasons and refusals in words: pods' conditions, containers' states, kubelets' ends.

https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/ and disruptions/, and the words
of kube-scheduler's and the kubelet's sources, which no page lists.
"""

from __future__ import annotations

import re

from ...core.job import JobState
from ..refusal import Cure

KUEUE = "kueue.x-k8s.io/"
"""Beginning of the scheduling gates that Kueue takes away by itself."""

DISRUPTED = {
    "PreemptionByScheduler": JobState.PREEMPTED,
    "EvictionByEvictionAPI": JobState.PREEMPTED,
    "DeletionByTaintManager": JobState.NODE_FAIL,
    "DeletionByPodGC": JobState.NODE_FAIL,
}
"""Of the condition DisruptionTarget, reasons to delete a pod: its outcome goes with it."""

FAILED = {
    "DeadlineExceeded": JobState.TIMEOUT,
    "Evicted": JobState.PREEMPTED,
    "Preempting": JobState.PREEMPTED,
    "NodeLost": JobState.NODE_FAIL,
    "NodeShutdown": JobState.NODE_FAIL,
    "Shutdown": JobState.NODE_FAIL,
    "Terminated": JobState.NODE_FAIL,
}
"""Of a pod's own status, reasons with which a kubelet or a controller has ended it."""

HOPELESS = frozenset({"InvalidImageName"})
"""Reasons to wait that nothing but another profile cures."""

UNSCHEDULABLE = (
    (r"Insufficient \S+/gpu\b", "It starts when one node has that many GPUs free; where none has so"
     " many at all, ask for fewer by job.gpus."),
    ("Insufficient nvidia.com/mig", "It starts when one node has that many slices of GPUs free."),
    ("Insufficient memory", "It starts when one node has so much memory free; where none has so"
     " much at all, lower job.memory."),
    ("Insufficient cpu", "It starts when one node has so many cores free; where none has so many"
     " at all, lower job.cpus."),
    ("Insufficient ephemeral-storage", "It starts when one node has so much local disk free."),
    ("Insufficient", "It starts when one node has enough of it; where none has, ask for less."),
    ("Too many pods", "It starts when a pod of one of its nodes ends."),
    ("persistentvolumeclaim", "Correct claimName in job.directives: the claim must be in the"
     " pods' namespace."),
    ("PersistentVolumeClaims", "Its volume is missing: see `kubectl describe pvc`."),
    ("volume node affinity", "Its volume is bound to other nodes; workers need one that all nodes"
     " can mount (ReadWriteMany)."),
    ("affinity/selector", "No other node has the labels that it asks for: check job.gpu_type and"
     " spec.nodeSelector in job.directives."),
    ("untolerated taint", "The other nodes are kept for pods that tolerate their taints: add"
     " spec.tolerations to job.directives, where you may."),
    ("had taint", "The other nodes are kept for pods that tolerate their taints: add"
     " spec.tolerations to job.directives, where you may."),
    ("unschedulable", "Nodes are closed to new pods: ask the cluster's administrators."),
)  # fmt: skip
"""Patterns of what kube-scheduler says, the one that tells most first."""

PULL = (
    "Check environment.container.image, and whether nodes may pull it (spec.imagePullSecrets in"
    " job.directives)."
)
WAITING = {
    "ContainerCreating": "Its node pulls the image and mounts the volumes; where that lasts, "
    "`kubectl describe pod {id}` shows the reason.",
    "PodInitializing": "Its init containers run.",
    "ErrImagePull": f"Its image cannot be pulled: {{message}}. {PULL}",
    "ImagePullBackOff": f"Its image cannot be pulled: {{message}}. {PULL}",
    "ErrImageNeverPull": "Its image is not on the node, and spec.containers[0].imagePullPolicy "
    "forbids to pull it.",
    "InvalidImageName": "Its image has no valid name: {message}. Correct "
    "environment.container.image.",
    "RegistryUnavailable": "The image's registry does not answer: {message}.",
    "CreateContainerConfigError": "Its container cannot be made: {message}. What job.directives "
    "name (a secret, a config map) must be in the pods' namespace.",
    "CreateContainerError": "Its container cannot be made: {message}.",
    "RunContainerError": "Its container cannot be started: {message}.",
    "SchedulingGated": "Held by a scheduling gate until its owner removes it.",
    "Kueue": "Waits for its turn in Kueue's queue; see `kubectl get workloads`.",
}
"""By the reason of a condition or a container that waits."""

ENDED = {
    "PreemptionByScheduler": "It had to make room for a pod of a higher priority; a "
    "spec.priorityClassName in job.directives may help.",
    "EvictionByEvictionAPI": "It was evicted: its node is being emptied.",
    "DeletionByTaintManager": "Its node is down, or closed to its pods.",
    "DeletionByPodGC": "Its node is gone.",
    "Evicted": "Its node ended it: {message}. Ask for as much as it uses, by job.memory or "
    "ephemeral-storage in job.directives.",
    "Preempting": "Its node needed the room for a pod of the system.",
    "NodeLost": "Its node does not answer any more.",
    "NodeShutdown": "Its node was shut down.",
    "Shutdown": "Its node was shut down.",
    "Terminated": "Its node was shut down.",
    "DeadlineExceeded": "It reached its walltime; ask for a longer one.",
    "UnexpectedAdmissionError": "Its node could not give it what it asks for: {message}. A GPU may"
    " be unhealthy.",
    "NodeAffinity": "Its node's labels changed, and no longer fit it.",
    "StartError": "Its container could not start: {message}. The image needs /bin/bash.",
    "ContainerCannotRun": "Its container could not start: {message}. The image needs /bin/bash.",
    "OutOf": "Its node had less free than the scheduler thought: {message}.",
}
"""By the reason of an end; the beginning of longer ones counts, too."""

NO_SCRIPT = (
    "It ended with exit code 127: its script, or a command in it such as Python, is not there."
    " Mount the volume with the clusters' files at the same place (spec.volumes and"
    " spec.containers[0].volumeMounts in job.directives), and name a Python that the image has."
)

OWN = re.compile("(?=[Ee]rror|The )")
NOISE = re.compile("^pod/|^Warning: ")

REFUSALS: tuple[Cure, ...] = (
    ("kubectl: No such file", "Put kubectl where Jupyter runs."),
    ("localhost:8080", "kubectl knows no cluster here: set KUBECONFIG where Jupyter starts, or give"
     " Jupyter's pod a service account."),
    ("Unauthorized", "Access has expired or is unknown to the cluster: log in again."),
    ("credentials", "Access has expired or is unknown to the cluster: log in again."),
    ("being terminated", "The namespace is being deleted: name another by job.account."),
    ('namespaces "', "job.account is the namespace: correct it, or leave it out for that of"
     " kubectl's context."),
    ("must specify limits", "The namespace's quota wants it: set job.cpus and job.memory."),
    ("must specify requests", "The namespace's quota wants it: set job.cpus and job.memory."),
    ("must specify", "The namespace's quota wants it: set job.cpus and job.memory."),
    ("exceeded quota", "The namespace has no more: ask for fewer workers, or less for each;"
     " `kubectl describe quota` shows the quota."),
    (re.compile("minimum .* usage per"), "The namespace limits what one pod may have: ask for "
     "more by job.cpus and job.memory; `kubectl describe limitrange` shows the limits."),
    ("limit to request ratio", "The namespace limits how far limits exceed requests: set both in "
     "job.directives; `kubectl describe limitrange` shows the limits."),
    ("usage per", "The namespace limits what one pod may have: ask for less by job.cpus and"
     " job.memory; `kubectl describe limitrange` shows the limits."),
    ('cannot create resource "pods"', "Who runs Jupyter needs a role there that may get, list,"
     " create and delete pods; job.account names another namespace."),
    ("violates PodSecurity", "The namespace's rules forbid a field of job.directives, or want"
     " spec.securityContext there."),
    ("no PriorityClass", "Correct spec.priorityClassName in job.directives."),
    ("service account", "Correct spec.serviceAccountName in job.directives."),
    ("image: Required value", "Name the image by environment.container: {runtime: pod, image:"
     " ...}."),
    ("must be less than or equal to", "job.directives ask for more than its limit, which job.cpus,"
     " job.memory and job.gpus set."),
    ("unknown field", "Correct its path in job.directives."),
    ("cannot unmarshal", "Correct the value in job.directives; text that looks like a number needs"
     ' quotes ("1").'),
    ("quantities must match", "Correct the amount in job.directives; Kubernetes writes 500m, 2,"
     " 512Mi, 16Gi."),
    ("does not match the namespace", "Leave --namespace out of job.submit_args; job.account names"
     " the namespace."),
    ("is invalid", "Correct it in job.directives."),
    ("already exists", "Pods of that name are left over: delete them (kubectl delete pod NAME), "
     "or start a new cluster."),
    ("denied the request", "A rule of the cluster's own forbids it: change what it names, or ask"
     " the cluster's administrators."),
)  # fmt: skip
