"""Only jobs that a dead head left in the queue are cancelled."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import cancel
from jupyter_gpucluster.batch.base import UNREAD
from jupyter_gpucluster.batch.cancel import cancel_jobs, cancel_jobs_of, left_jobs, left_jobs_of
from jupyter_gpucluster.batch.kubernetes.dialect import Kubernetes
from jupyter_gpucluster.batch.slurm import LISTED, Slurm
from jupyter_gpucluster.core.cluster import Record, Spec, Target, heads_mark
from jupyter_gpucluster.core.job import CommandResult, Job, JobShape, JobState
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.node.node_list import expand
from jupyter_gpucluster.state.head_job import variables_of
from tests.commands import put_command

OURS = "gpc-abc123-1"
UNKNOWN = "slurm_load_jobs error: Invalid job id specified\n"


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slurm, "hurry_seconds", 0.0)


class Site:
    """Stands in for Slurm's commands: a queue of jobs that go when they are cancelled."""

    def __init__(self, jobs: dict[str, tuple[str, str]], *, deaf: bool = False) -> None:
        self.jobs = jobs
        self.deaf = deaf
        self.denies = True
        """True if scontrol reports unlisted jobs as unknown ids."""
        self.cancelled: list[str] = []

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        if argv[0] == "squeue":
            lines = [
                "|".join(
                    {"JobArrayID": id, "Name": mark, "State": state}.get(field, "")
                    for field in LISTED
                )
                for id, (mark, state) in self.jobs.items()
            ]
            return CommandResult(tuple(argv), 0, "\n".join(lines))
        if argv[0] == "scontrol":
            assert argv[-1] not in self.jobs
            return CommandResult(tuple(argv), 1, "", UNKNOWN if self.denies else "")
        if argv[0] == "sacct":
            return CommandResult(tuple(argv), 1, "", "Slurm accounting storage is disabled\n")
        ids = [id for word in argv for id in expand(word) if id in self.jobs]
        self.cancelled += ids
        if not self.deaf:
            self.jobs = {id: job for id, job in self.jobs.items() if id not in ids}
        return CommandResult(tuple(argv), 0)


class Silent:
    """Stands in for a Slurm that does not answer."""

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        return CommandResult(tuple(argv), 1, "", "Unable to contact slurm controller")


def a_record(*jobs: Job, backend: str = "slurm") -> Record:
    spec = Spec(profile="p", title="P", backend=backend, python="python")
    return Record("abc123", "c", spec, Target(1, 1), created=0.0, jobs=jobs)


def a_job(id: str, task: int = 0, state: JobState = JobState.RUNNING) -> Job:
    return Job(OURS, task, state, id=id)


@pytest.mark.parametrize(
    "queue,jobs,cancelled,ended,told",
    [
        ({"7_0": (OURS, "RUNNING"), "7_1": (OURS, "PENDING")}, (a_job("7_0"), a_job("7_1", 1)),
         ["7_0", "7_1"], [JobState.CANCELLED] * 2, "Its jobs were cancelled: 7_0, 7_1."),
        # A number that now belongs to something else is left alone.
        ({"7": ("analysis", "RUNNING"), "8": ("gpc-xyz789-1", "RUNNING")},
         (a_job("7"), a_job("8", 1)), [], [JobState.UNKNOWN] * 2, ""),
        # A job whose number was lost is found by its name.
        ({"9": (OURS, "PENDING")}, (a_job("", state=JobState.SUBMITTING),), ["9"], [],
         "Its jobs were cancelled: 9."),
        # No command waits for jobs that are just ending.
        ({"7": (OURS, "COMPLETING")}, (a_job("7"),), [], [JobState.UNKNOWN], ""),
    ],
)  # fmt: skip
async def test_jobs_of_ours_are_cancelled_until_they_are_gone(
    queue: dict[str, tuple[str, str]],
    jobs: tuple[Job, ...],
    cancelled: list[str],
    ended: list[JobState],
    told: str,
) -> None:
    site = Site(queue)
    record, words = await cancel_jobs_of(a_record(*jobs), site)
    assert sorted(site.cancelled) == cancelled
    assert [job.state for job in record.jobs if job.ended] == ended
    assert words == told


