"""``qstat`` of Grid Engine about one job: qstat(1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...core.errors import BackendUnavailable
from ...core.job import Allocation, CommandResult, JobState, JobStatus, Share
from ..sge import SILENT, listed, tree_of

DESCRIBE = 'qstat -j "$1" | grep -E "^(owner|hard resource_list):"; exec qstat -u "$2" -g t -xml'
"""The first tells whose a job is, the second on which hosts this user's jobs are; the script is
fixed, number and user are its arguments."""
OWNER = re.compile(r"^owner:\s+(\S+)", re.MULTILINE)
LIMIT = re.compile(r"^hard resource_list:.*\bh_rt=(\d+)\b", re.MULTILINE)


def ask(id: str, user: str) -> list[str]:
    """Return the command that tells a job's owner and the hosts of this user's jobs."""
    return ["sh", "-c", DESCRIBE, "qstat", id, user]


def read(id: str, result: CommandResult) -> Allocation | None:
    """Read the lines about the job, and the listing behind them: a row for each slot."""
    about, start, listing = result.stdout.partition("<?xml")
    if result.exit_code != 0 or SILENT.search(result.stderr) or not start:
        raise BackendUnavailable("Grid Engine did not answer qstat.", detail=result.stderr)
    owner, slots, found = OWNER.search(about), Counter[str](), None
    number, _, task = id.partition(".")
    for job in tree_of(start + listing).iter("job_list"):
        row = {field.tag: field.text or "" for field in job}
        if row.get("JB_job_number") == number and task in ("", row.get("tasks", "")):
            found = listed(row) or found
            # The master has a row of its own beside those of its slots, but where it is alone.
            slots[row.get("queue_name", "").rpartition("@")[2]] += row.get("master") == "SLAVE"
    if owner is None and found is None:
        return None
    if found is None:  # somebody else's, of which the listing tells nothing
        return Allocation(JobStatus(id, JobState.UNKNOWN), owner[1] if owner else "")
    limit = LIMIT.search(about)
    if limit and found.started is not None and found.state is JobState.RUNNING:
        found = replace(found, ends=found.started + int(limit[1]))
    shares = tuple(Share(host, max(1, count)) for host, count in slots.items() if host)
    return Allocation(replace(found, id=id), owner[1] if owner else "", shares)


def of_process(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in, with that of its task in an array."""
    id, task = environ.get("JOB_ID", ""), environ.get("SGE_TASK_ID", "")
    if not environ.get("SGE_ROOT"):
        return ""  # too plain a name to mean Grid Engine by itself
    return f"{id}.{task}" if id and task.isdecimal() else id
