"""HTCondor as its manual shows its answers: condor_submit, condor_q, condor_history, condor_rm."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .engine import Answer, Job, Site

PROGRAMS = ("condor_submit", "condor_q", "condor_history", "condor_rm", "condor_status")
SUBMITS = ("condor_submit",)
STATUS = {"waiting": 1, "running": 2, "held": 5, "suspended": 7}
BY_ITSELF = ("walltime", "memory")
PERIODIC = "The job attribute PeriodicRemove expression '{}' evaluated to TRUE"


def silence(program: str) -> Answer:
    """Say what is said while the schedd is down."""
    if program == "condor_submit":
        return Answer(err="\nERROR: Can't find address of local schedd\n", code=1)
    words = "-- Failed to fetch ads from: <192.0.2.7:9618?sock=schedd> : login1\n"
    return Answer(err=f"\n{words}SECMAN:2007:Failed to end classad message.\n", code=1)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    if program == "condor_submit":
        return submit(site, sys.stdin.read())
    if program == "condor_q":
        return ads(job for job in site.jobs if job.state != "ended")
    if program == "condor_history":
        return ads(job for job in site.jobs if job.state == "ended" and id_of(job) in argv)
    if program == "condor_rm":
        return remove(site, argv)
    return Answer()


def submit(site: Site, description: str) -> Answer:
    asked: dict[str, str] = {}
    count = 1
    for line in description.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            asked[name.strip().lower()] = value.strip()
        elif line.startswith("queue"):
            count = int(line.split()[1])
    group = asked.get("accounting_group", "group_phys")
    if group != "group_phys":
        words = f"\nERROR: {group} is not a valid accounting group for ann\n"
        return Answer("Submitting job(s)", words, 1)
    jobs = site.add(count, name=asked["batch_name"], script=asked["executable"])
    for job in jobs:
        job.arguments = [asked["arguments"].replace("$(ProcId)", str(job.task))]
        job.output = asked["output"].replace("$(ProcId)", str(job.task))
        job.variables, job.on_restart = (
            {"_CONDOR_JOB_AD": ad_file(site, job, starts)} for starts in (1, 2)
        )
    number = jobs[0].number
    return Answer(f"{number}.0 - {number}.{count - 1}\n")


def ad_file(site: Site, job: Job, starts: int) -> str:
    """Write what a job may read of itself when it starts for the first, or the second time."""
    file = Path(site.base, "spool", f"{id_of(job)}.{starts}.ad")
    file.write_text(f"NumShadowStarts = {starts}\nProcId = {job.task}\n")
    return str(file)


def id_of(job: Job) -> str:
    return f"{job.number}.{job.task}"


def ads(jobs: Iterable[Job]) -> Answer:
    """Print jobs as JSON; where there are none, nothing at all."""
    found = [ad(job) for job in jobs]
    return Answer(json.dumps(found, indent=2) + "\n" if found else "")


def ad(job: Job) -> dict[str, object]:
    removed = bool(job.asked or (job.state == "ended" and job.by))
    said: dict[str, object] = {
        "ClusterId": job.number,
        "ProcId": job.task,
        "JobBatchName": job.name,
        "JobStatus": 3 if removed else STATUS.get(job.state, 4),
        "EnteredCurrentStatus": int(job.ended or job.started or job.submitted),
    }
    if job.started:
        said |= {"JobCurrentStartDate": int(job.started), "RemoteHost": "slot1_1@gpu01"}
    if job.state == "held":
        said |= {"HoldReason": "via condor_hold (by user ann)", "HoldReasonCode": 1}
    if removed:
        said["RemoveReason"] = f"via condor_rm (by user {job.by})"
        if job.by in BY_ITSELF:
            said["RemoveReason"] = PERIODIC.format("JobStatus == 5 || JobStatus == 2")
        if job.by == "memory":
            said["HoldReasonCode"] = 34
    elif job.state == "ended":
        said["ExitBySignal"] = job.code < 0
        said["ExitSignal" if job.code < 0 else "ExitCode"] = abs(job.code)
        said["CompletionDate"] = int(job.ended)
    return said


def remove(site: Site, argv: Sequence[str]) -> Answer:
    living = {id_of(job): job for job in site.living()}
    site.end([living[id] for id in argv if id in living], by="ann")
    out = "".join(f"Job {id} marked for removal\n" for id in argv if id in living)
    err = "".join(f"Job {id} not found\n" for id in argv if id not in living)
    return Answer(out, err, 1 if err else 0)