async def test_an_end_by_a_clock_that_is_hours_behind_is_none_before_the_submission() -> None:
    class Accounts(Site):
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            if argv[0] != "squeue":
                return await super().run(argv, stdin)
            found = {"JobArrayID": "7", "Name": OURS, "State": "FAILED"}
            found["StartTime"] = "2026-11-28T00:00:00"
            return CommandResult(tuple(argv), 0, "|".join(found.get(x, "") for x in LISTED))

    submitted = datetime.fromisoformat("2026-11-28T05:00:00").timestamp()
    job = replace(a_job("7"), submitted=submitted)
    record, _ = await cancel_jobs_of(a_record(job), Accounts({}))
    started = record.jobs[0].started
    assert (record.jobs[0].state, started) == (JobState.FAILED, submitted)


async def test_jobs_that_the_listing_lacks_are_cancelled_and_named_without_proof() -> None:
    site = Site({"7": (OURS, "RUNNING"), "8": (OURS, "RUNNING")})
    jobs = a_job("7"), a_job("8", 1)

    class Lies(Site):
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            if argv[0] == "squeue":
                return CommandResult(tuple(argv), 0, "")
            if argv[0] == "scancel":
                asked.append(argv[-1])
            return CommandResult(tuple(argv), 1)

    asked: list[str] = []
    record, told = await cancel_jobs_of(a_record(*jobs), Lies(site.jobs))
    assert asked == ["8"] * cancel.ROUNDS
    assert [job.ended for job in record.jobs] == [None, None]
    assert "Slurm does not list jobs 7, 8, and nothing proves the end" in told
    assert told.endswith("scancel 7 8")
    assert await left_jobs_of([record], Lies(site.jobs)) == [
        f"job {id} of {OURS} (not listed, end not confirmed); to end it: scancel {id}"
        for id in ("7", "8")
    ]


async def test_an_exit_file_proves_the_end_of_a_job_that_is_not_listed(tmp_path: Path) -> None:
    site = Site({})
    site.denies = False
    directory = ClusterDirectory(tmp_path / "abc123")
    directory.create()
    (directory.path / "exit" / f"{OURS}_0").write_text("3\n")
    record, told = await cancel_jobs_of(a_record(a_job("7")), site, directory=directory)
    assert (record.jobs[0].state, told) == (JobState.FAILED, "")
    assert record.jobs[0].ended
    assert not site.cancelled


@pytest.mark.parametrize("ends, ended", [(10_000.0, False), (1_000.0, True), (None, False)])
async def test_without_a_head_a_job_is_over_an_hour_after_its_time_limit(
    monkeypatch: pytest.MonkeyPatch, ends: float | None, ended: bool
) -> None:
    site = Site({})
    site.denies = False
    monkeypatch.setattr("time.time", lambda: 10_000.0)
    record, _ = await cancel_jobs_of(a_record(replace(a_job("7"), ends=ends)), site)
    assert (record.jobs[0].ended is not None) is ended


async def test_jobs_whose_submission_was_not_answered_may_appear_later() -> None:
    _, told = await cancel_jobs_of(a_record(a_job("", state=JobState.SUBMITTING)), Site({}))
    assert f"the submission of {OURS} and does not list it: its jobs may appear later" in told
    assert told.endswith("To see them: jupyter gpucluster list --orphans.")


async def test_a_job_that_cannot_be_read_may_be_one_whose_submission_was_not_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Slurm, "parse_status", lambda self, result: {UNREAD.id: UNREAD})
    record = a_record(a_job("", state=JobState.SUBMITTING))
    newer, told = await cancel_jobs_of(record, Site({}))
    assert newer.jobs == record.jobs
    assert "listed a job in a form that cannot be read" in told


async def test_jobs_that_do_not_go_are_named_with_the_command() -> None:
    site = Site({"7": (OURS, "RUNNING")}, deaf=True)
    record, told = await cancel_jobs_of(a_record(a_job("7")), site)
    assert site.cancelled == ["7"] * cancel.ROUNDS
    assert "scancel" in told
    assert told.endswith("7")
    assert record.jobs[0].state is JobState.RUNNING


async def test_without_an_answer_the_user_is_told_what_to_do() -> None:
    record, told = await cancel_jobs_of(a_record(a_job("7")), Silent())
    assert "does not answer" in told
    assert "scancel" in told
    assert record.jobs[0].ended is None


