"""Questions of a head to its batch system: few, and lost jobs by name as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.queue import COMMAND_SECONDS, Queue
from jupyter_gpucluster.core.cluster import Record, SiteRules
from jupyter_gpucluster.core.job import CommandResult, Job, JobShape, JobState
from jupyter_gpucluster.head.reconcile.groups import step
from jupyter_gpucluster.head.reconcile.listing import ask, doubtful, open_queue, period
from jupyter_gpucluster.head.reconcile.model import Cancel, Observation, Reported
from jupyter_gpucluster.head.summary import summarise
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory

from ..world import a_record

MARK = "gpc-abc123-1"
NOTHING = Reported()
KEY = f"{MARK}_0"
ROW = "7000_0|RUNNING|None|c1|2026-11-28T00:00:00|2026-11-28T01:00:00|0|gpc-abc123-1|\n"


class Slurm:
    """Commands that answer what a test says, and remember who asked."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        self.asked.append(tuple(argv))
        answer = self.answers.get(argv[0])
        return CommandResult(tuple(argv), None if answer is None else 0, answer or "")

    def commands(self) -> list[str]:
        """Return the commands that were run."""
        return [argv[0] for argv in self.asked]


def with_jobs(*jobs: Job) -> Record:
    return replace(a_record(), jobs=jobs)


async def told_by(
    slurm: Slurm, record: Record, home: Path, now: float = 1000.0, before: Reported = NOTHING
) -> Reported:
    directory = ClusterDirectory(home / "abc123")
    (directory.path / "exit").mkdir(parents=True, exist_ok=True)
    queue = Queue(find_backend("slurm"), slurm)
    return await ask(queue, directory, record, before, now, 10.0)


async def test_without_jobs_nobody_is_asked(home: Path) -> None:
    slurm = Slurm()
    over = Job(MARK, 0, JobState.DONE, "7000_0", ended=900.0)
    assert await told_by(slurm, with_jobs(over), home) == Reported()
    assert slurm.asked == []


async def test_jobs_that_are_listed_need_one_call(home: Path) -> None:
    slurm = Slurm(squeue=ROW)
    told = await told_by(slurm, with_jobs(Job(MARK, 0, JobState.RUNNING, "7000_0")), home)
    assert told.listing is not None
    assert list(told.listing) == ["7000_0"]
    assert slurm.commands() == ["squeue"]


@pytest.mark.parametrize("listed", [True, False])
async def test_an_id_that_another_job_has_now_is_unknown(listed: bool, home: Path) -> None:
    described = "JobId=7000 JobName=analysis JobState=RUNNING ExitCode=0:0\n"
    answers = {"squeue": ROW.replace(MARK, "analysis") if listed else "", "scontrol": described}
    told = await told_by(
        Slurm(**answers), with_jobs(Job(MARK, 0, JobState.RUNNING, "7000_0")), home
    )
    assert told.unknown == {"7000_0"}


async def test_an_id_of_another_job_is_not_cancelled_before_the_next_listing(home: Path) -> None:
    record = with_jobs(Job(MARK, 0, JobState.RUNNING, "7000_0", retiring_since=900.0))
    record = replace(record, stop_requested=900.0)
    told, now = NOTHING, 1000.0
    for slurm in (Slurm(squeue=ROW.replace(MARK, "analysis")), Slurm(), Slurm()):
        told = await told_by(slurm, record, home, now, told)
        record, actions = step(record, Observation(**vars(told)), now)
        assert not [action for action in actions if isinstance(action, Cancel)]
        now += 60.0
    assert (record.jobs[0].missing, record.jobs[0].ended) == (1, None), "one listing is no proof"


async def test_a_job_that_cannot_be_read_may_be_one_whose_submission_was_not_answered(
    home: Path,
) -> None:
    record = with_jobs(Job(MARK, 0, submitted=0.0))
    record = replace(record, spec=replace(record.spec, backend="lsf"))
    queue = Queue(find_backend("lsf"), Slurm(env=f'{{"RECORDS": [{{"JOB_NAME": "{MARK}[1]"}}]}}'))
    told = await ask(queue, ClusterDirectory(home), record, NOTHING, 1000.0, 10.0)
    assert (told.listing, told.unresponsive_since) == (None, 1000.0)


async def test_silence_is_known_by_its_beginning_and_asks_for_nothing_more(home: Path) -> None:
    slurm = Slurm()
    told = await told_by(slurm, with_jobs(Job(MARK, 0, JobState.RUNNING, "7000_0")), home)
    assert told == Reported(unresponsive_since=1000.0)
    assert slurm.commands() == ["squeue"]


@pytest.mark.parametrize("stopped,silence", [(None, 5.0), (600.0, 305.0), (800.0, 205.0)])
async def test_silence_is_counted_while_the_cluster_stops(
    stopped: float | None, silence: float, home: Path
) -> None:
    record = with_jobs(Job(MARK, 0, JobState.RUNNING, "7000_0"))
    before = Reported(unresponsive_since=700.0, silence=5.0)
    record = replace(record, stop_requested=stopped)
    told = await told_by(Slurm(squeue=ROW), record, home, before=before)
    assert (told.silence, told.unresponsive_since) == (silence, None)


