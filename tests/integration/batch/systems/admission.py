"""Refusals of a Kubernetes API server, in its words: rights, quotas, fields and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .engine import Site
from .pods import GPU, amount, asked, namespace_of

READER = "bob"
"""May see everything; others see nothing but the pods of namespaces."""
NAMESPACES = ("default", "physics", "small", "closed")
CLOSED = "closed"
"""Nobody may do anything there."""
SMALL = "small"
"""One GPU is all that may be asked for there, and 8 GiB of memory by a container."""
PRIORITIES = ("system-cluster-critical", "batch")
FIELDS = {
    "activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsPolicy",
    "enableServiceLinks", "hostIPC", "hostNetwork", "hostPID", "imagePullSecrets",
    "initContainers", "nodeName", "nodeSelector", "preemptionPolicy", "priorityClassName",
    "resources", "restartPolicy", "runtimeClassName", "schedulerName", "schedulingGates",
    "securityContext", "serviceAccountName", "shareProcessNamespace", "subdomain",
    "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints", "volumes",
}  # fmt: skip
"""Those of a pod's specification that anybody may want here."""
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
NO_LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NO_NAME = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
    " validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NO_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
NO_POD = 'Pod in version "v1" cannot be handled as a Pod: '


@dataclass
class Refused(Exception):
    """An answer of the API that is no success: its Status object."""

    code: int
    reason: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)

    def status(self) -> dict[str, Any]:
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        told = {"message": self.message, "reason": self.reason, "details": self.details}
        return {**head, **told, "code": self.code}


def not_found(kind: str, name: str) -> Refused:
    return Refused(404, "NotFound", f'{kind} "{name}" not found', {"name": name, "kind": kind})


def forbidden(name: str, why: str, kind: str = "pods") -> Refused:
    what = f'{kind} "{name}"' if name else kind
    details = {"name": name, "kind": kind}
    return Refused(403, "Forbidden", f"{what} is forbidden: {why}", details)


def check_rights(user: str, verb: str, namespace: str, kind: str = "pods", name: str = "") -> None:
    """Refuse what a user's role does not allow; an empty namespace is all of them."""
    place = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    if namespace in ("", CLOSED) and not (user == READER and verb in ("get", "list")):
        cannot = f'User "{user}" cannot {verb} resource "{kind}" in API group "" {place}'
        raise forbidden(name, cannot, kind)


def check_pod(site: Site, namespace: str, pod: Mapping[str, Any], strict: bool) -> None:
    """Refuse a pod as decoding, admission plugins and validation do, in this order."""
    name = str(pod["metadata"].get("name", ""))
    check_form(pod, strict)
    if namespace not in NAMESPACES:
        raise not_found("namespaces", namespace)
    check_policies(name, pod["spec"])
    faults = list(invalid(pod))
    if faults:
        raise is_invalid(name, faults)
    if namespace == SMALL:
        check_quota(site, name, pod)
    if any(job.name == name and namespace_of(job) == namespace for job in site.jobs):
        taken = {"name": name, "kind": "pods"}
        raise Refused(409, "AlreadyExists", f'pods "{name}" already exists', taken)


def check_form(pod: Mapping[str, Any], strict: bool) -> None:
    """Refuse what is no pod: values of another type, unknown fields where they are looked at."""
    spec = pod.get("spec") or {}
    for container in spec.get("containers") or []:
        for each in container.get("env") or []:
            if not isinstance(each.get("value", ""), str):
                kind = "bool" if isinstance(each["value"], bool) else "number"
                raise bad_request(
                    f"json: cannot unmarshal {kind} into Go struct field"
                    " EnvVar.spec.containers.env.value of type string"
                )
        resources = container.get("resources") or {}
        for amounts in (resources.get("limits") or {}, resources.get("requests") or {}):
            for quantity in amounts.values():
                try:
                    amount(quantity)
                except ValueError:
                    raise bad_request(NO_QUANTITY) from None
    if not isinstance(spec.get("activeDeadlineSeconds", 0), int):
        raise bad_request(
            "json: cannot unmarshal string into Go struct field"
            " PodSpec.spec.activeDeadlineSeconds of type int64"
        )
    unknown = sorted(spec.keys() - FIELDS) if strict else []
    if unknown:
        told = ", ".join(f'unknown field "spec.{name}"' for name in unknown)
        raise bad_request(f"strict decoding error: {told}")


