"""``bjobs`` about one job: the manual's pages bjobs and lsf.conf."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...core.errors import BackendUnavailable
from ...core.job import Allocation, CommandResult, JobState, Share
from ..lsf import NOTHING, SILENT, Lsf, records_of, time_of

FIELDS = (
    "jobid jobindex stat user exit_reason pend_reason exec_host start_time finish_time job_name"
)
HOST = re.compile(r"(?:(\d+)\*)?([\w.-]+)")
UNKNOWN = re.compile(r"is not found|No matching job found", re.IGNORECASE)


def ask(id: str, user: str) -> list[str]:
    """Return the command that describes a job, of whatever user."""
    bjobs = ["bjobs", "-json", "-a", "-u", "all", "-o", FIELDS, id]
    return ["env", "LSB_DISPLAY_YEAR=Y", *bjobs]


def read(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's record."""
    if result.exit_code is None or SILENT.search(result.stderr):
        raise BackendUnavailable("LSF did not answer bjobs.", detail=result.stderr)
    said = result.stderr + result.stdout
    if UNKNOWN.search(said) or NOTHING.search(said):
        return None
    records = [{str(key): str(value) for key, value in each.items()} for each in records_of(result)]
    record = next((each for each in records if "USER" in each), None)
    if record is None:
        return None  # records of ids that LSF does not know have an error and nothing else
    # The listing knows tasks of arrays only, since all jobs of ours are such.
    number = record.get("JOBID", "").partition("[")[0]
    status = Lsf().listed({**record, "JOBID": number, "JOBINDEX": "1"})
    if status is None:
        raise BackendUnavailable("LSF did not answer bjobs in a form that we can read.")
    running = status.state is JobState.RUNNING
    ends = time_of(record.get("FINISH_TIME", "")) if running else None
    return Allocation(
        replace(status, id=id, ends=ends),
        record["USER"],
        _shares(record.get("EXEC_HOST", "")) if status.nodes else (),
    )


def of_process(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in, with that of its task in an array."""
    index = environ.get("LSB_JOBINDEX", "0")
    id = environ.get("LSB_JOBID", "")
    return f"{id}[{index}]" if id and index.isdecimal() and int(index) else id


def _shares(text: str) -> tuple[Share, ...]:
    """Read ``4*node1:4*node2``."""
    slots: Counter[str] = Counter()
    for count, host in HOST.findall(text):
        slots[host] += int(count or 1)
    return tuple(Share(host, count) for host, count in slots.items())
