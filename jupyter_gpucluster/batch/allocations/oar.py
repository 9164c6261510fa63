"""``oarstat -j``: https://oar.readthedocs.io/en/2.5/user/commands/oarstat.html."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...core.errors import BackendUnavailable
from ...core.job import Allocation, CommandResult, Share
from ..oar import Oar, answer_of

DESCRIBE = """\
job=$(oarstat -J -f -j "$1") || exit
[ "$job" ] || exit 0
printf '%s\\n' "$job"
oarstat -p -j "$1" 2>/dev/null
exit 0"""
"""Only the second tells what is on which node; the script is fixed, the number its argument."""
PROPERTY = re.compile(r"(\w+) = '([^']*)'")


def ask(id: str, user: str) -> list[str]:
    """Return the command that describes a job and its resources."""
    return ["sh", "-c", DESCRIBE, "oarstat", id]


def read(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's JSON and the lines of its resources behind it."""
    if result.exit_code == 0 and not result.stdout.strip():
        return None
    text, end, lines = result.stdout.rpartition("\n}")
    job: Any = answer_of(text + end).get(id) if end else None
    if not isinstance(job, dict):
        raise BackendUnavailable("OAR did not answer oarstat.", detail=result.stderr)
    status = Oar().listed(id, job)
    walltime = job.get("walltime")
    if status.started is not None and isinstance(walltime, (int, float)):
        status = replace(status, ends=status.started + walltime)
    resources = [dict(PROPERTY.findall(line)) for line in lines.splitlines()]
    return Allocation(
        status, str(job.get("owner") or ""), tuple(_share(host, resources) for host in status.nodes)
    )


def of_process(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in."""
    return environ.get("OAR_JOB_ID", "")


def _share(host: str, resources: list[dict[str, str]]) -> Share:
    """Return what the job has on a node; each of its resources there is a core, if it has one."""
    own = [each for each in resources if each.get("network_address") == host]
    cores = {each["core"] for each in own if each.get("core")}
    gpus = {each["gpu"] for each in own if each.get("gpu", "0") != "0"}
    told = any("gpu" in each for each in own)
    return Share(host, len(cores or own) or 1, len(gpus - {""}) if told else None)
