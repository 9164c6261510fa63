"""Kubernetes as a place: a real kubectl, and an API server that stands in for the one site."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jupyter_gpucluster.core.job import Job
from tests.waiting import until

from .ordinary_user import CHECKOUT
from .places import SimulatedPlace, Words
from .real_site import end
from .systems import engine, kubernetes
from .systems.admission import READER

USER = "ann"
NAMESPACE = "default"
"""Not that of kubectl's context, so that clusters have to tell it."""
IMAGE = "spec.containers[0].image = python:3.12"
OWN = f'cpus: 1, memory: 500 MiB, walltime: "00:10:00", directives: ["{IMAGE}"]'
"""Requests of a job in the namespace of kubectl's context."""
WORDS = Words(
    job=f"{{{OWN}, account: {NAMESPACE}}}",
    refused=f"{{{OWN}, account: nosuch}}",
    said='namespaces "nosuch" not found',
    command="$ kubectl",
    code=1,
    fix="job.account is the namespace",
    waits="0/2 nodes are available",
    held="Waits for its turn in Kueue's queue",
)


class KubernetesPlace(SimulatedPlace):
    """An API server of its own, and the access to it that a user has."""

    def __init__(self, base: Path) -> None:
        super().__init__(base, "kubernetes", WORDS, ())
        for part in ("exit", "spool"):
            (base / part).mkdir(parents=True)
        write_certificate(base)

    def access(self, user: str) -> Path:
        """Return the file by which a user gets at the server."""
        return self.base / f"{user}.kubeconfig"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variable by which kubectl finds the server."""
        return {"KUBECONFIG": str(self.access(USER))}

    def start(self, port: int = 0) -> None:
        """Start the server, by default on any port."""
        file = self.base / "port"
        file.unlink(missing_ok=True)
        argv = [sys.executable, "-m", kubernetes.__name__, str(self.base), str(port)]
        self.process = subprocess.Popen(argv, cwd=CHECKOUT)
        until(file.exists)
        self.port = int(file.read_text())
        for token, user in kubernetes.TOKENS.items():
            self.access(user).write_text(json.dumps(access(self.port, user, token)))

    def stop(self) -> None:
        """Stop the server; pods go on without it."""
        end([self.process.pid])
        self.process.wait()

    @contextlib.contextmanager
    def silence(self) -> Iterator[None]:
        """Let the server be down for a while."""
        self.stop()
        yield
        self.start(self.port)

    def kubectl(self, *words: str, user: str = USER, stdin: str = "") -> engine.Answer:
        """Run kubectl."""
        argv = ["kubectl", f"--kubeconfig={self.access(user)}", *words]
        ran = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
        return engine.Answer(ran.stdout, ran.stderr, ran.returncode)

    def configure(self, *words: str) -> None:
        """Change the user's file as users do."""
        told = self.kubectl("config", *words)
        assert told.code == 0, told

    def switch_away(self) -> None:
        """Have kubectl look into another namespace, and at a server that is none."""
        self.configure("set-context", "--current", "--namespace=default")
        self.configure("set-cluster", "dead", "--server=https://127.0.0.1:1")
        self.configure("set-context", "dead", "--cluster=dead", f"--user={USER}")
        self.configure("use-context", "dead")

    def living(self) -> dict[str, tuple[int, int]]:
        """Return number and task of the job of each pod that waits or runs, by its name."""
        with engine.opened(self.base) as site:
            return {job.name: (job.number, job.task) for job in site.living()}

    def kill(self, id: str) -> None:
        """Delete a pod of a cluster, as its user."""
        self.delete(id, f"--namespace={NAMESPACE}")

    def delete(self, *words: str) -> None:
        """Delete a pod."""
        told = self.kubectl("delete", "pod", "--wait=false", *words)
        assert told.code == 0, told

    @contextlib.contextmanager
    def doing_to(self, *jobs: Job) -> Iterator[tuple[engine.Site, list[engine.Job]]]:
        """Open the site to do something to the pods of jobs of a cluster's record."""
        with self.doing_to_pods(*(job.id for job in jobs)) as opened:
            yield opened

    @contextlib.contextmanager
    def doing_to_pods(self, *names: str) -> Iterator[tuple[engine.Site, list[engine.Job]]]:
        """Open the site to do something to pods."""
        with engine.opened(self.base) as site:
            yield site, [job for job in site.living() if job.name in names]

    def left(self) -> list[str]:
        told = self.kubectl("get", "pods", "--all-namespaces", "-o=name", user=READER)
        assert told.code == 0, told
        return str(told.out).split()


@contextlib.contextmanager
def running(base: Path) -> Iterator[KubernetesPlace]:
    """Have an API server for a while."""
    place = KubernetesPlace(base)
    place.start()
    try:
        yield place
    finally:
        place.stop()


def write_certificate(base: Path) -> None:
    """Write the server's certificate, which speaks for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    now = dt.datetime.now(dt.UTC)
    hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    (base / "server-cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (base / "server-key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def access(port: int, user: str, token: str) -> dict[str, object]:
    """Return what a user's file says of the server."""
    server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": "server-cert.pem"}
    context = {"cluster": "site", "user": user, "namespace": "physics"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "site", "cluster": server}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "site", "context": context}],
        "current-context": "site",
    }
