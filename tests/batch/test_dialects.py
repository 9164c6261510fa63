"""Cases that dialects share: recorded answers, scripts of the documented examples, refusals."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.slurm import ACCOUNTED, LISTED
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import CommandResult, JobShape
from tests.batch.golden import example_of, golden, script_of
from tests.batch.recorded import Recording, meaning_of_listing, meaning_of_submission, recordings

COUNTS: dict[str, Callable[[Sequence[str]], int]] = {
    "slurm": lambda argv: 1,
    "pbs": lambda argv: 4 if "-J" in argv else 1,
    "sge": lambda argv: 4 if "-t" in argv else 1,
    "oar": lambda argv: 4 if "--array" in argv else 2 if "--array-param-file" in argv else 1,
    "kubernetes": lambda argv: 2,
}
"""Systems whose answers were recorded: Slurm 22.05, OpenPBS 23.06, Son of Grid Engine 8.1.9, OAR
2.5.9, and kubectl 1.20 and 1.35 with the tests' own API server.  Each with the number of jobs that
a submit command asked for."""
MOAB = """\
title: A Moab site
backend: moab
job:
  queue: batch
  account: gfdl_x
  gpus: 1
  cpus: 6
  memory: 16 GiB
  walltime: "01:00:00"
"""


class OurColumns(Recording):
    """A recorded listing of Slurm with those of its columns, in their order, for which we ask."""

    @property
    def result(self) -> CommandResult:
        whole = super().result
        wanted = LISTED if self.call == "status" else ACCOUNTED
        there = [word for word in whole.argv if "," in word]
        columns = [name.partition(":")[0] for name in there[-1].split(",")] if there else []
        if not set(wanted) <= set(columns):
            return whole
        rows = [line.split("|") for line in whole.stdout.splitlines()]
        kept = ["|".join(row[columns.index(name)] for name in wanted) for row in rows]
        return replace(whole, stdout="".join(f"{row}\n" for row in kept))


def listings() -> Iterator[Recording]:
    for system, call in itertools.product(COUNTS, ("status", "history")):
        kind = OurColumns if system == "slurm" else Recording
        yield from (kind(r.system, r.file, r.call, r.rows) for r in recordings(system, call))


def name_of(recording: Recording) -> str:
    return f"{recording.system}-{recording.file}"


@pytest.mark.parametrize("recording", [*listings()], ids=name_of)
def test_every_recorded_listing_is_read(recording: Recording) -> None:
    read, expected = meaning_of_listing(find_backend(recording.system), recording)
    assert read == expected


@pytest.mark.parametrize(
    "recording", [each for system in COUNTS for each in recordings(system, "submit")], ids=name_of
)
def test_every_recorded_submission_is_understood(recording: Recording) -> None:
    count = COUNTS[recording.system](recording.result.argv)
    backend = find_backend(recording.system)
    read, expected = meaning_of_submission(backend, recording, count)
    assert read == expected


@pytest.mark.parametrize(
    "system", ["slurm", "pbs", "moab", "lsf", "sge", "oar", "cobalt", "htcondor", "kubernetes"]
)
def test_the_example_of_the_page_makes_this_script(
    system: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "lsf.conf").write_text("LSF_UNIT_FOR_LIMITS=MB\n")
    monkeypatch.setenv("LSF_ENVDIR", str(home))
    example = MOAB if system == "moab" else example_of(system)
    script = script_of(example, home / "data")
    if system != "slurm":  # below their heads all scripts are alike
        lines = itertools.takewhile(lambda line: line.startswith("#"), script.splitlines())
        script = "".join(f"{line}\n" for line in lines)
    assert script == golden(f"{system}_example.sh", script)


@pytest.mark.parametrize(
    "system,shape,key",
    [
        ("kubernetes", JobShape(nodes=2), "job.nodes"),
        ("kubernetes", JobShape(account="Physics"), "job.account"),
        ("kubernetes", JobShape(account="a.b"), "job.account"),
        ("kubernetes", JobShape(queue="-q"), "job.queue"),
        ("kubernetes", JobShape(gpus=1, gpu_request="gpu"), "job.gpu_request"),
        ("kubernetes", JobShape(gpus=1, gpu_type="A100 SXM"), "job.gpu_type"),
        ("kubernetes", JobShape(memory=1, memory_request="mem"), "job.memory_request"),
        ("htcondor", JobShape(nodes=2), "job.nodes"),
        ("htcondor", JobShape(queue="long"), "job.queue"),
        ("htcondor", JobShape(gpus=1, gpu_request="gres"), "job.gpu_request"),
        ("htcondor", JobShape(gpus=1, gpu_type='A100"'), "job.gpu_type"),
        ("cobalt", JobShape(gpus=1, gpu_request="gres"), "job.gpu_request"),
        ("cobalt", JobShape(gpus=1, gpu_type="A100"), "job.gpu_type"),
        ("lsf", JobShape(gpus=1, gpu_request="gres"), "job.gpu_request"),
        ("lsf", JobShape(gpus=1, gpu_type="a:b"), "job.gpu_type"),
        ("lsf", JobShape(gpus=1, gpu_type="V100", gpu_request="none"), "job.gpu_type"),
        ("pbs", JobShape(gpus=1, gpu_type="v100:mem=1tb"), "job.gpu_type"),
    ],
)
def test_a_shape_that_a_system_cannot_give_is_refused(
    system: str, shape: JobShape, key: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        find_backend(system).directives(shape, "gpc-abc123-1", "/o")
    assert caught.value.detail == key
    assert caught.value.hint


def numbers_in_bash(system: str, variables: Mapping[str, str]) -> tuple[str, str]:
    """Return the number of a job's task and of its restart, as the shell of the job reads them."""
    backend = find_backend(system)
    script = f"task=a_{backend.task}; restarts=a_{backend.restarts}; echo $task $restarts"
    environment = {"PATH": "/usr/bin:/bin", **variables}
    shown = subprocess.check_output(["bash", "-c", script], env=environment, text=True)
    task, restarts = shown.split()
    return task.removeprefix("a_"), restarts.removeprefix("a_")


@pytest.mark.parametrize(
    "system,variables,task",
    [
        ("kubernetes", {"GPUCLUSTER_TASK": "2"}, "2"),
        ("kubernetes", {}, "0"),
        ("lsf", {"LSB_JOBINDEX": "1"}, "0"),
        ("lsf", {"LSB_JOBINDEX": "8", "LSB_RESTART": "N"}, "7"),
        ("lsf", {"LSB_JOBINDEX": "0"}, "0"),
        ("lsf", {}, "0"),
        ("oar", {"OAR_ARRAY_INDEX": "1"}, "0"),
        ("oar", {"OAR_ARRAY_INDEX": "12"}, "11"),
        ("sge", {"SGE_TASK_ID": "undefined"}, "0"),
        ("sge", {"SGE_TASK_ID": "1", "RESTARTED": "0"}, "0"),
        ("sge", {"SGE_TASK_ID": "12"}, "11"),
    ],
)
def test_a_job_reads_its_number(system: str, variables: dict[str, str], task: str) -> None:
    assert numbers_in_bash(system, variables) == (task, "0")


@pytest.mark.parametrize(
    "system,variables",
    [("lsf", {"LSB_RESTART": "Y"}), ("sge", {"SGE_TASK_ID": "1", "RESTARTED": "1"})],
)
def test_a_job_that_runs_again_has_another_number(system: str, variables: dict[str, str]) -> None:
    assert int(numbers_in_bash(system, variables)[1]) > 10**9
