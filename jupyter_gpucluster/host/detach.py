"""Determine whether a head outlives the Jupyter server or shell that starts it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CONTAINER_MAINS = ("jupyter", "tini", "dumb-init", "docker-init", "catatonit", "start.sh")
"""Process 1 of a container that lives as long as the Jupyter in it does."""
SCOPE = ("systemd-run", "--user", "--scope", "--quiet", "--collect")
PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class Survival:
    """Answer, its sentence, and the arguments that go before the head's command."""

    survives: bool
    words: str
    prefix: tuple[str, ...] = ()


def find_survival(job: str = "") -> Survival:
    """Determine whether a detached process outlives Jupyter.

    Parameters
    ----------
    job
        The batch job that this process is in, such as ``Slurm job 12``; empty if it is in none.
    """
    if job:
        return Survival(False, f"No: it ends with Jupyter, which runs in {job}.")
    init = _read("/proc/1/comm")
    if init.startswith(CONTAINER_MAINS):
        return Survival(False, "No: it ends with the container that Jupyter keeps running.")
    if init != "systemd":
        return Survival(True, "Yes, until this machine or container restarts.")
    leaf = _read("/proc/self/cgroup").rpartition("\n")[2].rpartition("/")[2]
    if _works():
        return Survival(True, "Yes: it runs in a systemd scope of its own.", (*SCOPE, "--"))
    if leaf.endswith(".service"):
        words = f"No: it belongs to {leaf}, and systemd ends all of it when Jupyter stops."
        return Survival(False, words)
    if leaf.startswith("session-"):
        return Survival(True, "Yes, unless this machine ends a user's processes at logout.")
    return Survival(True, "Yes.")


def _works() -> bool:
    """Try whether the user's systemd takes a scope."""
    if not os.environ.get("XDG_RUNTIME_DIR") or shutil.which("systemd-run") is None:
        return False
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [*SCOPE, "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=True,
        )
        return True
    return False


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text().strip()
    return ""
