"""Moab as its manual shows its answers: msub, showq and canceljob."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from .engine import Answer, Job, Site, directives, seconds
from .pbs import spooled

PROGRAMS = ("msub", "showq", "canceljob")
SUBMITS = ("msub",)
REFUSED = (
    (r"#PBS -A nosuch", "Invalid account"),
    (r"#PBS -l nodes=\S*:tpus=", "Unknown resource type  tpus"),
    (r"#PBS -W group_list=root", "Bad GID for job execution MSG=group root not allowed"),
    (r"#PBS -l walltime=[2-9]\d\d:", "Job violates queue and/or server resource limits"),
)
"""Lines of a script that msub refuses, with the message of Torque's qsub below it."""


def silence(program: str) -> Answer:
    """Say what is said while the server is down."""
    return Answer(err="ERROR:    cannot connect to server 'login1' on port 42559\n", code=1)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    if program == "msub":
        return msub(site, argv)
    if program == "showq":
        return showq(site, past="-c" in argv)
    jobs = [job for job in site.jobs if id_of(job) in argv]
    site.end(jobs, by="ann")
    return Answer("".join(f"\njob '{id_of(job)}' cancelled\n" for job in jobs))


def msub(site: Site, argv: Sequence[str]) -> Answer:
    text = Path(argv[-1]).read_text()
    for line, words in REFUSED:
        if re.search(f"^{line}", text, re.MULTILINE):
            return Answer(err=f"ERROR:    qsub: submit error ({words})\n", code=1)
    asked = directives(text, "#PBS")
    if asked.get("-q", "batch") != "batch":
        words = "ERROR:    qsub: submit error (Unknown queue MSG=cannot locate queue)\n"
        return Answer(err=words, code=1)
    [job] = site.add(
        name=asked["-N"],
        script=spooled(site, argv[-1]),
        output=asked["-o"],
        walltime=seconds(asked.get("-l walltime", "00:10:00")),
    )
    job.variables = {"PBS_JOBID": f"{job.number}.login1", "MOAB_JOBID": id_of(job)}
    return Answer(f"\n{id_of(job)}\n")


def id_of(job: Job) -> str:
    return f"Moab.{job.number}"


def showq(site: Site, *, past: bool) -> Answer:
    """List the living, or those that are over."""
    if past:
        lines = [element(job) for job in site.jobs if job.state == "ended"]
        queues = f'<queue count="{len(lines)}" option="completed">{"".join(lines)}</queue>'
    else:
        queues = ""
        for option, states in (
            ("active", ("running", "suspended")),
            ("eligible", ("waiting",)),
            ("blocked", ("held",)),
        ):
            lines = [element(job) for job in site.living() if job.state in states]
            queues += f'<queue count="{len(lines)}" option="{option}">{"".join(lines)}</queue>'
    return Answer(f"<Data><Object>queue</Object>{queues}</Data>\n")


def element(job: Job) -> str:
    state = {
        "waiting": "Idle",
        "held": "UserHold",
        "running": "Canceling" if job.asked else "Running",
        "suspended": "Suspended",
        "ended": "Removed" if cancelled(job) else "Completed",
    }[job.state]
    fields = {"JobID": id_of(job), "JobName": job.name, "State": state, "User": "ann"}
    fields["StartTime"] = str(int(job.started))
    if job.started:
        fields["MasterHost"] = "gpu01"
    if job.state == "ended":
        code = 256 - job.code if job.code < 0 else job.code
        fields["CompletionCode"] = "CNCLD" if cancelled(job) else str(code)
    return "<job " + " ".join(f"{k}={quoteattr(v)}" for k, v in fields.items()) + "/>"


def cancelled(job: Job) -> bool:
    """Tell whether Moab ended it, at its walltime too; what the node does is Torque's."""
    return bool(job.by) and job.by != "memory"
