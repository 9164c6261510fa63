"""OAR as version 2.5.9 was recorded to answer: oarsub, oarstat and oardel."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from .engine import Answer, Job, Site, directives, replay, seconds

PROGRAMS = ("oarsub", "oarstat", "oardel", "oarnodes")
SUBMITS = ()
"""None of OAR's commands prints more than its own words."""
RULE = "[ADMISSION RULE] Modify resource description with type constraints\n"


def silence(program: str) -> Answer:
    """Say what is said while the database is down; oarsub and oardel then hang at real sites."""
    return replay("oar/database_down_status.txt")


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    if program == "oarsub":
        return oarsub(site, argv)
    if program == "oarstat":
        return oarstat(site, argv)
    if program == "oardel":
        return oardel(site, argv)
    return Answer("{}\n")


def oarsub(site: Site, argv: Sequence[str]) -> Answer:
    """Take a script, which OAR executes where it lies; an array is jobs with ids of their own."""
    script = argv[-1]
    count = int(argv[argv.index("--array") + 1]) if "--array" in argv else 1
    if not os.access(script, os.X_OK):
        return Answer(err=f"/!\\ Cannot execute {script}\n", code=12)
    text = Path(script).read_text()
    asked = directives(text, "#OAR")
    if asked.get("-q", "default") != "default":
        return replay("oar/submit_refused_unknown_queue.txt")
    limit = re.search(r"^#OAR -l .*walltime=([\d:]+)", text, re.MULTILINE)
    jobs: list[Job] = []
    for index in range(count):
        [job] = site.add(
            name=asked["-n"],
            script=script,
            output=asked["-O"],
            walltime=seconds(limit[1]) if limit else 7200.0,
        )
        job.variables = {
            "OAR_JOB_ID": str(job.number),
            "OAR_ARRAY_ID": str(jobs[0].number if jobs else job.number),
            "OAR_ARRAY_INDEX": str(index + 1),
        }
        jobs.append(job)
    ids = "".join(f"OAR_JOB_ID={job.number}\n" for job in jobs)
    if count == 1:
        return Answer(f"{RULE}{ids}")
    array = f"OAR_ARRAY_ID={jobs[0].number}\n"
    return Answer(f"{RULE}{ids}{array}", "Simple array job submission is used\n")


def oarstat(site: Site, argv: Sequence[str]) -> Answer:
    """List what was asked for by number or, with --sql, the living and some of the dead."""
    if "--sql" in argv:
        named = re.search(r"job_id IN \(([\d,]*)\)", argv[argv.index("--sql") + 1])
        ids = named[1].split(",") if named else []
        jobs = [job for job in site.jobs if job.state != "ended" or str(job.number) in ids]
    else:
        ids = [argv[place + 1] for place, word in enumerate(argv) if word == "-j"]
        jobs = [job for job in site.jobs if str(job.number) in ids]
    found = {str(job.number): record(job) for job in jobs}
    return Answer(json.dumps(found, indent=3) + "\n" if found else "")


def record(job: Job) -> dict[str, object]:
    killed = bool(job.by)
    state = {
        "waiting": "Waiting",
        "held": "Hold",
        "running": "Running",
        "ended": "Error" if killed else "Terminated",
    }[job.state]
    events = [f"User {job.by} requested to frag the job {job.number}"] if killed else []
    kind = "WALLTIME" if job.by == "walltime" else "FRAG_JOB_REQUEST"
    wait_status = -job.code if job.code < 0 else job.code << 8
    return {
        "Job_Id": job.number,
        "name": job.name,
        "state": state,
        "job_user": "ann",
        "array_id": int(job.variables["OAR_ARRAY_ID"]),
        "array_index": int(job.variables["OAR_ARRAY_INDEX"]),
        "assigned_network_address": ["gpu01"] if job.started else [],
        "dependencies": [],
        "events": [{"type": kind, "description": words} for words in events],
        "exit_code": wait_status if state == "Terminated" else None,
        "message": f"R=1,W=0:10:0,J=B,N={job.name} (Karma=0.000,quota_ok)",
        "scheduledStart": int(job.started) or None,
        "startTime": int(job.started),
        "stopTime": int(job.ended),
    }


def oardel(site: Site, argv: Sequence[str]) -> Answer:
    site.end([job for job in site.jobs if str(job.number) in argv], by="ann")
    return Answer("".join(f"Deleting the job = {id} ...REGISTERED.\n" for id in argv))
