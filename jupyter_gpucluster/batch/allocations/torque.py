"""``qstat -f -x`` of Torque."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from xml.etree import ElementTree

from ...core.errors import BackendUnavailable
from ...core.job import Allocation, CommandResult, Share
from ..torque import Torque

UNKNOWN = re.compile(r"Unknown Job Id", re.IGNORECASE)
SLOTS = re.compile(r"([\w.-]+)/(\d+)(?:-(\d+))?")
GPU = re.compile(r"([\w.-]+)-gpu/\d+")


def ask(id: str, user: str) -> list[str]:
    """Return the command that describes a job."""
    return ["qstat", "-f", "-x", id]


def read(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's XML."""
    if UNKNOWN.search(result.stderr):
        return None
    text = result.stdout[max(0, result.stdout.find("<")) :]
    try:
        job = ElementTree.fromstring(text).find("Job")  # noqa: S314  # expat bounds entities
    except ElementTree.ParseError:
        job = None
    if result.exit_code != 0 or job is None or job.find("Job_Id") is None:
        raise BackendUnavailable("Torque did not answer qstat.", detail=result.stderr)
    fields = {field.tag: field.text or "" for field in job}
    status = Torque().described(fields)
    walltime = _seconds(job.findtext("Resource_List/walltime") or "")
    if status.started is not None and walltime:
        status = replace(status, ends=status.started + walltime)
    slots: Counter[str] = Counter()
    for host, first, last in SLOTS.findall(fields.get("exec_host", "")):
        slots[host] += int(last or first) - int(first) + 1
    gpus = Counter(GPU.findall(fields.get("exec_gpus", "")))
    shares = tuple(Share(host, count, gpus[host]) for host, count in slots.items())
    return Allocation(status, fields.get("Job_Owner", "").partition("@")[0], shares)


def of_process(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in."""
    return environ.get("PBS_JOBID", "") if "TORQUE" in environ.get("PBS_VERSION", "") else ""


def _seconds(text: str) -> int:
    match = re.fullmatch(r"(\d+):(\d\d):(\d\d)", text)
    return int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3]) if match else 0
