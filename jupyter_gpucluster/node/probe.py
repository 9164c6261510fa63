"""Look around on a node of a job and answer into the shared directory; runs alone in any Python."""

# Beside a job's script, from Python 3.8 on: this file imports nothing but the standard library.

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import resource
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CALL_SECONDS = 5.0
IMPORT_SECONDS = 150.0
COMMAND_SECONDS = 20.0
OTHERS_SECONDS = 90.0
"""Limit of a rank's wait for the others of its job."""
SIOCGIFADDR = 0x8915
PRINTED = "gpucluster-import:"
IMPORTING = f"""
import sys, time
began = time.monotonic()
sys.path = [p for p in sys.path if p]
import importlib, json, platform
found, troubles = {{"python": platform.python_version()}}, {{}}
for name in sys.argv[1:]:
    try:
        module = importlib.import_module(name)
        found[name] = str(getattr(module, "__version__", "?"))
    except BaseException as error:
        troubles[name] = f"{{type(error).__name__}}: {{error}}"[:500]
print({PRINTED!r} + json.dumps(
    {{"versions": found, "troubles": troubles, "seconds": time.monotonic() - began}}))
"""


# What a machine is like.


def interfaces() -> dict[str, str]:
    """Return the IPv4 address of each network interface that has one."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, request)
                found[name] = socket.inet_ntoa(answer[20:24])
    return found


def usual_address() -> str:
    """Return the address that Dask takes where no interface is named: that of the default route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("8.8.8.8", 80))  # sends nothing
            return str(asked.getsockname()[0])
        except OSError:
            with contextlib.suppress(OSError):
                return socket.gethostbyname(socket.gethostname())
    return "127.0.0.1"


def file_system(path: str) -> str:
    """Return the type of the file system that a path lies on; empty where nothing tells."""
    real, best, kind = os.path.realpath(path), "", ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").split("\n"):
            left, _, right = line.partition(" - ")  # proc(5): five fields at least, then the type
            with contextlib.suppress(IndexError):
                place = left.split()[4].replace("\\040", " ")
                inside = place == "/" or real == place or real.startswith(place + "/")
                if inside and len(place) >= len(best):
                    best, kind = place, right.split()[0]
    return kind


def open_files() -> list[int]:
    """Return the soft and the hard limit of open files; -1 = none."""
    return list(resource.getrlimit(resource.RLIMIT_NOFILE))


def directory(path: str) -> dict[str, Any]:
    """Tell whether files can be made in a directory, or where it would be made; and its room."""
    place = os.path.abspath(os.path.expandvars(path) or tempfile.gettempdir())  # noqa: PTH100
    there = place
    while not os.path.isdir(there) and there != "/":  # noqa: PTH112
        there = os.path.dirname(there)  # noqa: PTH120
    report: dict[str, Any] = {"path": place, "trouble": "", "file_system": file_system(there)}
    try:
        handle, name = tempfile.mkstemp(prefix=".gpc-doctor-", dir=there)
        os.close(handle)
        os.unlink(name)  # noqa: PTH108
        room = os.statvfs(there)
        report["free"] = room.f_bavail * room.f_frsize
        report["free_files"] = room.f_favail if room.f_files else None
    except OSError as error:
        report["trouble"] = f"{there}: {error.strerror}"
    return report


def graphics() -> dict[str, Any]:
    """Return data of GPUs without a library of CUDA's."""
    report: dict[str, Any] = {
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "driver": Path("/proc/driver/nvidia/version").exists(),
        "listed": [],
        "trouble": "",
    }
    if shutil.which("nvidia-smi") is None:
        return {**report, "trouble": "there is no nvidia-smi"}
    code, output = run(["nvidia-smi", "-L"])
    if code:
        return {**report, "trouble": f"nvidia-smi -L: {output.strip()[-300:] or code}"}
    listed = [line.strip() for line in output.splitlines() if line.startswith("GPU ")]
    return {**report, "listed": listed}


