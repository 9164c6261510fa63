"""Decisions about this host that no batch system reports, each with its reason."""

from __future__ import annotations

import os
import resource
import shlex
import socket
import subprocess
from pathlib import Path

from ..core.fast_dataclass import frozen
from ..doctor.here import is_shared
from ..launch.python_environments import check_python
from ..node.probe import file_system, interfaces

FEW_PROCESSES = 256
"""A scheduler with its threads, commands and Jupyter beside it come near this limit."""
IMPORT_SECONDS = 120.0
MODULES = "LOADEDMODULES"
"""Set by Environment Modules and by Lmod: the loaded modules."""


@frozen
class Decision:
    """A value of a profile; empty if it stays a question."""

    value: str
    reason: str
    prologue: str = ""
    """A line of the job script that the value needs."""


def head_placement() -> Decision:
    """Decide whether schedulers may run on this host."""
    seconds = resource.getrlimit(resource.RLIMIT_CPU)[0]
    if seconds != resource.RLIM_INFINITY:
        return Decision(
            "job", f"this host ends a process after {seconds} s of CPU time (ulimit -t)"
        )
    processes = _most_processes()
    if 0 <= processes < FEW_PROCESSES:
        return Decision("job", f"this host allows you {processes} processes")
    return Decision("server", "this host has no limit of CPU time or processes")


def _most_processes() -> int:
    """Return the smallest limit of processes and threads; -1 = no limit."""
    limits = [resource.getrlimit(resource.RLIMIT_NPROC)[0]]
    try:
        own = Path("/proc/self/cgroup").read_text().rpartition("0::/")[2].strip()
        group = Path("/sys/fs/cgroup", own)
        for place in (group, *group.parents):
            text = (place / "pids.max").read_text().strip() if (place / "pids.max").exists() else ""
            limits += [int(text)] if text.isdecimal() else []
    except OSError:
        pass  # another version of control groups
    return min((each for each in limits if each >= 0), default=-1)


def head_interface(node: str) -> Decision:
    """Find the network interface whose route leads to a node."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.connect((node, 9))  # sends nothing
            address = str(way.getsockname()[0])
    except OSError as error:
        return Decision("", f"the address of node {node or '?'} is unknown ({error})")
    name = next((name for name, own in interfaces().items() if own == address), "")
    if not name or address.startswith("127."):
        return Decision("", f"{address} is this host's way to node {node}")
    return Decision(name, f"{address} is this host's way to node {node}")


def python_for_jobs(python: str) -> Decision:
    """Check a Python, also without the variables of this shell, which a node may not have."""
    found = check_python(python)
    if not found.suitable:
        return Decision("", f"{found.python}: {' '.join(found.problems)}")
    versions = f"Python {found.versions['python']}, distributed {found.versions['distributed']}"
    doubts = []
    if not is_shared(kind := file_system(found.python)):
        doubts.append(f"{kind or 'its file system'} may not be on the nodes")
    command = [found.python, "-c", "import distributed"]
    modules = os.environ.get(MODULES, "").replace(":", " ").split()
    line = ""
    if not _runs_alone(command):
        line = f"module load {shlex.join(modules)}" if modules else ""
        if not (line and _runs_alone(["bash", "-lc", f"{line} && exec {shlex.join(command)}"])):
            line = ""
            doubts.append("it needs variables of this shell")
    doubts += ["dask-cuda is missing, which GPU workers need"] if found.gpu_problems else []
    guessed = f"; guessed: {'; '.join(doubts)}" if doubts else ""
    return Decision(found.python, f"checked here: {versions}{guessed}", line)


def _runs_alone(command: list[str]) -> bool:
    plain = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(Path.home())}
    try:
        ran = subprocess.run(command, env=plain, capture_output=True, timeout=IMPORT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0
