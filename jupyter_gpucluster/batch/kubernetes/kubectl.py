"""kubectl's target: context and namespace, as arguments and as variables; Jupyter's own pod."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.errors import BackendUnavailable, InvalidInput
from ...core.job import CommandResult
from ..base import Destination, Question, Sent
from .manifest import look, read_object, steps_of

CONTEXT, NAMESPACE = "GPUCLUSTER_CONTEXT", "GPUCLUSTER_NAMESPACE"
"""Variables by which listing commands find the cluster and the namespace that the pods are in."""
IN_A_POD = "KUBERNETES_SERVICE_HOST"
"""Every container of a pod has it."""
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Folders that Kubernetes mounts anew into each pod."""
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
KUBECTL = f'exec kubectl ${{{CONTEXT}:+--context="${CONTEXT}"}}'
LIST = (
    f'{KUBECTL} ${{{NAMESPACE}:+--namespace="${NAMESPACE}"}} get pods --output=json --selector="$1"'
)
"""The script is fixed, and so is that nothing but a selector may be added."""
FREE = f"{KUBECTL} get nodes,pods --all-namespaces --output=json"
ARGUMENT = "--context="
NO_CONTEXT = re.compile(
    r'^error: context "(?P<name>.+)" does not exist$'
    r"|^error: cannot locate context (?P<looked>.+)$"
    r"|context was not found for specified context: (?P<listed>.+)$",
    re.IGNORECASE | re.MULTILINE,
)
"""kubectl's message if its file lacks the given context [tried, 1.32]."""


def elsewhere(account: str, arguments: Sequence[str]) -> dict[str, str]:
    """Return the variables that tell what lists pods where they are sent to."""
    found = {CONTEXT: context_in(arguments), NAMESPACE: account}
    return {name: value for name, value in found.items() if value}


def arguments_elsewhere(account: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the same as arguments."""
    found = {ARGUMENT: context_in(arguments), "--namespace=": account}
    return tuple(f"{option}{value}" for option, value in found.items() if value)


def context_in(arguments: Sequence[str]) -> str:
    """Return the context that arguments of kubectl name, of which the last counts."""
    named = [word for word in arguments if word.startswith(ARGUMENT)]
    return named[-1].removeprefix(ARGUMENT) if named else ""


def missing_context(result: CommandResult) -> str:
    """Return the context that kubectl was told of and that its file lacks."""
    found = NO_CONTEXT.search(result.stderr) if result.exit_code else None
    return next(filter(None, found.groups())) if found else ""


def refuse_without_context(result: CommandResult) -> None:
    """Refuse an answer without the context, which is no empty listing.

    Raises
    ------
    BackendUnavailable
        kubectl's file lacks the context, so no server was asked.
    """
    if name := missing_context(result):
        back = f"kubectl config rename-context OTHER {shlex.quote(name)}"
        raise BackendUnavailable(
            f"kubectl's file lacks the context {name!r}.",
            hint=f"Give one that name again ({back}), or log in to that cluster once more;"
            " until then pods there are left as they are.",
            detail=result.stderr,
        )


def without_file(variables: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the variables, and beginnings of arguments to leave out, of kubectl on a node.

    Contexts are in a file of the Jupyter host; a pod without one has a service account.
    """
    kept = dict(variables)
    if CONTEXT not in kept or _has_file(kept):
        return kept, ()
    del kept[CONTEXT]
    return kept, (ARGUMENT,)


def _has_file(variables: Mapping[str, str]) -> bool:
    usual = str(Path(variables.get("HOME", "/"), ".kube", "config"))
    files = (variables.get("KUBECONFIG") or usual).split(os.pathsep)
    return any(os.path.exists(file) for file in files if file)  # noqa: PTH110  # never raises


OWN_NAMESPACE = "POD_NAMESPACE"
"""Variable from which kubectl itself takes its pod's namespace, before the account's file."""
USUAL = "default"


def ask_about_place(job: Sent) -> Question:
    """Return the command that shows the context that kubectl takes for a job."""
    wanted = context_in(job.submit_args)
    context = (f"{ARGUMENT}{wanted}",) if wanted else ()
    return Question(("kubectl", "config", "view", "--minify", "--output=json", *context))


def placed(
    jobs: Sequence[Sent], result: CommandResult, variables: Mapping[str, str]
) -> list[Destination]:
    """Return jobs with what they leave open of their place.

    The context is an argument of kubectl, since its file may have another current one tomorrow,
    and the namespace ``job.account``.  Credentials stay in the file.  What kubectl does not answer
    is left open.

    Raises
    ------
    InvalidInput
        kubectl's file lacks the context that the profile names.
    """
    own, *others = jobs
    wanted = context_in(own.submit_args)
    if wanted and missing_context(result):
        raise InvalidInput(
            f"kubectl's file has no context {wanted!r}, which job.submit_args name.",
            hint="`kubectl config get-contexts` names those that it has.",
            detail="job.submit_args",
        )
    shown = read_object(result)
    context = str(look(shown, "contexts", 0, "name") or "")
    namespace = str(look(shown, "contexts", 0, "context", "namespace") or "")
    namespace = namespace or _namespace_of_our_pod(variables) or (USUAL if context else "")
    namespace = namespace if DNS_LABEL.fullmatch(namespace) else ""
    first = _placed(own, (), context, namespace)
    rest = [_placed(job, first.submit_args, context, first.account) for job in others]
    return [first, *rest]


def _placed(job: Sent, usual: Sequence[str], context: str, namespace: str) -> Destination:
    """Return a job that is sent to a place, where it does not name another one."""
    arguments = tuple(job.submit_args or usual)
    if context and not context_in(arguments):
        arguments = (f"{ARGUMENT}{context}", *arguments)
    return Destination(job.account or namespace, tuple(job.directives), arguments)


def _namespace_of_our_pod(variables: Mapping[str, str]) -> str:
    """Return the namespace that kubectl takes in a pod if its file names none."""
    if IN_A_POD not in variables or not Path(ACCOUNT, "token").is_file():
        return ""
    try:
        own = Path(ACCOUNT, "namespace").read_text("utf-8")
    except (OSError, ValueError):
        own = ""
    return variables.get(OWN_NAMESPACE) or own.strip()


# The pod that Jupyter runs in, as the pattern of its clusters' pods.

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
