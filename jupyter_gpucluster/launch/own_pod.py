"""The pod that Jupyter runs in, as the pattern of its clusters' pods."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..batch.directives import option_of
from ..batch.kubernetes.kubectl import arguments_elsewhere
from ..batch.kubernetes.manifest import PREFIX, look, steps_of
from ..batch.queue import ProcessRunner, run_aside
from ..batch.variables import inherited
from ..core.errors import InvalidInput
from ..profiles import Profile
from ..profiles.sections import Job

IN_A_POD = "KUBERNETES_SERVICE_HOST"
"""Every container of a pod has it."""
SECONDS = 10.0
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where Kubernetes itself mounts what it gives to each pod anew."""
TOGETHER = ("spec.volumes", "spec.containers[0].volumeMounts")

REFUSED_SECONDS = 60.0
"""For so long drafts do not ask again for one that was not shown: each change checks them."""

_own: dict[tuple[str, ...], dict[str, Any]] = {}
_refused: dict[tuple[str, ...], float] = {}


def like_own_pod(
    profile: Profile, environ: Mapping[str, str] = os.environ, *, draft: bool = False
) -> Profile:
    """Return the profile with what it leaves open of its pods, as in the pod that we are in.

    A profile for pods beside Jupyter's then needs no image, no volumes and no user.  Where we are
    in none, or may not look at it, nothing is added.

    Parameters
    ----------
    draft
        Whether nothing is started by it, so that a refusal of some seconds ago will do.
    """
    if profile.backend != "kubernetes" or IN_A_POD not in environ:
        return profile
    where = arguments_elsewhere("", profile.job.submit_args)
    pod = _own_pod((*where, "get", "pod", os.uname().nodename), draft=draft)
    if profile.job.account not in ("", look(pod, "metadata", "namespace")):
        return profile  # volumes and accounts are of a namespace
    given = [] if profile.environment.container is None else ["spec.containers[0].image"]
    fields = dict(fields_of(pod, owned=profile.head.placement == "server"))
    groups = {
        name: group.model_copy(update={"job": _filled(group.job, fields, given)})
        for name, group in profile.groups.items()
    }
    job = _filled(profile.job, fields, given)
    return profile.model_copy(update={"job": job, "groups": groups})


def _filled(job: Job, fields: Mapping[str, Any], given: Sequence[str]) -> Job:
    """Return a job with those of the fields that neither its directives nor others set."""
    given = [*given, *(option_of(PREFIX + text)[0] for text in job.directives)]
    if any(_overlap(one, field) for one in given for field in TOGETHER):
        given += TOGETHER
    added = [
        f"{field} = {json.dumps(value)}"
        for field, value in fields.items()
        if not any(_overlap(one, field) for one in given)
    ]
    return job.model_copy(update={"directives": (*added, *job.directives)})


def fields_of(pod: Mapping[str, Any], *, owned: bool) -> Iterator[tuple[str, Any]]:
    """Yield path and value of each field that another pod is to have, too.

    Parameters
    ----------
    owned
        Whether the other pod goes when this one does.
    """
    containers = look(pod, "spec", "containers") or []
    # JupyterHub's name for it; a mesh may have put its own before.
    own = next((it for it in containers if look(it, "name") == "notebook"), look(containers, 0))
    mounts = [it for it in look(own, "volumeMounts") or [] if look(it, "mountPath") != ACCOUNT]
    names = {look(mount, "name") for mount in mounts}
    volumes = [it for it in look(pod, "spec", "volumes") or [] if look(it, "name") in names]
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": look(pod, "metadata", "name"),
        "uid": look(pod, "metadata", "uid"),
    }
    found = {
        "spec.containers[0].image": look(own, "image"),
        "spec.volumes": volumes,
        "spec.containers[0].volumeMounts": mounts,
        "spec.securityContext": look(pod, "spec", "securityContext"),
        "spec.containers[0].securityContext": look(own, "securityContext"),
        "spec.serviceAccountName": look(pod, "spec", "serviceAccountName"),
        "spec.imagePullSecrets": look(pod, "spec", "imagePullSecrets"),
        "metadata.ownerReferences": [owner] if owned and owner["uid"] else None,
    }
    return ((field, value) for field, value in found.items() if value)


def _own_pod(words: tuple[str, ...], *, draft: bool) -> dict[str, Any]:
    """Ask kubectl for our pod; nothing of it that matters changes as long as it runs."""
    if words not in _own:
        age = time.monotonic() - _refused.get(words, float("-inf"))
        if draft and age < REFUSED_SECONDS:
            return {}
        runner = ProcessRunner(inherited(os.environ), seconds=SECONDS)
        result = run_aside(runner.run(["kubectl", *words, "--output=json"]))
        try:
            pod = json.loads(result.stdout) if result.exit_code == 0 else None
        except (ValueError, RecursionError):
            pod = None
        if not isinstance(pod, dict):
            _refused[words] = time.monotonic()
            return {}
        _own[words] = pod
    return _own[words]


def _overlap(one: str, other: str) -> bool:
    """Tell whether one of two paths is the other, or leads to a part of it."""
    try:
        steps = steps_of(one), steps_of(other)
    except InvalidInput:
        return False  # whoever renders the script says so
    shortest = min(map(len, steps))
    return steps[0][:shortest] == steps[1][:shortest]