async def test_jobs_on_another_cluster_of_slurm_s_are_looked_for_and_ended_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = a_record(a_job("7"))
    spec = replace(record.spec, job=JobShape(directives=("--clusters=cm2",)))
    record = replace(record, spec=spec)
    for name in ("squeue", "scancel"):
        script = f'echo "{name} on $SLURM_CLUSTERS" >>{tmp_path}/asked; exit 1'
        put_command(tmp_path, monkeypatch, name, script)
    assert left_jobs([record]) == ["perhaps jobs of c: Slurm does not answer"]
    assert (tmp_path / "asked").read_text() == "squeue on cm2\n"
    _, told = await cancel_jobs_of(record, Silent())
    assert told.endswith("SLURM_CLUSTERS=cm2 scancel 7")


@pytest.mark.parametrize(
    "routing,asked,typed",
    [
        # Not on record, as in one of an older version.
        (None, "/b/slurm.conf cm9", "scancel 7"),
        ({}, " ", "scancel 7"),
        ({"SLURM_CONF": "/a/slurm.conf"}, "/a/slurm.conf ", "SLURM_CONF=/a/slurm.conf scancel 7"),
    ],
)
async def test_another_terminal_asks_the_system_of_the_start(
    routing: dict[str, str] | None, asked: str, typed: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    record = a_record(a_job("7"))
    record = replace(record, spec=replace(record.spec, routing=routing))
    monkeypatch.setenv("SLURM_CONF", "/b/slurm.conf")
    monkeypatch.setenv("SLURM_CLUSTERS", "cm9")
    script = f'echo "$SLURM_CONF $SLURM_CLUSTERS" >>{tmp_path}/asked; exit 1'
    put_command(tmp_path, monkeypatch, "squeue", script)
    left = cancel_jobs(record)[0].unaccounted
    assert left is not None
    assert (tmp_path / "asked").read_text() == f"{asked}\n"
    assert left.command == typed
    assert {"SLURM_CONF", "SLURM_CLUSTERS"} & variables_of(record).keys() == {
        name for name, value in zip(("SLURM_CONF", "SLURM_CLUSTERS"), asked.split(" "), strict=True)
        if value
    }  # fmt: skip


async def test_a_system_that_hangs_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            await asyncio.sleep(3600)
            raise AssertionError

    monkeypatch.setattr(cancel, "SECONDS", 0.01)
    _, told = await cancel_jobs_of(a_record(a_job("7")), Hanging())
    assert "scancel" in told


@pytest.mark.parametrize(
    "record",
    [
        a_record(),
        a_record(a_job("7"), backend="local"),
        a_record(a_job("7", state=JobState.DONE)),
        a_record(replace(a_job("7", state=JobState.UNKNOWN), ended=1.0)),
    ],
    ids=["no jobs", "this machine", "done", "gone"],
)
async def test_nothing_is_asked_where_nothing_can_be_left(record: Record) -> None:
    class Untouched:
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            raise AssertionError(argv)

    assert await cancel_jobs_of(record, Untouched()) == (record, "")


async def test_it_works_beside_a_running_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site({"7": (OURS, "RUNNING")})
    monkeypatch.setattr(cancel, "ProcessRunner", lambda _: site)
    _, told = cancel_jobs(a_record(a_job("7")))
    assert "cancelled" in told


async def test_what_is_left_is_listed_with_the_command_that_ends_it() -> None:
    site = Site({"7": (OURS, "RUNNING"), "8": ("analysis", "RUNNING")})
    assert await left_jobs_of([a_record(a_job("7"), a_job("8", 1))], site) == [
        f"job 7 of {OURS} (running); to end it: scancel 7"
    ]
    [doubt] = await left_jobs_of([a_record(a_job("7"))], Silent())
    assert doubt == "perhaps jobs of c: Slurm does not answer"
    assert left_jobs([a_record()]) == []


STRAYS = {
    "ours": ("/state", "RUNNING", "without a scheduler"),
    "theirs": ("/other", "RUNNING", "started from /other on login2"),
    "unknown": ("", "RUNNING", "started from another directory on login2"),
    "ended": ("/state", "COMPLETED", None),
}


@pytest.mark.parametrize("root,state,told", STRAYS.values(), ids=STRAYS)
def test_jobs_that_no_live_cluster_has_are_listed_with_their_origin(
    root: str, state: str, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"7|{state}|None|n1|N/A|N/A|0|{OURS}", "8|RUNNING|None|n1|N/A|N/A|0|gpc-live00-1"]
    rows += ["9|RUNNING|None|n1|N/A|N/A|0|analysis"]
    put_command(tmp_path, monkeypatch, "squeue", "\n".join(f"echo '{row}'" for row in rows))
    paths = f"StdOut={root}/abc123/logs/{OURS}.0.out" if root else ""
    put_command(
        tmp_path, monkeypatch, "scontrol", f"echo 'JobId=$5 AllocNode:Sid=login2:12 {paths}'"
    )
    for name in ("sbatch", "scancel"):
        put_command(tmp_path, monkeypatch, name, "exit 1")
    lines = cancel.stray_jobs([("slurm", {"SLURM_CLUSTERS": "cm2"})], {"live00"}, Path("/state"))
    end = "to end it: SLURM_CLUSTERS=cm2 scancel 7"
    assert lines == ([f"job 7 of {OURS} (running), {told}; {end}"] if told else [])


def test_systems_are_asked_side_by_side_and_a_silent_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancel, "ANSWER_SECONDS", 1.0)
    for name in ("sbatch", "squeue", "scancel", "qsub", "qstat", "qdel"):
        put_command(tmp_path, monkeypatch, name, "exec sleep 60")
    begun = time.monotonic()
    lines = cancel.stray_jobs(
        [("slurm", {}), ("pbs", {}), ("lsf", {})], frozenset(), Path("/state")
    )
    assert lines == [f"perhaps jobs: {name} does not answer" for name in ("Slurm", "PBS")]
    assert time.monotonic() - begun < 30


