"""Cores, memory and GPUs of this machine that this process may use."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import InvalidInput

DRIVER_FILES = Path("/proc/driver/nvidia/gpus")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
NVIDIA_SMI_SECONDS = 20.0
NO_DEVICE = ("", "-1", "NoDevFiles")
NO_LIMIT = 1 << 60
"""cgroup v1 writes "no limit" as a number near 2**63."""


@dataclass(frozen=True)
class Machine:
    """Cores, bytes of memory and GPUs (index or UUID) that this process may use."""

    cpus: int
    memory: int
    gpus: tuple[str, ...] = ()
    gpu_trouble: str = ""
    """Why GPUs that may be there cannot be used."""


def look_around() -> Machine:
    """Return what this process may use."""
    gpus, trouble = visible_gpus()
    return Machine(usable_cpus(), usable_memory(), gpus, trouble)


def usable_cpus() -> int:
    """Count the cores that the affinity mask and the control group leave to this process."""
    cpus = len(os.sched_getaffinity(0))
    for group in _control_groups():
        quota = _words(group / "cpu.max")
        if len(quota) == 2 and quota[0].isdigit():
            cpus = min(cpus, int(quota[0]) // int(quota[1]))
    return max(1, cpus)


def usable_memory() -> int:
    """Return the bytes of memory of the machine or of this process's control group."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    files = [group / "memory.max" for group in _control_groups()]
    for path in (*files, CONTROL_GROUPS / "memory/memory.limit_in_bytes"):
        words = _words(path)
        if words and words[0].isdigit() and int(words[0]) < NO_LIMIT:
            total = min(total, int(words[0]))
    return total


def visible_gpus() -> tuple[tuple[str, ...], str]:
    """Return the GPUs that ``CUDA_VISIBLE_DEVICES`` or the driver names, or why there is none."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        named = (part.strip() for part in chosen.split(","))
        # CUDA takes what stands before the first entry that names no device.
        listed = tuple(itertools.takewhile(lambda part: part not in NO_DEVICE, named))
        return listed, "" if listed else f"CUDA_VISIBLE_DEVICES={chosen!r} hides all GPUs."
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=NVIDIA_SMI_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return (), ""
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), f"nvidia-smi does not answer: {error}"
    if answer.returncode:
        return (), f"nvidia-smi failed: {(answer.stderr or answer.stdout).strip()[:200]}"
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip()), ""


def gpu_model() -> str:
    """Return the model of this machine's GPUs by the driver's files; empty if it has several."""
    found = set()
    for file in DRIVER_FILES.glob("*/information"):
        with contextlib.suppress(OSError):
            lines = file.read_text(errors="replace").splitlines()
            found |= {line.partition(":")[2].strip() for line in lines if line[:5] == "Model"}
    return found.pop().removeprefix("NVIDIA ") if len(found) == 1 else ""


def check_interface(name: str, key: str) -> None:
    """Refuse a network interface that a scheduler cannot listen on here.

    Parameters
    ----------
    key
        The profile's key that names it.

    Raises
    ------
    InvalidInput
        There is none of that name, or it has no IPv4 address.
    """
    import psutil  # only where a profile names an interface

    addresses = {
        interface: next((each.address for each in found if each.family == socket.AF_INET), "")
        for interface, found in psutil.net_if_addrs().items()
    }
    if addresses.get(name):
        return
    there = [f"{each} ({address})" for each, address in addresses.items() if address]
    trouble = "has an interface without IPv4 address" if name in addresses else "has no interface"
    raise InvalidInput(
        f"This host {trouble} {name!r} (it has: {', '.join(there)}).",
        hint=f"Set {key} to one of them; where nodes have others, workers take that of"
        " network.interface and the scheduler that of head.interface.",
        detail=key,
    )


def _control_groups() -> list[Path]:
    """Return this process's control group and those around it: each may set a limit."""
    own = next((w[3:] for w in _words(Path("/proc/self/cgroup")) if w.startswith("0::")), "/")
    group = CONTROL_GROUPS / own.lstrip("/")
    return [group, *group.parents[: len(group.parts) - len(CONTROL_GROUPS.parts)]]


def _words(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().split()
    return []
