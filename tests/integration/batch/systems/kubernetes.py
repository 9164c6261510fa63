"""A Kubernetes API server, as far as kubectl asks it about pods and nodes.

It is a process of its own on loopback, with TLS and a bearer token; what it keeps is the site of
`engine`, so that pods really run, and tests can do to them what nodes do.
"""

from __future__ import annotations

import json
import re
import ssl
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from . import pods
from .admission import READER, Refused, check_pod, check_rights, not_found
from .engine import Job, Site, opened

TOKENS = {"of-ann": "ann", "of-bob": READER}
"""Bearer tokens, and whose they are."""
PODS = re.compile(r"/api/v1(?:/namespaces/([^/]+))?/pods(?:/([^/]+))?(/log)?")
VERBS = ["create", "delete", "get", "list"]
RESOURCES = (
    {"name": "namespaces", "namespaced": False, "kind": "Namespace", "shortNames": ["ns"]},
    {"name": "nodes", "namespaced": False, "kind": "Node", "shortNames": ["no"]},
    {"name": "pods", "namespaced": True, "kind": "Pod", "shortNames": ["po"]},
    {"name": "pods/log", "namespaced": True, "kind": "Pod"},
)  # fmt: skip
FIXED: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{"singularName": "", "verbs": VERBS, **each} for each in RESOURCES],
    },
    # Nothing is told of what a pod may have: kubectl then leaves it to the server to say.
    "/openapi/v3": {"paths": {}},
    "/version": {
        "major": "1", "minor": "33", "gitVersion": "v1.33.4", "gitCommit": "", "buildDate": "",
        "gitTreeState": "clean", "compiler": "gc", "goVersion": "go1.24.5", "platform": "linux",
    },
}  # fmt: skip


def answer(
    site: Site, user: str, method: str, path: str, query: Mapping[str, str], body: dict[str, Any]
) -> dict[str, Any] | str:
    """Answer a request, with the text of a log or an object; raises `Refused`."""
    match = PODS.fullmatch(path)
    if match is None:
        raise Refused(404, "NotFound", "the server could not find the requested resource")
    namespace, name, log = match.groups()
    pods.settle(site)
    verb = {"POST": "create", "DELETE": "delete"}.get(method, "get" if name else "list")
    check_rights(user, verb, namespace or "", name=name or "")
    if method == "POST":
        return create(site, namespace or "", query, body)
    if name:
        job = find(site, namespace or "", name)
        if log:
            return Path(job.output).read_text("utf-8", "replace")
        if method == "DELETE":
            pods.delete(site, job, force=body.get("gracePeriodSeconds") == 0)
        return pods.describe(job)
    return listing("PodList", chosen(site, namespace, query))


def create(
    site: Site, namespace: str, query: Mapping[str, str], pod: dict[str, Any]
) -> dict[str, Any]:
    pod["metadata"]["namespace"] = namespace
    check_pod(site, namespace, pod)
    if "dryRun" in query:
        return pod
    return pods.describe(pods.add(site, pod))


def find(site: Site, namespace: str, name: str) -> Job:
    """Return a pod by its name."""
    for job in site.jobs:
        if (job.name, pods.namespace_of(job)) == (name, namespace):
            return job
    raise not_found("pods", name)


def chosen(site: Site, namespace: str | None, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the pods of a namespace, or of all, that the selectors take."""
    found = map(pods.describe, site.jobs)
    return [
        pod
        for pod in found
        if namespace in (None, pod["metadata"]["namespace"])
        and takes(query.get("labelSelector", ""), pod["metadata"].get("labels") or {})
        and takes(query.get("fieldSelector", ""), fields(pod))
    ]


def fields(pod: Mapping[str, Any]) -> dict[str, str]:
    """Return what a field selector may name."""
    return {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "spec.nodeName": pod["spec"].get("nodeName", ""),
        "status.phase": pod["status"]["phase"],
    }


def takes(selector: str, labels: Mapping[str, str]) -> bool:
    """Tell whether labels are as a selector wants them."""
    return all(holds(part.strip(), labels) for part in re.split(r",(?![^(]*\))", selector) if part)


def holds(part: str, labels: Mapping[str, str]) -> bool:
    if among := re.fullmatch(r"(\S+) (not)?in \(([^)]*)\)", part):
        values = [value.strip() for value in among[3].split(",")]
        return (labels.get(among[1]) in values) != bool(among[2])
    if unequal := re.fullmatch(r"(.+?)!=(.*)", part):
        return labels.get(unequal[1]) != unequal[2]
    if equal := re.fullmatch(r"(.+?)==?(.*)", part):
        return labels.get(equal[1]) == equal[2]
    return part.removeprefix("!") in labels if part[0] != "!" else part[1:] not in labels


def listing(kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    base: Path

    def do_GET(self) -> None:
        self.respond()

    do_POST = do_DELETE = do_GET

    def respond(self) -> None:
        """Answer one request, whatever it is."""
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            user = TOKENS.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
            if user is None:
                raise Refused(401, "Unauthorized", "Unauthorized")
            if parts.path == "/openapi/v2":
                # An empty message of theirs, whose other form old clients do not take.
                media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
                return self.say(200, b"", media)
            if parts.path in FIXED:
                return self.say(200, FIXED[parts.path])
            with opened(self.base) as site:
                site.calls.append(f"{self.command} {self.path}")
                given = json.loads(body) if body else {}
                said = answer(site, user, self.command, parts.path, query, given)
            self.say(201 if self.command == "POST" else 200, said)
        except Refused as refused:
            self.say(refused.code, refused.status())

    def say(self, code: int, what: dict[str, Any] | str | bytes, media: str = "") -> None:
        """Send an answer."""
        data = json.dumps(what).encode() if isinstance(what, dict) else what
        data = data.encode() if isinstance(data, str) else data
        media = media or ("application/json" if isinstance(what, dict) else "text/plain")
        self.send_response(code)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet: what is asked stands in the site's calls."""


def serve(base: Path, port: int) -> None:
    """Answer until the process is ended; the file `port` tells when that has begun, and where."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(base / "server-cert.pem", base / "server-key.pem")
    Handler.base = base
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    # The handshake is the connection's own thread's.
    server.socket = tls.wrap_socket(server.socket, True, do_handshake_on_connect=False)
    (base / "port.new").write_text(str(server.server_port))
    (base / "port.new").rename(base / "port")
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
