"""The pod that Jupyter runs in, as the pattern of its clusters' pods."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...core.errors import InvalidInput
from ...core.job import CommandResult
from ..base import Destination, Question, Sent
from .kubectl import ACCOUNT, IN_A_POD, arguments_elsewhere
from .manifest import look, read_object, steps_of

TOGETHER = ("spec.volumes", "spec.containers[0].volumeMounts")
IMAGE = "spec.containers[0].image"
FIELDS = {"environment.container": IMAGE}
"""Fields of a pod that keys of a profile set."""


def ask_about_own_pod(job: Sent, variables: Mapping[str, str]) -> list[Question]:
    """Return the command that shows our own pod, if we are in one.

    Nothing of it that matters changes as long as it runs.
    """
    if IN_A_POD not in variables:
        return []
    where = arguments_elsewhere("", job.submit_args)
    return [
        Question(
            ("kubectl", *where, "get", "pod", os.uname().nodename, "--output=json"), lasting=True
        )
    ]


def like_own_pod(
    jobs: Sequence[Destination],
    results: Sequence[CommandResult],
    given: Sequence[str],
    *,
    owned: bool,
) -> list[Destination]:
    """Return jobs with what they leave open of their pods, as in the pod that we are in.

    A profile for pods beside Jupyter's then needs no image, no volumes and no user.  Outside a pod,
    or if kubectl does not show ours, nothing is added.

    Parameters
    ----------
    given
        Keys of the profile that set fields.
    owned
        Whether the other pods go when this one does.
    """
    pod = read_object(results[0]) if results else {}
    if jobs[0].account not in ("", look(pod, "metadata", "namespace")):
        return list(jobs)  # volumes and accounts are of a namespace
    fields = dict(fields_of(pod, owned=owned))
    return [_filled(job, fields, [FIELDS[key] for key in given if key in FIELDS]) for job in jobs]


def _filled(job: Destination, fields: Mapping[str, Any], given: Sequence[str]) -> Destination:
    """Return a job with those of the fields that neither its directives nor others set."""
    given = [*given, *(text.partition("=")[0].strip() for text in job.directives)]
    if any(_overlap(one, field) for one in given for field in TOGETHER):
        given += TOGETHER
    added = [
        f"{field} = {json.dumps(value)}"
        for field, value in fields.items()
        if not any(_overlap(one, field) for one in given)
    ]
    return replace(job, directives=(*added, *job.directives))


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
        IMAGE: look(own, "image"),
        "spec.volumes": volumes,
        "spec.containers[0].volumeMounts": mounts,
        "spec.securityContext": look(pod, "spec", "securityContext"),
        "spec.containers[0].securityContext": look(own, "securityContext"),
        "spec.serviceAccountName": look(pod, "spec", "serviceAccountName"),
        "spec.imagePullSecrets": look(pod, "spec", "imagePullSecrets"),
        "metadata.ownerReferences": [owner] if owned and owner["uid"] else None,
    }
    return ((field, value) for field, value in found.items() if value)


def _overlap(one: str, other: str) -> bool:
    """Return whether one of two paths is the other, or leads to a part of it."""
    try:
        steps = steps_of(one), steps_of(other)
    except InvalidInput:
        return False  # rendering the script reports it
    shortest = min(map(len, steps))
    return steps[0][:shortest] == steps[1][:shortest]