def bad_request(why: str) -> Refused:
    return Refused(400, "BadRequest", NO_POD + why)


def check_policies(name: str, spec: Mapping[str, Any]) -> None:
    """Refuse what the site's admission plugins do not let through."""
    priority, account = spec.get("priorityClassName"), spec.get("serviceAccountName", "default")
    if priority and priority not in PRIORITIES:
        raise forbidden(name, f"no PriorityClass with name {priority} was found")
    if account != "default":
        missing = f'serviceaccount "{account}" not found'
        raise forbidden(name, f"error looking up service account default/{account}: {missing}")
    if spec.get("hostNetwork"):
        why = 'violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
        raise forbidden(name, why)


def invalid(pod: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield field, kind and words of each value that a pod may not have."""
    spec, meta = pod["spec"], pod["metadata"]
    if not NAME.fullmatch(str(meta.get("name", ""))):
        yield (
            "metadata.name",
            "FieldValueInvalid",
            f'Invalid value: "{meta.get("name")}": {NO_NAME}',
        )
    for value in (meta.get("labels") or {}).values():
        if not LABEL.fullmatch(str(value)):
            yield "metadata.labels", "FieldValueInvalid", f'Invalid value: "{value}": {NO_LABEL}'
    if not spec.get("containers"):
        yield "spec.containers", "FieldValueRequired", "Required value"
    for number, container in enumerate(spec.get("containers") or []):
        at = f"spec.containers[{number}]"
        if not container.get("image"):
            yield f"{at}.image", "FieldValueRequired", "Required value"
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for resource, wanted in requests.items():
            if resource in limits and amount(wanted) > amount(limits[resource]):
                most = f"must be less than or equal to {resource} limit of {limits[resource]}"
                words = f'Invalid value: "{wanted}": {most}'
                yield f"{at}.resources.requests", "FieldValueInvalid", words
    if spec.get("activeDeadlineSeconds", 1) <= 0:
        given = spec["activeDeadlineSeconds"]
        words = f"Invalid value: {given}: must be between 1 and 2147483647, inclusive"
        yield "spec.activeDeadlineSeconds", "FieldValueInvalid", words


def is_invalid(name: str, faults: list[tuple[str, str, str]]) -> Refused:
    """Return the refusal of a pod with values that it may not have."""
    told = [f"{at}: {words}" for at, _, words in faults]
    causes = [{"reason": kind, "message": words, "field": at} for at, kind, words in faults]
    message = f'Pod "{name}" is invalid: ' + (told[0] if len(told) == 1 else f"[{', '.join(told)}]")
    details = {"name": name, "kind": "Pod", "causes": causes}
    return Refused(422, "Invalid", message, details)


def check_quota(site: Site, name: str, pod: Mapping[str, Any]) -> None:
    """Refuse what is more than the namespace's limits allow."""
    wanted = asked(pod)
    if wanted.get("memory", 0.0) > amount("8Gi"):
        given = pod["spec"]["containers"][0]["resources"]["limits"]["memory"]
        why = f"maximum memory usage per Container is 8Gi, but limit is {given}"
        raise forbidden(name, why)
    kept = [job.given["pod"] for job in site.living() if namespace_of(job) == SMALL]
    used = sum(asked(each).get(GPU, 0.0) for each in kept)
    new = wanted.get(GPU, 0.0)
    if used + new > 1:
        counts = f"requested: requests.{GPU}={new:.0f}, used: requests.{GPU}={used:.0f}"
        why = f"exceeded quota: gpu-quota, {counts}, limited: requests.{GPU}=1"
        raise forbidden(name, why)
