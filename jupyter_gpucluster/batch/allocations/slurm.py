"""``scontrol show job -d``: https://slurm.schedmd.com/scontrol.html."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...core.errors import BackendUnavailable
from ...core.job import Allocation, CommandResult, Share
from ..slurm import LISTED, SILENT, Slurm, gpus_of

UNKNOWN = re.compile(r"Invalid job id", re.IGNORECASE)
FIELDS = {
    "JobArrayID": "JobId", "State": "JobState", "Reason": "Reason", "NodeList": "NodeList",
    "StartTime": "StartTime", "EndTime": "EndTime", "Name": "JobName",
}  # fmt: skip
"""What scontrol calls the columns of squeue."""
DETAIL = re.compile(r" Nodes=(\S+) CPU_IDs=(\S*) Mem=(\d*)(?: GRES=(\S*))?")
"""What a job has on nodes where it has the same."""


def ask(id: str, user: str) -> list[str]:
    """Return the command that describes a job, node by node."""
    return ["scontrol", "show", "job", "-d", "-o", id]


def read(id: str, result: CommandResult) -> Allocation | None:
    """Read scontrol's line."""
    if result.exit_code and UNKNOWN.search(result.stderr + result.stdout):
        return None
    lines = [line for line in result.stdout.splitlines() if line.startswith("JobId=")]
    if result.exit_code != 0 or SILENT.search(result.stderr) or not lines:
        raise BackendUnavailable("Slurm did not answer scontrol.", detail=result.stderr)
    # A whole array or a heterogeneous job has several lines; the number's own comes before others.
    line = next((line for line in lines if line.startswith(f"JobId={id} ")), lines[0])
    row: dict[str, Any] = dict.fromkeys(LISTED, "")
    row |= {column: _field(line, name) for column, name in FIELDS.items()}
    job = Slurm().listed(row)
    return Allocation(job, _field(line, "UserId").partition("(")[0], tuple(_shares(line)))


def of_process(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in."""
    return environ.get("SLURM_JOB_ID", "")


def _field(line: str, name: str) -> str:
    match = re.search(rf"(?:^| ){name}=(\S*)", line)
    return "" if match is None or match[1] == "(null)" else match[1]


def _shares(line: str) -> Iterator[Share]:
    found = DETAIL.findall(line)
    for hosts, cpus, memory, gres in found:
        mebibytes = int(memory or 0)
        yield Share(hosts, _count(cpus), gpus_of(gres), mebibytes * 2**20 or None)
    hosts, number = _field(line, "NodeList"), _field(line, "NumNodes").partition("-")[0]
    if hosts and not found and number.isdecimal():
        cpus, nodes = _field(line, "NumCPUs").partition("-")[0], int(number) or 1
        yield Share(hosts, max(1, int(cpus or 1) // nodes))


def _count(numbers: str) -> int:
    """Count ``0-3,7``."""
    total = 0
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", numbers):
        total += int(last or first) - int(first) + 1
    return max(1, total)