async def test_pods_whose_context_is_missing_are_not_taken_for_gone() -> None:
    class Kubectl:
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            said = "Error in configuration: context was not found for specified context: far"
            return CommandResult(tuple(argv), 1, "", said)

    where = ("--context=far", "--namespace=physics")
    job = JobShape(account="physics", submit_args=where[:1], cancel_args=where)
    record = a_record(a_job(f"{OURS}-0"), backend="kubernetes")
    record = replace(record, spec=replace(record.spec, job=job))
    buried, told = await cancel_jobs_of(record, Kubectl())
    assert buried.jobs[0].ended is None
    assert "lacks the context 'far'" in told
    command = "kubectl --context=far --namespace=physics delete pods"
    assert f"To end them now: {command}" in told
    [doubt] = await left_jobs_of([record], Kubectl())
    assert "kubectl config rename-context OTHER far" in doubt


async def test_ended_jobs_are_removed_where_they_stay_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Pods:
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            if argv[0] == "sh":
                return CommandResult(tuple(argv), 0, json.dumps({"items": items}))
            deleted.extend(argv[argv.index("--ignore-not-found") + 1 :])
            items[:] = [pod for pod in items if pod["metadata"]["name"] not in deleted]
            return CommandResult(tuple(argv), 0)

    monkeypatch.setattr(Kubernetes, "hurry_seconds", 0.0)
    items: list[dict[str, Any]] = [
        {
            "metadata": {"name": f"{OURS}-{task}", "labels": {"jupyter-gpucluster/mark": OURS}},
            "status": {"phase": phase},
        }
        for task, phase in enumerate(["Running", "Failed"])
    ]
    deleted: list[str] = []
    jobs = [a_job(f"{OURS}-{task}", task) for task in range(2)]
    record, told = await cancel_jobs_of(a_record(*jobs, backend="kubernetes"), Pods())
    assert deleted == [f"{OURS}-0", f"{OURS}-1"]
    assert [job.state for job in record.jobs] == [JobState.CANCELLED, JobState.FAILED]
    assert all(job.ended for job in record.jobs)
    assert told == f"Its jobs were cancelled: {OURS}-0."


@pytest.mark.parametrize("backend,in_job", [("kubernetes", True), ("kubernetes", False),
                                            ("slurm", True)])  # fmt: skip
def test_a_head_in_a_pod_leaves_its_pod_to_nobody(backend: str, in_job: bool) -> None:
    own = Job(heads_mark("abc123"), 0, JobState.DONE, id="gpc-abc123-0-0", ended=1.0)
    record = a_record(own, backend=backend)
    record = replace(record, spec=replace(record.spec, in_job=in_job))
    expected = ["gpc-abc123-0-0"] if backend == "kubernetes" and in_job else []
    assert cancel.heads_job_left(record) == expected
