"""LSF as its manual's pages show its answers: bsub, bjobs and bkill."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .engine import Answer, Job, Site, directives, seconds

PROGRAMS = ("bsub", "bjobs", "bkill", "bhosts")
SUBMITS = ("bsub",)
WHEN = "%b %d %H:%M %Y"
ENDS = {
    "walltime": "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
    "memory": "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
}
BUSY = "Candidate's hosts' resource requirements not satisfied: ngpus_physical"


def silence(program: str) -> Answer:
    """Say what is said while the server is down."""
    return Answer(err="LSF is down. Please wait ...\n", code=255)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    if program == "bsub":
        return bsub(site, argv, sys.stdin.read())
    if program == "bkill":
        return bkill(site, argv)
    if program == "bhosts":
        return Answer("HOST_NAME ID MODEL MUSED MRSV NJOBS RUN SUSP RSV\n")
    records = [record(job) for job in site.jobs]
    told = {"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}
    return Answer(json.dumps(told, indent=2) + "\n")


def bsub(site: Site, argv: Sequence[str], text: str) -> Answer:
    asked = directives(text, "#BSUB")
    queue = asked.get("-q", "normal")
    if queue != "normal":
        return Answer(err=f"{queue}: No such queue. Job not submitted.\n", code=255)
    # The command line wins over the script.
    match = re.fullmatch(r"(.*)\[1-(\d+)\]", argv[argv.index("-J") + 1])
    assert match
    script = Path(site.base, "spool", f"{site.next}.lsf")
    script.write_text(text)
    script.chmod(0o700)
    jobs = site.add(
        int(match[2]),
        name=match[1],
        script=str(script),
        output=asked["-o"],
        walltime=seconds(f"{asked.get('-W', '00:10')}:00"),
    )
    for job in jobs:
        job.variables = {
            "LSB_JOBID": str(job.number),
            "LSB_JOBINDEX": str(job.task + 1),
            "LSB_JOBNAME": f"{job.name}[{job.task + 1}]",
            "LSB_RESTART": "N",
        }
        job.on_restart = {"LSB_RESTART": "Y"}
    return Answer(f"Job <{jobs[0].number}> is submitted to default queue <normal>.\n")


def id_of(job: Job) -> str:
    return f"{job.number}[{job.task + 1}]"


def record(job: Job) -> dict[str, str]:
    """Return a job as bjobs -json does: every value a text, empty where there is none."""
    over = job.state == "ended"
    states = {"waiting": "PEND", "held": "PSUSP", "running": "RUN", "suspended": "USUSP"}
    stat = states.get(job.state)
    reason = ""
    if over and job.by:
        reason = ENDS.get(job.by, "TERM_OWNER: job killed by owner")
    code = 128 - job.code if job.code < 0 else 143 if job.by else job.code
    pending = {"waiting": BUSY, "held": "The job was suspended by the user while pending"}
    return {
        "JOBID": str(job.number),
        "JOBINDEX": str(job.task + 1),
        "STAT": stat or ("EXIT" if code else "DONE"),
        "EXIT_CODE": str(code) if over and code else "",
        "EXIT_REASON": reason,
        "PEND_REASON": f"{pending[job.state]};" if job.state in pending else "",
        "EXEC_HOST": "gpu01" if job.started else "-",
        "START_TIME": time.strftime(WHEN, time.localtime(job.started)) if job.started else "-",
        "FINISH_TIME": time.strftime(WHEN, time.localtime(job.ended)) + " L" if over else "-",
        "JOB_NAME": f"{job.name}[{job.task + 1}]",
    }


def bkill(site: Site, argv: Sequence[str]) -> Answer:
    out, err = "", ""
    for id in argv:
        job = next((job for job in site.jobs if id_of(job) == id), None)
        if job is None:
            err += f"Job <{id}>: No matching job found\n"
        elif job.state == "ended":
            err += f"Job <{id}>: Job has already finished\n"
        else:
            site.end([job], by="ann")
            out += f"Job <{id}> is being terminated\n"
    return Answer(out, err, 255 if err else 0)
