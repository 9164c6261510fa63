"""Flux as its manual shows its answers: flux batch, flux jobs and flux cancel."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from .engine import Answer, Job, Site, seconds

PROGRAMS = ("flux",)
SUBMITS = ()
RESULTS = {"done": "COMPLETED", "cancelled": "CANCELED"}


def silence(program: str) -> Answer:
    """Say what is said while the broker is down."""
    return Answer(err="flux-jobs: ERROR: Unable to connect to Flux: no broker\n", code=1)


def answer(site: Site, program: str, argv: Sequence[str]) -> Answer:
    """Be one of the commands."""
    command, *rest = argv
    if command == "batch":
        return batch(site, rest[-1])
    living = {str(job.number): job for job in site.living()}
    if command == "cancel":
        site.end(living[id] for id in rest if id in living)
        return Answer()
    if rest[-1].isdigit() and rest[-1] not in living:
        return Answer(json.dumps({"jobs": []}), f"flux-jobs: ERROR: JobID {rest[-1]} unknown\n", 1)
    return Answer(json.dumps({"jobs": list(map(shown, living.values()))}))


def batch(site: Site, script: str) -> Answer:
    asked = dict(re.findall(r"^#flux: (--[\w-]+)=(.*)$", Path(script).read_text(), re.MULTILINE))
    [job] = site.add(
        name=asked["--job-name"],
        script=script,
        output=asked["--output"],
        walltime=seconds("01:00:00"),
    )
    job.variables = {"FLUX_JOB_ID": str(job.number)}
    return Answer(f"{job.number}\n")


def shown(job: Job) -> dict[str, object]:
    state = {"waiting": "SCHED", "held": "PRIORITY", "running": "RUN"}[job.state]
    return {"id": str(job.number), "state": state, "result": "", "name": job.name, "returncode": ""}
