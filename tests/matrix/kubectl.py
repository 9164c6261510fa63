"""kubectl in this process: its words about what the stand-in of an API server answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..integration.batch.systems import kubernetes
from ..integration.batch.systems.admission import Refused
from ..integration.batch.systems.engine import Answer, Site

USER, NAMESPACE = "ann", "default"


def silence(program: str) -> Answer:
    """Return what kubectl answers while the API server is down."""
    words = "dial tcp 192.0.2.7:6443: connect: connection refused"
    return Answer(err=f"Unable to connect to the server: {words}\n", code=1)


def answer(site: Site, program: str, argv: Sequence[str], stdin: str = "") -> Answer:
    """Return what kubectl answers to `create`, `delete`, or the listing's shell script."""
    if program == "sh":
        return told(lambda: [json.dumps(request(site, "GET", query=argv[-1]))])
    if argv[0] == "delete":
        names = [word for word in argv[1:] if word != "pods" and not word.startswith("-")]
        there = {job.name for job in site.jobs}
        return told(lambda: [delete(site, name) for name in names if name in there])
    items = json.loads(stdin)["items"]
    return told(lambda: [create(site, pod) for pod in items])


def told(work: Callable[[], list[str]]) -> Answer:
    """Return the lines of a piece of work, or kubectl's words about its refusal."""
    try:
        return Answer("".join(f"{line}\n" for line in work()))
    except Refused as refused:
        words = f'Error from server ({refused.reason}): error when creating "STDIN": '
        return Answer(err=f"{words}{refused.message}\n", code=1)


def create(site: Site, pod: dict[str, Any]) -> str:
    request(site, "POST", body=pod)
    return f"pod/{pod['metadata']['name']}"


def delete(site: Site, name: str) -> str:
    request(site, "DELETE", f"/{name}")
    return f'pod "{name}" deleted'


def request(
    site: Site, method: str, path: str = "", *, query: str = "", body: dict[str, Any] | None = None
) -> Any:
    """Send one request to the stand-in."""
    if site.lies and method == "GET":
        return kubernetes.listing("PodList", [])
    path = f"/api/v1/namespaces/{NAMESPACE}/pods{path}"
    return kubernetes.answer(site, USER, method, path, {"labelSelector": query}, body or {})