def first_import(
    python: str, modules: list[str], variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Let a Python import modules; return versions, troubles and the seconds from its start."""
    began = time.monotonic()
    code, output = run([python, "-c", IMPORTING, *modules], IMPORT_SECONDS, variables)
    for line in output.splitlines():
        if line.startswith(PRINTED):
            report: dict[str, Any] = json.loads(line[len(PRINTED) :])
            return {**report, "seconds": time.monotonic() - began}
    last = (output.strip().splitlines() or [f"exit code {code}"])[-1]
    return {"versions": {}, "troubles": {"": last}, "seconds": time.monotonic() - began}


def run(
    argv: list[str], seconds: float = COMMAND_SECONDS, variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run a command; return its exit code and all that it says."""
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except OSError as error:
        return 127, f"{argv[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]} did not answer within {seconds:.0f} s"
    return done.returncode, done.stdout.decode("utf-8", "replace")


# Calls between machines, in which no other user can take part.


def answer_to(secret: str) -> str:
    """Return what only somebody answers who knows the secret."""
    return hashlib.sha256(f"answer to {secret}".encode()).hexdigest()


class Listener(socketserver.ThreadingTCPServer):
    """Answers calls of this probe's machines on a free port, until it is closed."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, secret: str) -> None:
        super().__init__(("", 0), socketserver.BaseRequestHandler)
        self.secret = secret
        self.callers: set[str] = set()
        self.port = int(self.server_address[1])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request: Any, client_address: object) -> None:
        """Answer one call, where the caller knows the secret."""
        with contextlib.suppress(OSError):
            request.settimeout(CALL_SECONDS)
            secret, _, name = read_line(request).partition(" ")
            if hmac.compare_digest(secret.encode(), self.secret.encode()):
                self.callers.add(name)
                request.sendall(f"{answer_to(self.secret)} {time.time()}\n".encode())

    def close(self) -> None:
        """Take no more calls."""
        self.shutdown()
        self.server_close()


def call(address: str, port: int, secret: str, name: str) -> dict[str, Any]:
    """Call a listener; return why it cannot be reached, and how far its clock is ahead."""
    began = time.time()
    try:
        with socket.create_connection((address, port), CALL_SECONDS) as line:
            line.settimeout(CALL_SECONDS)
            line.sendall(f"{secret} {name}\n".encode())
            output, _, clock = read_line(line).partition(" ")
    except socket.timeout:  # another class before Python 3.10
        return {"trouble": f"no answer within {CALL_SECONDS:.0f} s"}
    except OSError as error:
        return {"trouble": error.strerror or str(error)}
    with contextlib.suppress(ValueError):
        if output == answer_to(secret):
            return {"trouble": "", "ahead": float(clock) - (began + time.time()) / 2}
    return {"trouble": "another server answers there"}


def read_line(line: socket.socket) -> str:
    """Read up to a line end, and no more than a call has."""
    with line.makefile("rb") as stream:
        return stream.readline(300).decode("utf-8", "replace").strip()


# A rank of the job.


def main(arguments: list[str]) -> int:
    """Answer for one rank, or for the first node's ssh."""
    place = Path(arguments[1])
    plan = json.loads((place / "jobs" / "probe.json").read_text())
    if arguments[0] == "ssh":
        write(place / "answers" / "ssh.json", try_ssh(arguments[2:], plan["nodes"]))
        return 0
    name, local_directory = arguments[2], (arguments[3:] or [""])[0]
    listener = Listener(plan["secret"])
    me = {"name": name, "host": host(), "interfaces": interfaces(), "usual": usual_address()}
    write(place / "answers" / f"{name}.hello", {**me, "port": listener.port})
    report: dict[str, Any] = {
        **me,
        "file_system": file_system(str(place)),
        "home": {
            address: call(address, plan["port"], plan["secret"], name)
            for address in plan["addresses"]
        },
        "local_directory": directory(local_directory),
        "open_files": open_files(),
        "gpus": graphics(),
        "missing": [each for each in plan["programs"] if shutil.which(each) is None],
        "imports": first_import(plan["python"], plan["modules"]),
    }
    others = wait_for(place, ".hello", plan["ranks"])
    report["neighbour"] = call_next(name, others, plan)
    write(place / "answers" / f"{name}.json", report)
    # A launcher ends all ranks when one of them ends, and the others may yet call this one.
    wait_for(place, ".json", plan["ranks"])
    listener.close()
    return 0


def host() -> str:
    """Return the node's name as the batch system says it, else its own."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def wait_for(place: Path, suffix: str, count: int) -> dict[str, dict[str, Any]]:
    """Return what the ranks have written, after all have or none is waited for any longer."""
    deadline = time.monotonic() + OTHERS_SECONDS
    while True:
        found = answers(place, suffix)
        if len(found) >= count or time.monotonic() > deadline or not place.is_dir():
            return found
        time.sleep(0.5)


def answers(place: Path, suffix: str) -> dict[str, dict[str, Any]]:
    """Return what each rank has written so far; files are found by listing the directory."""
    with contextlib.suppress(OSError):
        paths = [path for path in sorted((place / "answers").iterdir()) if path.suffix == suffix]
        found = {path.stem: read(path) for path in paths if path.stem != "ssh"}
        return {name: report for name, report in found.items() if report}
    return {}


def call_next(name: str, others: dict[str, dict[str, Any]], plan: dict[str, Any]) -> dict[str, Any]:
    """Call the next rank on another node, in a ring, where its workers would listen."""
    names = sorted(others)
    at = names.index(name) if name in names else 0
    for its in (others[other] for other in names[at + 1 :] + names[:at]):
        if its["host"] != host():
            address = its["interfaces"].get(plan["interface"]) or its["usual"]
            report = call(address, its["port"], plan["secret"], name)
            return {"host": its["host"], "address": address, "trouble": report["trouble"]}
    return {}


def try_ssh(command: list[str], nodes: int) -> dict[str, Any]:
    """Log in to each of the job's nodes as the launcher does, without a password."""
    reader = str(Path(__file__).with_name("hostlists.py"))
    code, output = run([sys.executable, reader, str(nodes), "{}"])
    if code:
        return {"hosts": [], "troubles": {"": output.strip()}}
    hosts = output.split()
    return {"hosts": hosts, "troubles": log_in(command, hosts)}


def log_in(command: list[str], hosts: list[str]) -> dict[str, str]:
    """Return the hosts that ssh cannot log in to without asking, each with ssh's words."""
    patient = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=5"]
    troubles = {}
    for each in hosts:
        code, output = run([*command, *patient, each, "true"])
        if code:
            troubles[each] = (output.strip().splitlines() or [f"exit code {code}"])[-1]
    return troubles


def read(path: Path) -> dict[str, Any] | None:
    """Return what a file holds, None where it is not there yet."""
    with contextlib.suppress(OSError, ValueError):
        report: dict[str, Any] = json.loads(path.read_text())
        return report
    return None


def write(path: Path, report: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(json.dumps(report))
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
