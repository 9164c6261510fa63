"""Decide that a job has lost its cluster: neither lease nor scheduler has shown life for long.

A job's script runs this file on the job's first node.  It exits with `LOST` when the job must end.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import select
import signal
import socket
import ssl
import struct
import sys
import time
from typing import Callable

LOST = 75
LOOK_SECONDS = 30.0
"""Interval of the looks; each that finds no sign of life counts for so long, however long it took:
neither a suspended job nor a look that hangs is silence."""
WAIT_SECONDS = 9.0
"""Longest wait for the disk, and for the scheduler; a second more where the kernel lets none of it
be ended."""
SCHEDULER = "scheduler.json"
PEMS = ("ca.pem", "worker-cert.pem", "worker-key.pem")


class Child:
    """A child process that does what may hang; while one hangs there is no second one."""

    pid = 0

    def ask(self, work: Callable[[], str]) -> str:
        """Return what the work returns; empty if it fails or takes too long."""
        if self.pid and os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            return ""
        reader, writer = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            # No longer than this process waits, or lives.
            signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS)
            try:
                os.write(writer, work().encode())  # less than a pipe holds
            finally:
                os._exit(0)
        os.close(writer)
        try:
            answer, deadline = b"", time.monotonic() + WAIT_SECONDS + 1.0
            while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
                part = os.read(reader, 65536)
                if not part:
                    os.waitpid(self.pid, 0)
                    self.pid = 0
                    return answer.decode()
                answer += part
            return ""
        finally:
            os.close(reader)


class Guard:
    """Keep the signs of life of one cluster.

    Parameters
    ----------
    directory, job
        The cluster's directory, and the job's name.
    late, limit
        A younger lease shows life; without a sign of life for ``limit`` seconds the job is lost.
    """

    def __init__(self, directory: str, job: str, late: float, limit: float) -> None:
        self.lease = os.path.join(directory, "lease")  # noqa: PTH118  # text, as all paths here
        self.beside = os.path.join(directory, "exit", "." + job)  # noqa: PTH118
        self.directory = directory
        self.late, self.limit = late, limit
        self.disk, self.network = Child(), Child()
        self.before = self.reason = ""
        self.silent = 0.0
        self.scheduler: list[str] = []
        self.context: ssl.SSLContext | None = None

    def look(self) -> bool:
        """Look once; return whether the job has lost its cluster."""
        # Both files get their times from one file server: no two clocks are compared.
        renewed, _, age = self.disk.ask(self.times).partition(" ")
        if not self.scheduler and renewed:
            self.read_scheduler()
        lease = "was not renewed" if renewed else "could not be read"
        lives = renewed not in ("", self.before) or (age and abs(float(age)) <= self.late)
        self.before = renewed or self.before
        lives = lives or bool(self.scheduler and self.network.ask(self.identity))
        self.silent = 0.0 if lives else self.silent + LOOK_SECONDS
        self.reason = (
            f"The cluster's lease {lease}, and its scheduler process did not answer for"
            f" {self.silent:.0f} s: ending this job."
        )
        return self.silent >= self.limit

    def times(self) -> str:
        """Return when the lease was renewed, and its age if a file beside it can be touched."""
        renewed = os.stat(self.lease).st_mtime  # noqa: PTH116
        try:
            os.close(os.open(self.beside, os.O_WRONLY | os.O_CREAT, 0o600))
            os.utime(self.beside)
            return f"{renewed} {os.stat(self.beside).st_mtime - renewed}"  # noqa: PTH116
        except OSError:
            return f"{renewed} "

    def read_scheduler(self) -> None:
        """Keep address and id of the scheduler, and the certificates, once they are there."""
        found = self.disk.ask(self.scheduler_text)
        if found:
            address, id, *pems = json.loads(found)
            self.context = context_of(*pems) if pems else None
            self.scheduler = [address, id]

    def scheduler_text(self) -> str:
        """Return the address and the id of the scheduler, and the cluster's certificates."""
        with open(os.path.join(self.directory, SCHEDULER)) as stream:  # noqa: PTH118, PTH123
            scheduler = json.load(stream)
        found = [scheduler["address"], scheduler["id"]]
        for name in PEMS if found[0].startswith("tls:") else ():
            with open(os.path.join(self.directory, "tls", name)) as stream:  # noqa: PTH118, PTH123
                found.append(stream.read())
        return json.dumps(found)

    def identity(self) -> str:
        """Return the scheduler's id if this cluster's scheduler answers at its address."""
        address, id = self.scheduler
        host, _, port = address.partition("://")[2].rpartition(":")
        place = (host.strip("[]"), int(port))
        with socket.create_connection(place, WAIT_SECONDS) as connection:
            if self.context is not None:
                self.context.wrap_socket(connection).close()
                return id
            if not address.startswith("tcp:"):
                return ""  # UCX has no listener that this can ask
            connection.sendall(REQUEST)
            received = part = b"-"
            while part and id.encode() not in received:
                part = connection.recv(65536)
                received += part
            return id if part else ""


def context_of(ca: str, certificate: str, key: str) -> ssl.SSLContext:
    """Return the check of the scheduler's certificate, which its own cluster must have signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The authority signs for this cluster alone, and knows no names of hosts.
    context.check_hostname = False
    context.load_verify_locations(cadata=ca)
    readers = []
    for text in (certificate, key):  # Python takes them from files only
        reader, writer = os.pipe()
        os.write(writer, text.encode())
        os.close(writer)
        readers.append(reader)
    context.load_cert_chain(*(f"/dev/fd/{reader}" for reader in readers))
    for reader in readers:
        os.close(reader)
    return context


def framed(message: bytes) -> bytes:
    """Return a message of Dask's in one frame."""
    return struct.pack("<QQQ", 16 + len(message), 1, len(message)) + message


REQUEST = framed(b"\x83\xabcompression\xc0\xa6python\x93\x03\x08\x00\xafpickle-protocol\x04") + (
    framed(b"\x82\xa2op\xa8identity\xa5reply\xc3")
)
"""Dask's greeting (``{"compression": None, "python": [3, 8, 0], "pickle-protocol": 4}``) and
``{"op": "identity", "reply": True}``, in msgpack."""


def main(directory: str, job: str, worker: str, late: str, limit: str) -> None:
    """Look until the job has lost its cluster, or its worker's process is gone."""
    guard = Guard(directory, job, float(late), float(limit))
    codecs.lookup("idna")  # of names of hosts; later its file may be on what hangs
    with contextlib.suppress(ProcessLookupError):
        while True:
            began = time.monotonic()
            if guard.look():
                # The log may be on what hangs.
                guard.network.ask(lambda: str(print(guard.reason, flush=True)))
                sys.exit(LOST)
            time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began)))
            os.kill(int(worker), 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
