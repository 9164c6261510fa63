"""``qstat -f`` of PBS Professional and OpenPBS."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...core.errors import BackendUnavailable
from ...core.job import Allocation, CommandResult, Share
from ..pbs import Pbs, number_of, section_of

UNKNOWN, OVER = 153, 35
"""Exit codes of qstat; a site that keeps history tells of jobs that are over with -x only."""
CHUNK = re.compile(r"([\w.-]+)(?:\[\d+\])?((?::\w+=\w+)*)")
SLOTS = re.compile(r"([\w.-]+)/\d+(?:\*(\d+))?")
SIZE = re.compile(r"(\d+)([kmgt]?)b", re.IGNORECASE)


def ask(id: str, user: str) -> list[str]:
    """Return the command that describes a job."""
    return ["qstat", "-f", "-F", "json", id]


def read(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's JSON."""
    if result.exit_code in (UNKNOWN, OVER):
        return None
    if result.exit_code != 0:
        raise BackendUnavailable("PBS did not answer qstat.", detail=result.stderr)
    jobs = section_of(result.stdout, "Jobs")
    if not jobs:
        return None
    name, job = next(iter(jobs.items()))
    status = Pbs().listed(name, job)
    owner = str(job.get("Job_Owner", "")).partition("@")[0]
    return Allocation(status, owner, shares(job) if status.nodes else ())


def of_process(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in; Torque has the same variable."""
    return "" if "TORQUE" in environ.get("PBS_VERSION", "") else environ.get("PBS_JOBID", "")


def shares(job: Mapping[str, Any]) -> tuple[Share, ...]:
    """Return what a job has on each host, from ``(n1:ncpus=4:ngpus=1:mem=9gb)+(n2:ncpus=4)``."""
    cpus: Counter[str] = Counter()
    for host, count in SLOTS.findall(str(job.get("exec_host", ""))):
        cpus[host] += int(count or 1)
    totals: dict[str, Counter[str]] = {host: Counter() for host in cpus}
    for vnode, amounts in CHUNK.findall(str(job.get("exec_vnode", ""))):
        # A host may be several vnodes: ``n1[0]``, ``n1[1]``.
        total = totals.get(vnode)
        for name, value in re.findall(r":(\w+)=(\w+)", amounts):
            if total is not None:
                total[name] += _bytes(value) if name == "mem" else number_of(value) or 0
    return tuple(
        Share(host, cpus[host], total["ngpus"], total["mem"] or None)
        for host, total in totals.items()
    )


def _bytes(text: str) -> int:
    match = SIZE.fullmatch(text)
    return int(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ") if match else 0
