"""What this machine has for a local cluster: cores, memory, GPUs, as this process may use them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

NVIDIA_SMI_SECONDS = 20.0
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
    quota = _words(Path("/sys/fs/cgroup/cpu.max"))
    if len(quota) == 2 and quota[0].isdigit():
        cpus = min(cpus, max(1, int(quota[0]) // int(quota[1])))
    return max(1, cpus)


def usable_memory() -> int:
    """Return the bytes of memory of the machine or of this process's control group."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    group = next((w for w in _words(Path("/proc/self/cgroup")) if w.startswith("0::")), "0::/")
    for path in (
        Path("/sys/fs/cgroup" + group[3:]) / "memory.max",
        Path("/sys/fs/cgroup/memory.max"),
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ):
        words = _words(path)
        if words and words[0].isdigit() and int(words[0]) < NO_LIMIT:
            total = min(total, int(words[0]))
    return total


def visible_gpus() -> tuple[tuple[str, ...], str]:
    """Return the GPUs that ``CUDA_VISIBLE_DEVICES`` or the driver names, or why there is none."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        listed = tuple(part.strip() for part in chosen.split(",") if part.strip())
        if not listed or listed[0] in ("NoDevFiles", "-1"):
            return (), f"CUDA_VISIBLE_DEVICES={chosen!r} hides all GPUs."
        return listed, ""
    try:
        answer = subprocess.run(  # noqa: S603  # fixed argv
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],  # noqa: S607  # from PATH by design
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


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