async def test_what_ends_a_silence_that_does_not_pass_by_itself_is_told(home: Path) -> None:
    class Kubectl(Slurm):
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            said = "Error in configuration: context was not found for specified context: far"
            return CommandResult(tuple(argv), 1, "", said)

    (home / "abc123").mkdir()
    directory, kept = ClusterDirectory(home / "abc123"), Reported(unresponsive_since=900.0)
    queue = Queue(find_backend("kubernetes"), Kubectl())
    record = with_jobs(Job(MARK, 0, JobState.RUNNING, f"{MARK}-0"))
    told = await ask(queue, directory, record, kept, 1000.0, 10.0)
    assert (told.listing, told.unresponsive_since) == (None, 900.0)
    summary = summarise(record, Observation(unresponsive_since=900.0, fix=told.fix), 1000.0)
    assert summary.reason.startswith("kubectl's file lacks the context 'far'")
    assert "kubectl config rename-context OTHER far" in summary.reason


async def test_what_is_no_longer_listed_is_looked_for_in_accounting_and_in_its_exit_file(
    home: Path,
) -> None:
    slurm = Slurm(squeue="", sacct="7000_0|FAILED|3:0|c1|Unknown|Unknown|gpc-abc123-1\n")
    told = await told_by(slurm, with_jobs(Job(MARK, 0, JobState.RUNNING, "7000_0")), home)
    assert told.history["7000_0"].exit_code == 3
    assert slurm.asked[1][:6] == ("sacct", "-n", "-P", "-X", "-j", "7000_0")


async def test_a_submission_without_an_answer_is_looked_for_by_name_in_listing_and_accounting(
    home: Path,
) -> None:
    answered = "7000_1|CANCELLED by 0|0:0|c1|Unknown|Unknown|gpc-abc123-1\n7000_[2-3]|PENDING|0:0||"
    slurm = Slurm(squeue=ROW.replace(MARK, "gpc-abc123-0"), sacct=answered)
    told = await told_by(slurm, with_jobs(Job(MARK, 1, submitted=1000 - COMMAND_SECONDS - 1)), home)
    assert [(s.mark, s.task, s.state) for s in told.found.values()] == [
        (MARK, 1, JobState.CANCELLED)
    ]
    assert ("--name", MARK) == slurm.asked[1][4:6]


async def test_one_that_was_only_just_sent_is_not_lost_yet(home: Path) -> None:
    slurm = Slurm(squeue="")
    await told_by(slurm, with_jobs(Job(MARK, 0, submitted=999.0)), home)
    assert slurm.commands() == ["squeue"]


async def test_what_has_ended_is_asked_for_too_where_it_stays_listed(home: Path) -> None:
    commands = Slurm(sh='{"items": []}')
    jobs = (
        Job(MARK, 0, JobState.FAILED, f"{MARK}-0", ended=900.0),
        Job("gpc-abc123-2", 0, JobState.RUNNING, "gpc-abc123-2-0"),
    )
    record = with_jobs(*jobs)
    record = replace(record, spec=replace(record.spec, backend="kubernetes"))
    queue = Queue(find_backend("kubernetes"), commands)
    (home / "abc123" / "exit").mkdir(parents=True)
    await ask(queue, ClusterDirectory(home / "abc123"), record, Reported(), 1000.0, 10.0)
    assert commands.asked[0][-1] == "jupyter-gpucluster/mark in (gpc-abc123-1,gpc-abc123-2)"


def test_heads_in_jobs_on_one_host_share_no_listing_of_different_places(home: Path) -> None:
    def ledger(namespace: str) -> Path:
        usual = a_record()
        spec = replace(usual.spec, backend="kubernetes", job=JobShape(account=namespace))
        directory = ClusterDirectory(home / "clusters" / usual.id)
        queue = open_queue(directory, replace(usual, spec=spec), Slurm())
        assert queue.shared is not None
        return queue.shared.ledger_file

    assert ledger("physics") == ledger("physics") != ledger("chemistry")


@pytest.mark.parametrize(
    "job, workers, calm, doubt",
    [
        (Job(MARK, 0, JobState.PENDING, id="7_0"), {}, False, False),
        (Job(MARK, 0, JobState.PENDING, id="7_0"), {KEY: 1}, False, True),
        (Job(MARK, 0, JobState.RUNNING, id="7_0"), {}, False, False),
        (Job(MARK, 0, JobState.RUNNING, id="7_0", connected=True), {KEY: 1}, True, False),
        (Job(MARK, 0, JobState.RUNNING, id="7_0", connected=True), {}, False, True),
        (
            Job(MARK, 0, JobState.RUNNING, id="7_0", connected=True, retiring_since=1.0),
            {KEY: 1},
            False,
            False,
        ),
        (Job(MARK, 0, JobState.RUNNING, id="7_0", missing=1), {}, False, True),
        (Job(MARK, 0, JobState.DONE, id="7_0", connected=True, ended=1.0), {}, True, False),
    ],
)
def test_listings_are_rare_while_all_workers_are_connected_and_soon_after_a_doubt(
    job: Job, workers: dict[str, int], calm: bool, doubt: bool
) -> None:
    record = replace(a_record(1), jobs=(job,))
    assert period(record, workers) == (120.0 if calm else 30.0)
    assert doubtful(record, workers) == ({KEY} if doubt else set())
    assert period(replace(record, stop_requested=1.0), workers) == 30.0
    spec = replace(record.spec, site=SiteRules(poll_period=60.0))
    assert period(replace(record, spec=spec), workers) == (240.0 if calm else 60.0)
