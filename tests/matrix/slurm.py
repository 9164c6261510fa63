"""Slurm as version 22.05 was recorded to answer: sbatch, squeue, scontrol, sacct and scancel."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path

from ..integration.batch.systems.engine import Answer, Job, Site, directives, replay

WHEN = "%Y-%m-%dT%H:%M:%S"
ENDS = {
    "": ("COMPLETED", "0:0"),
    "ann": ("CANCELLED", "0:15"),
    "memory": ("OUT_OF_MEMORY", "0:125"),
    "node": ("NODE_FAIL", "0:0"),
    "preemption": ("PREEMPTED", "0:0"),
    "walltime": ("TIMEOUT", "0:0"),
}
"""State and exit code of jobs that did not end by themselves."""


def silence(program: str) -> Answer:
    """Return what commands answer while slurmctld is down."""
    if program == "squeue":
        return replay("slurm/controller_down_status.txt")
    words = f"{program}: error: Unable to contact slurm controller (connect failure)\n"
    return Answer(err=words, code=1)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Return what one of the commands answers."""
    if program == "sbatch":
        return sbatch(site, argv)
    if program == "scancel":
        return scancel(site, argv)
    if program == "scontrol":
        return scontrol(site, argv[-1])
    jobs = shown(site)
    if program == "squeue":
        return Answer("".join(f"{'|'.join(row(job))}|\n" for job in jobs))
    wanted = argv[argv.index("-j") + 1].split(",") if "-j" in argv else None
    names = argv[argv.index("--name") + 1].split(",") if wanted is None else []
    jobs = [job for job in site.jobs if (id_of(job) in wanted if wanted else job.name in names)]
    return Answer("".join(f"{'|'.join(accounted(job))}\n" for job in jobs))


def shown(site: Site) -> list[Job]:
    """Return the jobs that a listing has."""
    if site.lies == "all":
        return []
    return site.jobs[:1] if site.lies == "others" else site.jobs


def sbatch(site: Site, argv: Sequence[str]) -> Answer:
    script = Path(argv[-1])
    count = int(argv[1].rpartition("-")[2]) + 1
    name = directives(script.read_text().replace("--job-name=", "-J "), "#SBATCH")["-J"]
    jobs = site.add(count, name=name, script=str(script))
    return Answer(f"{jobs[0].number}\n")


def scancel(site: Site, argv: Sequence[str]) -> Answer:
    wanted = []
    for word in argv:
        number, _, tasks = word.partition("_")
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", tasks):
            wanted += [f"{number}_{task}" for task in range(int(first), int(last or first) + 1)]
    found = [job for job in site.jobs if id_of(job) in wanted]
    site.end(found, by="ann")
    unknown = {id.partition("_")[0] for id in wanted} - {str(job.number) for job in found}
    err = "".join(
        f"scancel: error: Kill job error on job id {id}: Invalid job id specified\n"
        for id in sorted(unknown)
    )
    return Answer(err=err, code=1 if unknown else 0)


def scontrol(site: Site, id: str) -> Answer:
    found = [job for job in site.jobs if id_of(job) == id]
    if not found:
        error = "slurm_load_jobs error: Invalid job id specified\n"
        return Answer(err=error, code=1)
    [job] = found
    fields = dict(zip(("Reason", "NodeList", "StartTime", "EndTime"), row(job)[2:6], strict=True))
    told = {"JobId": job.number, "JobName": job.name, "JobState": row(job)[1], **fields}
    return Answer(
        " ".join(f"{k}={v or '(null)'}" for k, v in told.items()) + f" ExitCode={ends(job)[1]}\n"
    )


def id_of(job: Job) -> str:
    return f"{job.number}_{job.task}"


def ends(job: Job) -> tuple[str, str]:
    """Return the state and the exit code of a job that has ended."""
    if not job.by and job.code:
        return "FAILED", f"0:{-job.code}" if job.code < 0 else f"{job.code}:0"
    return ENDS[job.by]


def row(job: Job) -> list[str]:
    """Return a job's columns in squeue."""
    state = {"waiting": "PENDING", "held": "PENDING", "running": "RUNNING"}
    told = ends(job)[0] if job.state == "ended" else state.get(job.state, job.state.upper())
    reason = {"waiting": "Resources", "held": "JobHeldUser"}.get(job.state, "None")
    code, _, number = ends(job)[1].partition(":") if job.state == "ended" else ("0", "", "0")
    times = [stamp(job.started, "N/A"), stamp(job.ended, "N/A")]
    node = "gpu01" if job.started else ""
    return [id_of(job), told, reason, node, *times, str(int(code) * 256 + int(number)), job.name]


def accounted(job: Job) -> list[str]:
    """Return a job's columns in sacct."""
    state, code = ends(job) if job.state == "ended" else (row(job)[1], "0:0")
    node = "gpu01" if job.started else "None assigned"
    times = [stamp(job.started, "Unknown"), stamp(job.ended, "Unknown")]
    return [id_of(job), state, code, node, *times, job.name]


def stamp(moment: float, otherwise: str) -> str:
    return time.strftime(WHEN, time.localtime(moment)) if moment else otherwise
