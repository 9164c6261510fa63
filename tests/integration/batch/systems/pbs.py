"""PBS as OpenPBS 23.06 was recorded to answer: qsub, qstat and qdel."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from .engine import Answer, Job, Site, directives, replay, seconds

PROGRAMS = ("qsub", "qstat", "qdel", "pbsnodes")
SUBMITS = ("qsub",)
MOST_SECONDS = 24 * 3600.0
MOST_TASKS = 1000
BY_ITSELF = {"walltime": -29, "memory": -27}
"""Exit_status of jobs that PBS ends by itself."""
WHEN = "%a %b %d %H:%M:%S %Y"


def silence(program: str) -> Answer:
    """Say what is said while the server is down."""
    if program == "qsub":
        return replay("pbs/server_down_submit.txt")
    if program == "qstat":
        return replay("pbs/server_down_status.txt")
    words = f"Connection refused\n{program}: cannot connect to server login1 (errno=15010)\n"
    return Answer(err=words, code=255)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    if program == "qsub":
        return qsub(site, argv)
    if program == "qstat":
        return qstat(site, argv)
    if program == "qdel":
        return qdel(site, argv)
    return Answer(json.dumps({"pbs_server": "login1", "nodes": {}}))


def qsub(site: Site, argv: Sequence[str]) -> Answer:
    script, count = argv[-1], 1
    if argv[0] == "-J":
        first, last = map(int, argv[1].split("-"))
        if last <= first:
            return replay("pbs/submit_refused_array_one.txt")
        count = last - first + 1
    text = Path(script).read_text()
    if count > MOST_TASKS:
        return replay("pbs/submit_refused_array_too_big.txt")
    asked = directives(text, "#PBS")
    walltime = seconds(asked.get("-l walltime", "00:10:00"))
    if walltime > MOST_SECONDS:
        return replay("pbs/submit_refused_walltime_over_limit.txt")
    jobs = site.add(
        count,
        name=asked["-N"],
        script=spooled(site, script),
        output=asked["-o"],
        walltime=walltime,
    )
    for job in jobs:
        job.variables = {"PBS_JOBID": id_of(job), "PBS_ENVIRONMENT": "PBS_BATCH"}
        if count > 1:
            job.variables["PBS_ARRAY_INDEX"] = str(job.task)
    return Answer(f"{jobs[0].number}{'[]' if count > 1 else ''}.login1\n")


def spooled(site: Site, script: str) -> str:
    """Keep a copy of the script, which the server runs instead of the file it was given."""
    copy = Path(site.base, "spool", f"{site.next}.SC")
    shutil.copyfile(script, copy)
    copy.chmod(0o700)
    return str(copy)


def id_of(job: Job) -> str:
    return f"{job.number}[{job.task}].login1" if job.count > 1 else f"{job.number}.login1"


def named(site: Site, ids: Sequence[str]) -> tuple[list[Job], list[str]]:
    """Return the jobs of some ids, arrays whole, and the ids that no job has."""
    jobs, unknown = [], []
    for id in ids:
        found = [job for job in site.jobs if id in (id_of(job), f"{job.number}[].login1")]
        jobs += found
        unknown += [] if found else [id]
    return jobs, unknown


def qstat(site: Site, argv: Sequence[str]) -> Answer:
    ids = [word for word in argv if not word.startswith("-") and word != "json"]
    ids = ids[:1] if site.lies == "others" else ids
    jobs, unknown = named(site, ids) if ids else (site.jobs, [])
    jobs, unknown = ([], []) if site.lies == "all" else (jobs, unknown)
    over = [job for job in jobs if job.state == "ended" and "-x" not in argv]
    shown = {id_of(job): attributes(job) for job in jobs if job not in over}
    told = {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": "login1"}
    err = "".join(f"qstat: Unknown Job Id {id}\n" for id in unknown)
    if ids:
        past = "Job has finished, use -x or -H to obtain historical job information"
        err += "".join(f"qstat: {id_of(job)} {past}\n" for job in over)
    code = 153 if unknown else 35 if over and ids else 0
    return Answer(
        json.dumps({**told, **({"Jobs": shown} if shown else {})}, indent="\t"), err, code
    )


def attributes(job: Job) -> dict[str, object]:
    """Return what qstat -f says of a job; its variables make this invalid JSON at real sites."""
    letter, substate = {
        "waiting": ("Q", 10),
        "held": ("H", 20),
        "running": ("E", 50) if job.asked else ("R", 42),
        "suspended": ("S", 45),
        "ended": ("F" if job.count == 1 else "X", last_substate(job)),
    }[job.state]
    said: dict[str, object] = {
        "Job_Name": job.name,
        "Job_Owner": "ann@login1",
        "job_state": letter,
        "queue": "workq",
        "server": "login1",
        "ctime": time.strftime(WHEN, time.localtime(job.submitted)),
        "Hold_Types": "u" if job.state == "held" else "n",
        "mtime": time.strftime(WHEN, time.localtime(job.ended or job.started or job.submitted)),
        "substate": substate,
        "comment": "Not Running: Insufficient amount of resource: ngpus (R: 2 A: 0 T: 8)",
        "run_count": job.restarts + (1 if job.started else 0),
    }
    if job.restarts and not job.started:
        said["comment"] = "Job run at Sat Nov 28 at 00:49 on (gpu01:ncpus=1:mem=102400kb)"
        said["Exit_status"] = -11
    if job.started:
        at = time.strftime("%a %b %d at %H:%M", time.localtime(job.started))
        said["comment"] = f"Job run at {at} on (gpu01:ncpus=1:mem=102400kb)"
        said["stime"] = time.strftime(WHEN, time.localtime(job.started))
        said["exec_host"] = "gpu01/0"
    if job.state == "ended":
        said["comment"] = f"{said['comment']}{ended_words(job)}"
        if job.started:
            said["Exit_status"] = exit_status(job)
    return said


def last_substate(job: Job) -> int:
    return 93 if job.by in BY_ITSELF else 91 if job.by else 92


def ended_words(job: Job) -> str:
    if job.by in BY_ITSELF:
        return f" and exceeded resource {job.by.replace('memory', 'mem')}"
    if job.by:
        return f" and terminated by {job.by}@login1" if job.started else " and terminated"
    return " and failed" if job.code else " and finished"


def exit_status(job: Job) -> int:
    """Return 256 and more for a signal, or what PBS says of jobs that it ends by itself."""
    if job.by in BY_ITSELF:
        return BY_ITSELF[job.by]
    return 256 - job.code if job.code < 0 else 271 if job.by else job.code


def qdel(site: Site, argv: Sequence[str]) -> Answer:
    jobs, unknown = named(site, argv)
    over = [job for job in jobs if job.state == "ended"]
    site.end(jobs, by="ann")
    err = "".join(f"qdel: Unknown Job Id {id}\n" for id in unknown)
    err += "".join(f"qdel: Job has finished {id_of(job)}\n" for job in over)
    return Answer(err=err, code=153 if unknown else 35 if over else 0)


def queued(site: Site) -> dict[str, str]:
    """Return the ids of the jobs that wait or run, with the name of each."""
    return {id_of(job): re.sub(r"\W", "", job.name) for job in site.living()}
