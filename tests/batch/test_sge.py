"""Grid Engine against recorded answers of Son of Grid Engine 8.1.9."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.base import UNREAD
from jupyter_gpucluster.batch.sge import Sge
from jupyter_gpucluster.core.errors import BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import (
    JobShape,
    JobState,
    JobStatus,
    Submission,
)
from tests.batch.answers import answer

SGE = Sge()
ONE = Submission("gpc-7f3a2b-1", "/jobs/gpc-7f3a2b-1.sh")
FOUR = Submission("gpc-7f3a2b-1", "/jobs/gpc-7f3a2b-1.sh", 4)


def one(state: str, **fields: str) -> JobStatus:
    values = {"JB_job_number": "7", "state": state, **fields}
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
    text = f"<job_info><queue_info><job_list>{inner}</job_list></queue_info></job_info>"
    [status] = SGE.parse_status(answer(text)).values()
    return status


@pytest.mark.parametrize(
    "request_,lines",
    [
        ("ngpus", ["-pe smp 4", "-l ngpus=2", "-l gpu_type=v100"]),
        ("gpu/slot", ["-pe smp 4", "-l gpu=0.5", "-l gpu_type=v100"]),
        ("none", ["-pe smp 4", "-l gpu_type=v100"]),
    ],
)
def test_gpus_are_asked_for_by_the_site_s_name(request_: str, lines: list[str]) -> None:
    assert SGE.resources(JobShape(gpus=2, cpus=4, gpu_request=request_, gpu_type="v100")) == lines


def test_several_nodes_need_an_environment_that_only_the_site_knows() -> None:
    with pytest.raises(InvalidInput) as caught:
        SGE.resources(JobShape(nodes=2, cpus=16))
    assert "-pe" in caught.value.hint
    assert SGE.resources(JobShape(nodes=2, cpus=16, directives=("-pe mpi 16",))) == []


def test_arrays_count_from_one_and_one_job_is_none() -> None:
    assert SGE.submit(ONE) == ["qsub", "-terse", ONE.script]
    assert SGE.submit(FOUR) == ["qsub", "-terse", "-t", "1-4", ONE.script]
    assert SGE.parse_submit(ONE, answer("2\n")) == ("2",)
    assert SGE.parse_submit(FOUR, answer("5.1-4:1\n")) == ("5.1", "5.2", "5.3", "5.4")
    assert SGE.cancel(["5.1", "5.3"]) == ["qdel", "5.1", "5.3"]


@pytest.mark.parametrize(
    "letters,state",
    [
        ("qw", JobState.PENDING),
        ("Rq", JobState.PENDING),
        ("hqw", JobState.HELD),
        ("hRwq", JobState.HELD),
        ("hr", JobState.RUNNING),
        ("Eqw", JobState.HELD),
        ("t", JobState.RUNNING),
        ("Rr", JobState.RUNNING),
        ("s", JobState.SUSPENDED),
        ("S", JobState.SUSPENDED),
        ("T", JobState.SUSPENDED),
        ("dr", JobState.ENDING),
        ("dS", JobState.ENDING),
        ("dRr", JobState.ENDING),
        ("z", JobState.UNKNOWN),
    ],
)
def test_letters_are_states(letters: str, state: JobState) -> None:
    assert one(letters).state is state


@pytest.mark.parametrize("name, id", [("gpc-7f3a2b-1", UNREAD.id), ("theirs", "7.3-9:1")])
def test_tasks_of_ours_that_are_not_told_apart_cannot_be_read(name: str, id: str) -> None:
    row = f"<JB_job_number>7</JB_job_number><JB_name>{name}</JB_name><tasks>3-9:1</tasks>"
    listing = f"<job_info><job_list>{row}</job_list></job_info>"
    assert [*SGE.parse_status(answer(listing))] == [id]


def test_times_are_local() -> None:
    status = one("r", JAT_start_time="2026-11-28T00:32:17", queue_name="gpu.q@gpu01")
    assert status.started == datetime(2026, 11, 28, 0, 32, 17).timestamp()
    assert status.nodes == ("gpu01",)


def test_ended_jobs_are_looked_up_one_by_one_in_one_command(tmp_path: Path) -> None:
    qacct = tmp_path / "qacct"
    qacct.write_text('#!/bin/sh\necho "asked $1 $2"\n')
    qacct.chmod(0o700)
    argv = SGE.history(["5.1", "5.2", "7; touch here"])
    assert argv is not None
    done = subprocess.run(
        argv, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=True
    )
    assert done.stdout.decode().splitlines() == ["asked -j 5", "asked -j 7; touch here"]


def test_of_a_job_that_ran_twice_the_last_record_counts() -> None:
    record = "=" * 62 + "\njobnumber 5\ntaskid undefined\nfailed {}\nexit_status {}\n"
    text = record.format("25 : rescheduling", 99) + record.format(0, 0)
    assert SGE.parse_history(answer(text, code=1))["5"].state is JobState.DONE
    with pytest.raises(BackendUnavailable):
        SGE.parse_history(answer(code=None))


@pytest.mark.parametrize(
    "failed,code,category,state,words",
    [
        ("37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", 137, "-l h_vmem=300M",
         JobState.OUT_OF_MEMORY, "more memory"),
        ("37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", 137, "-l h_rt=6",
         JobState.TIMEOUT, "walltime"),
        ("100 : assumedly after job", 152, "-q all.q -l s_vmem=300M", JobState.OUT_OF_MEMORY,
         "more memory"),
        ("100 : assumedly after job", 138, "-q all.q -l s_rt=4", JobState.TIMEOUT, "walltime"),
        ("100 : assumedly after job", 138, "-q all.q", JobState.FAILED, "signal 10"),
        ("19  : before writing exit_status", 0, "", JobState.NODE_FAIL, "lost track of it"),
    ],
)  # fmt: skip
def test_limits_and_lost_nodes_are_told_apart(
    failed: str, code: int, category: str, state: JobState, words: str
) -> None:
    record = "=" * 62 + f"\njobnumber 5\ntaskid undefined\nfailed {failed}\nexit_status {code}\n"
    record += f"ru_wallclock 7s\ncategory {category}\n"
    status = SGE.parse_history(answer(record))["5"]
    assert status.state is state
    assert words in SGE.explain(status)
