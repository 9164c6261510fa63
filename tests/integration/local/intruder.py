"""Somebody else on the machine: drops root, tries every door, and prints what opened (JSON).

Reads ``{"uid", "files", "doors", "pages", "certificates"}`` on standard input.  Imports nothing but
the standard library, and that before it drops root: afterwards it could not read it.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any

SECONDS = 5.0


def read_files(paths: list[str]) -> dict[str, str]:
    """Try to list or read each path; an empty answer means that it worked."""
    answers = {}
    for path in map(Path, paths):
        try:
            _ = list(path.iterdir()) if path.is_dir() else path.read_bytes()
            answers[str(path)] = ""
        except OSError as error:
            answers[str(path)] = type(error).__name__
    return answers


def knock(address: list[Any], context: ssl.SSLContext | None) -> bool:
    """Connect and tell whether the other side says anything: Dask greets whom it accepts."""
    try:
        with socket.create_connection((address[0], address[1]), SECONDS) as plain:
            stream = plain if context is None else context.wrap_socket(plain)
            with stream:
                stream.sendall(b"\0" * 64)
                return bool(stream.recv(1))
    except OSError:
        return False


def get(page: list[Any]) -> int:
    """Return the status that a page answers with; 0 where nothing speaks HTTP."""
    host, port, method, path, headers = page
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    try:
        connection.request(method, path, headers=headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def contexts(certificates: dict[str, str | None]) -> dict[str, ssl.SSLContext | None]:
    """Return how to knock, by name: in plain TCP, over TLS, with a certificate and key in PEM."""
    made: dict[str, ssl.SSLContext | None] = {"plain": None}
    for name, pem in certificates.items():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # An intruder does not care whom he talks to.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if pem is not None:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as stream:
                stream.write(pem)
                stream.flush()
                context.load_cert_chain(stream.name)
        made[name] = context
    return made


def main() -> None:
    task = json.load(sys.stdin)
    "x".encode("idna")  # imported by the first connection, which is too late
    ways = contexts(task["certificates"])
    if task["uid"] is not None:
        os.setgroups([])
        os.setgid(task["uid"])
        os.setuid(task["uid"])
    opened = {name: [knock(door, way) for door in task["doors"]] for name, way in ways.items()}
    answers = {
        "uid": os.getuid(),
        "files": read_files(task["files"]),
        "doors": opened,
        "pages": [get(page) for page in task["pages"]],
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
