"""Torque as its manual shows its answers: qsub, qstat and qdel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from . import pbs
from .engine import Answer, Job, Site, directives, seconds
from .pbs import id_of, named, spooled

PROGRAMS = ("qsub", "qstat", "qdel")
SUBMITS = ("qsub",)
MOST_TASKS = 1000
BY_ITSELF = {"walltime": -11, "memory": -10}
"""Exit status of jobs that Torque ends by itself."""


def silence(program: str) -> Answer:
    """Say what is said while the server is down."""
    words = (
        "Error communicating with login1(192.0.2.7)\nCannot connect to specified server host "
        f"'login1'.\n{program}: cannot connect to server login1 (errno=111) Connection refused\n"
    )
    return Answer(err=words, code=111)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    if program == "qsub":
        return qsub(site, argv)
    return qstat(site, argv) if program == "qstat" else pbs.qdel(site, argv)


def qsub(site: Site, argv: Sequence[str]) -> Answer:
    script, count = argv[-1], 1
    if argv[0] == "-t":
        count = int(argv[1].partition("-")[2]) + 1
    text = Path(script).read_text()
    asked = directives(text, "#PBS")
    if asked.get("-q", "batch") != "batch":
        words = "qsub: submit error (Unknown queue MSG=cannot locate queue)\n"
        return Answer(err=words, code=170)
    jobs = site.add(
        count,
        name=asked["-N"],
        script=spooled(site, script),
        output=asked["-o"],
        walltime=seconds(asked.get("-l walltime", "00:10:00")),
    )
    for job in jobs:
        job.variables = {"PBS_JOBID": id_of(job)}
        if count > 1:
            job.variables["PBS_ARRAYID"] = str(job.task)
    return Answer(f"{jobs[0].number}{'[]' if count > 1 else ''}.login1\n")


def qstat(site: Site, argv: Sequence[str]) -> Answer:
    """List jobs as XML; those that are over stay for some minutes, in state C."""
    ids = [word for word in argv if not word.startswith("-")]
    jobs, unknown = named(site, ids) if ids else (site.jobs, [])
    text = "".join(element(job) for job in jobs)
    err = "".join(f"qstat: Unknown Job Id Error {id}\n" for id in unknown)
    return Answer(f"<Data>{text}</Data>\n" if text else "", err, 153 if unknown else 0)


def element(job: Job) -> str:
    letter = {
        "waiting": "Q",
        "held": "H",
        "running": "E" if job.asked else "R",
        "suspended": "S",
        "ended": "C",
    }[job.state]
    fields = {
        "Job_Id": id_of(job),
        "Job_Name": f"{job.name}-{job.task}" if job.count > 1 else job.name,
        "job_state": letter,
        "queue": "batch",
        "Hold_Types": "u" if job.state == "held" else "n",
    }
    if job.started:
        fields |= {"exec_host": "gpu01/0", "start_time": str(int(job.started))}
    if job.state == "ended":
        code = 256 - job.code if job.code < 0 else 271 if job.by else job.code
        code = BY_ITSELF.get(job.by, code)
        fields |= {"exit_status": str(code), "comp_time": str(int(job.ended))}
    return "<Job>" + "".join(f"<{k}>{escape(v)}</{k}>" for k, v in fields.items()) + "</Job>"
