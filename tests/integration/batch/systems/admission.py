"""Refusals of a Kubernetes API server, in its words: rights, quotas and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .engine import Site
from .pods import GPU, asked, namespace_of

READER = "bob"
"""May see everything; others see nothing but the pods of namespaces."""
NAMESPACES = ("default", "physics", "small", "closed")
CLOSED = "closed"
"""Nobody may do anything there."""
SMALL = "small"
"""One GPU is all that may be asked for there."""


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


def check_pod(site: Site, namespace: str, pod: Mapping[str, Any]) -> None:
    """Refuse a pod of another namespace, above its limits, or of a name that is taken."""
    name = str(pod["metadata"].get("name", ""))
    if namespace not in NAMESPACES:
        raise not_found("namespaces", namespace)
    if namespace == SMALL:
        check_quota(site, name, pod)
    if any(job.name == name and namespace_of(job) == namespace for job in site.jobs):
        taken = {"name": name, "kind": "pods"}
        raise Refused(409, "AlreadyExists", f'pods "{name}" already exists', taken)


def check_quota(site: Site, name: str, pod: Mapping[str, Any]) -> None:
    """Refuse what is more than the namespace's limits allow."""
    kept = [job.given["pod"] for job in site.living() if namespace_of(job) == SMALL]
    used = sum(asked(each).get(GPU, 0.0) for each in kept)
    new = asked(pod).get(GPU, 0.0)
    if used + new > 1:
        counts = f"requested: requests.{GPU}={new:.0f}, used: requests.{GPU}={used:.0f}"
        why = f"exceeded quota: gpu-quota, {counts}, limited: requests.{GPU}=1"
        raise forbidden(name, why)
