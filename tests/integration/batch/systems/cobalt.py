"""Cobalt as its manual shows its answers: qsub, qstat and qdel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .engine import Answer, Job, Site, directives, seconds

PROGRAMS = ("qsub", "qstat", "qdel")
SUBMITS = ("qsub",)
ROUTED = 'Job routed to queue "full-node".\nMemory mode set to cache quad for queue full-node\n'


def silence(program: str) -> Answer:
    """Say what is said while the server is down."""
    return Answer(err="Failed to connect to queue manager\n", code=1)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    if program == "qsub":
        return qsub(site, argv[-1])
    if program == "qdel":
        return qdel(site, argv)
    if argv and argv[-1].isdigit():
        jobs = [job for job in site.living() if str(job.number) == argv[-1]]
        return Answer("".join(map(block, jobs)), code=0 if jobs else 1)
    return Answer("".join(block(job) for job in site.living()))


def qsub(site: Site, script: str) -> Answer:
    """Take a script, which Cobalt itself executes; a filter of the site makes success exit 1."""
    text = Path(script).read_text()
    if not os.access(script, os.X_OK):
        return Answer(err=f"Script {script} is not executable\n", code=1)
    if not text.splitlines()[1].strip():
        return Answer(err="No #COBALT lines found after the first\n", code=1)
    asked = directives(text, "#COBALT")
    queue = asked.get("-q", "full-node")
    if queue != "full-node":
        return Answer(err=f"queue {queue} does not exist\n", code=1)
    [job] = site.add(
        name=asked["--jobname"],
        script=script,
        output=asked["-o"],
        walltime=seconds(asked.get("-t", "00:10:00")),
    )
    job.variables = {"COBALT_JOBID": str(job.number)}
    return Answer(f"{ROUTED}{job.number}\n", "submitting walltime=10 minutes\n", 1)


def block(job: Job) -> str:
    """Return a job in the form of qstat -l; those that are over are listed no more."""
    state = {
        "waiting": "preempted" if job.restarts else "queued",
        "held": "user_hold",
        "running": running_word(job),
    }[job.state]
    location = "thetagpu05" if job.started else "None"
    fields = {"JobName": job.name, "State": state, "Location": location}
    lines = "".join(f"    {name:<10}: {value}\n" for name, value in fields.items())
    return f"JobID: {job.number}\n{lines}\n"


def running_word(job: Job) -> str:
    if job.asked:
        return "preempting" if job.again else "killing"
    return "running"


def qdel(site: Site, argv: Sequence[str]) -> Answer:
    living = {str(job.number): job for job in site.living()}
    site.end([living[id] for id in argv if id in living], by="ann")
    lines = "".join(f"{id}  ann\n" for id in argv if id in living)
    err = "".join(f"No jobs found: {id}\n" for id in argv if id not in living)
    return Answer(f"      Deleted Jobs\nJobID  User\n============\n{lines}", err, 1 if err else 0)
