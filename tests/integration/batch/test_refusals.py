"""Refusals of simulated systems: their message, and the fix."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.directives import merge
from jupyter_gpucluster.batch.queue import ProcessRunner, Queue
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable
from jupyter_gpucluster.core.job import JobShape, Submission

from .places import SimulatedPlace

MARK = "gpc-abc123-1"
CONTAINER = "spec.containers[0]"
USUAL = JobShape(cpus=1, walltime=600)
LONG = JobShape(cpus=1, walltime=200 * 3600)
NOBODYS = JobShape(cpus=1, walltime=600, account="nosuch")
TPUS = JobShape(cpus=1, gpus=1, walltime=600, gpu_request="tpus")


def with_line(line: str) -> JobShape:
    return JobShape(cpus=1, walltime=600, directives=(line,))


def in_pod(*lines: str, **asked: Any) -> JobShape:
    image = "python:3.12"
    return JobShape(cpus=1, directives=(f"{CONTAINER}.image = {image}", *lines), **asked)


REFUSALS = [
    ("pbs", with_line("--nosuchoption=1"), 1, "directive error", "from job.directives"),
    ("pbs", JobShape(queue="workq@elsewhere"), 1, "Unknown Host", "leave out what follows '@'"),
    ("pbs", JobShape(queue="limited"), 1, "per-user limit", "ask for fewer, larger jobs"),
    ("pbs", with_line("-W group_list=root"), 1, "Bad GID", "directive with group_list"),
    ("pbs", TPUS, 1, "Unknown resource: tpus", "job.gpu_request"),
    ("pbs", with_line("-l ncpus=2"), 1, "cannot be used with", "Remove the directive with -l"),
    ("pbs", USUAL, 2000, "exceeds server or queue size limit", "fewer workers"),
    ("torque", NOBODYS, 1, "Invalid account", "job.account"),
    ("torque", TPUS, 1, "Unknown resource type  tpus", "job.gpu_request"),
    ("torque", with_line("-W group_list=root"), 1, "Bad GID", "directive with group_list"),
    ("torque", LONG, 1, "violates queue and/or server", "job.walltime"),
    ("moab", NOBODYS, 1, "Invalid account", "job.account"),
    ("moab", TPUS, 1, "Unknown resource type  tpus", "job.gpu_request"),
    ("moab", with_line("-W group_list=root"), 1, "Bad GID", "directive with group_list"),
    ("moab", LONG, 1, "violates queue and/or server", "job.walltime"),
    ("lsf", LONG, 1, "RUNLIMIT", "Lower job.walltime"),
    ("lsf", with_line('-R "select['), 1, "Bad resource requirement", "Correct the -R directive"),
    ("lsf", JobShape(cpus=999), 1, "Too many processors", "Lower job.cpus"),
    ("lsf", NOBODYS, 1, "Not a member of the specified project", "job.account"),
    ("lsf", JobShape(gpus=99), 1, "Bad GPU requirement", "job.gpu_request"),
    ("htcondor", with_line("RequestMemory = lots of it"), 1, "Parse error", "job.memory"),
    ("htcondor", with_line("requirements = ("), 1, "Failed to parse", "job.directives"),
    ("htcondor", JobShape(gpus=99), 1, "request_gpus is more than", "job.gpus"),
    ("htcondor", USUAL, 2000, "MAX_JOBS_PER_SUBMISSION", "fewer workers"),
    ("kubernetes", in_pod(account="closed"), 1, 'cannot create resource "pods"', "needs a role"),
    ("kubernetes", in_pod(account="small", memory=2**34), 1, "maximum memory", "job.memory"),
    ("kubernetes", in_pod(account="small", gpus=2), 1, "exceeded quota", "describe quota"),
    ("kubernetes", JobShape(cpus=1), 1, "image: Required value", "environment.container"),
    ("kubernetes", in_pod("spec.priorityClassName = nosuch"), 1, "no PriorityClass", "priority"),
    ("kubernetes", in_pod("spec.serviceAccountName = nosuch"), 1, "not found", "serviceAccount"),
    ("kubernetes", in_pod("spec.hostNetwork = true"), 1, "violates PodSecurity", "rules forbid"),
    ("kubernetes", in_pod(f"{CONTAINER}.env[0].value = 1"), 1, "cannot unmarshal", "quotes"),
    ("kubernetes", in_pod(f"{CONTAINER}.resources.limits.cpu = lots"), 1, "quantities", "500m"),
    ("kubernetes", in_pod("metadata.labels.team = a b"), 1, "is invalid", "job.directives"),
    ("cobalt", NOBODYS, 1, "not a valid project", "job.account"),
    ("cobalt", JobShape(nodes=999), 1, "node count out of", "job.nodes"),
    ("cobalt", LONG, 1, "Walltime greater", "job.walltime"),
    ("cobalt", with_line("--nosuchoption"), 1, "no such option", "job.directives"),
]
"""Beside the queue, limit or group that the life of a cluster is refused for on each system."""


@pytest.mark.parametrize("place,job,count,said,cure", REFUSALS, indirect=["place"])
def test_a_refusal_tells_the_words_and_the_cure(
    home: Path, place: SimulatedPlace, job: JobShape, count: int, said: str, cure: str
) -> None:
    backend = find_backend(place.backend)
    lines = merge(
        backend.syntax, backend.directives(job, MARK, str(home / "out")), job.directives, ()
    )
    script = home / "job.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, "exit 0"]) + "\n")
    script.chmod(0o700)
    queue = Queue(backend, ProcessRunner({**os.environ, **place.environment}))
    sent = Submission(MARK, str(script), count, text=script.read_text())
    with pytest.raises(BackendError) as caught:
        asyncio.run(queue.submit(sent))
    assert not isinstance(caught.value, BackendUnavailable)
    assert said in caught.value.message
    assert cure in caught.value.hint
    assert caught.value.detail.startswith("$ ")
    assert place.queue() == []
