"""The job of a head, looked at from the Jupyter host while the head is elsewhere or not there."""

from __future__ import annotations

import json
import os
import shlex
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.base import UNREAD
from jupyter_gpucluster.batch.slurm import Slurm
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.absence import SECONDS_UNTIL_UNPROVED
from jupyter_gpucluster.core.cluster import Phase, Process, Record, Spec, Target, heads_mark
from jupyter_gpucluster.core.errors import BackendUnavailable
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.core.lease import LAPSED_SECONDS
from jupyter_gpucluster.core.serialize import to_json
from jupyter_gpucluster.core.summary import Event
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.processes import this_process
from jupyter_gpucluster.state import head_job
from tests.commands import put_command

ID = "abc123"
UNKNOWN = "slurm_load_jobs error: Invalid job id specified"
ELSEWHERE = Process("a-node-of-the-site", "", 7, 7)


class Site:
    """A Slurm that says what it is told to; its commands are the edge that is not ours."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.monkeypatch = home, monkeypatch
        self.say("squeue")
        self.say("sacct")
        self.say("scancel")
        self.shows(UNKNOWN)

    def say(self, command: str, *lines: str, error: str = "", code: int = 0) -> None:
        """Let a command print lines, and an error on standard error."""
        printed = [f"printf '%s\\n' {shlex.quote(line)}" for line in lines]
        if error:
            printed.append(f"echo {shlex.quote(error)} >&2")
        script = "\n".join([*printed, f"exit {code}"])
        put_command(self.home, self.monkeypatch, command, script)

    def shows(self, error: str, *lines: str) -> None:
        """Let scontrol describe the head's job, or print an error."""
        self.say("scontrol", *lines, error=error, code=0 if lines else 1)

    def lists(
        self, state: str, reason: str = "None", id: str = "70_0", started: str = "N/A"
    ) -> None:
        """Let squeue list the head's job."""
        self.say("squeue", f"{id}|{state}|{reason}||{started}|N/A|0|{heads_mark(ID)}|")

    def calls(self, command: str) -> int:
        """Return how often a command was run."""
        path = self.home / f"{command}.calls"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def site(home: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(home, monkeypatch)


def cluster(
    root: Path, *, head: Process | None = None, id: str = "70_0", age: float = 0.0
) -> ClusterDirectory:
    root.mkdir(parents=True, mode=0o700)
    directory = ClusterDirectory(root / ID)
    directory.create()
    now = time.time() - age
    job = Job(heads_mark(ID), 0, JobState.PENDING, id=id, submitted=now)
    directory.write_record(
        Record(
            ID,
            "mine",
            Spec("p", "P", "slurm", "python", in_job=True),
            Target(1, 1),
            now,
            phase=Phase.PENDING if head is None else Phase.RUNNING,
            phase_since=now,
            jobs=(job,),
            head=head,
        )
    )
    if head is not None:
        directory.renew_lease()
    return directory


def ask_again(directory: ClusterDirectory) -> None:
    """Let the last answer be an old one."""
    if directory.headjob_file.exists():
        os.utime(directory.headjob_file, (0, 0))
    for ledger in directory.path.parent.glob(".slurm-*.ledger"):
        ledger.unlink()


def lapse(directory: ClusterDirectory) -> None:
    """Let the head not have been heard of for a while."""
    then = time.time() - LAPSED_SECONDS - 10
    os.utime(directory.lease, (then, then))


def test_looks_ask_the_batch_system_now_and_then_only(root: Path, site: Site) -> None:
    directory = cluster(root)
    site.lists("PENDING", "Resources")
    clusters = Clusters(root)
    views = [clusters.get("mine") for _ in range(4)]
    assert {(view.phase, view.workers.pending) for view in views} == {(Phase.PENDING, 1)}
    assert views[0].reason
    assert site.calls("squeue") == 1
    ask_again(directory)
    site.lists("RUNNING")
    assert clusters.list()[0].phase is Phase.STARTING
    assert site.calls("squeue") == 2


def test_a_head_that_does_not_come_is_reported_with_its_jobs_log(root: Path, site: Site) -> None:
    directory = cluster(root, age=500)
    begun = datetime.fromtimestamp(time.time() - 400)
    site.lists("RUNNING", started=begun.isoformat(timespec="seconds"))
    log = directory.logs / f"{heads_mark(ID)}_0.log"
    when = begun.astimezone().isoformat(timespec="seconds")
    log.write_text(f"on n1\ngpucluster: in environment.prologue since {when}\n")
    view = Clusters(root).get("mine")
    assert view.phase is Phase.STARTING
    assert view.reason == (
        f"{heads_mark(ID)}_0 has run for 6 min without its scheduler: in environment.prologue since"
        f" {begun:%H:%M} (6 min)."
    )
    ask_again(directory)
    site.lists("RUNNING", started=datetime.now().isoformat(timespec="seconds"))
    assert Clusters(root).get("mine").reason == ""


def test_a_head_s_job_that_can_never_start_is_cancelled_and_the_cluster_fails(
    root: Path, site: Site
) -> None:
    cluster(root)
    site.lists("PENDING", "DependencyNeverSatisfied")
    view = Clusters(root).get("mine")
    assert view.phase is Phase.FAILED
    assert "What it depends on failed" in view.reason
    assert site.calls("scancel") >= 1


def test_one_bad_listing_is_no_proof_and_silence_is_none_at_all(root: Path, site: Site) -> None:
    directory = cluster(root)
    clusters = Clusters(root)
    site.say("squeue", code=1)
    for _ in range(3):
        assert clusters.get("mine").phase is Phase.PENDING
        ask_again(directory)
    site.say("squeue")
    assert clusters.get("mine").phase is Phase.PENDING
    ask_again(directory)
    view = clusters.get("mine")
    assert view.phase is Phase.FAILED
    assert "ended before the scheduler was up" in view.reason


def test_a_head_s_job_without_proof_of_its_end_is_cancelled_after_two_minutes(
    root: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = cluster(root)
    site.shows("")
    clusters = Clusters(root)
    for _ in range(4):
        assert clusters.get("mine").phase is Phase.PENDING
        ask_again(directory)
    view = clusters.get("mine")
    ask_again(directory)
    assert "not in Slurm's listing since " in view.reason
    assert view.reason.endswith("; asking again.")
    assert site.calls("scancel") == 0
    known = directory.read_headjob()
    assert known is not None
    directory.write_headjob(replace(known, missing_since=time.time() - SECONDS_UNTIL_UNPROVED))
    ask_again(directory)
    monkeypatch.setattr(Slurm, "hurry_seconds", 0.0)
    view = clusters.get("mine")
    assert view.phase is Phase.FAILED
    assert "nothing proves that it has ended; it was cancelled" in view.reason
    assert "To end them now: scancel 70_0" in view.reason
    assert site.calls("scancel") > 1
    [told] = clusters.orphans()
    assert "job 70_0" in told


def test_a_head_s_job_that_a_listing_lacks_and_that_is_there_is_waited_for(
    root: Path, site: Site
) -> None:
    directory = cluster(root)
    told = f"JobId=70 JobName={heads_mark(ID)} JobState=PENDING Reason=Priority ExitCode=0:0"
    site.shows("", told)
    for _ in range(4):
        view = Clusters(root).get("mine")
        assert (view.phase, view.workers.pending) == (Phase.PENDING, 1)
        ask_again(directory)
    known = directory.read_headjob()
    assert known is not None
    assert known.missing == 0


def test_an_empty_listing_with_words_of_an_error_is_no_answer(root: Path, site: Site) -> None:
    directory = cluster(root)
    site.say("squeue", error="slurm_load_jobs error: the database is down")
    for _ in range(4):
        view = Clusters(root).get("mine")
        assert (view.phase, view.workers.pending) == (Phase.PENDING, 1)
        ask_again(directory)
    assert site.calls("scontrol") == 0  # without an answer no job is missing


def test_a_job_whose_submission_was_not_answered_is_found_by_its_mark(
    root: Path, site: Site
) -> None:
    cluster(root, id="")
    site.lists("PENDING", id="81_0")
    assert Clusters(root).jobs("mine")[0].id == "81_0"


def test_a_job_that_cannot_be_read_may_be_the_one_whose_submission_was_not_answered(
    root: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slurm, "parse_status", lambda self, result: {UNREAD.id: UNREAD})
    cluster(root, id="", age=head_job.LOST_SECONDS + 10)
    assert Clusters(root).get("mine").phase is Phase.PENDING


def test_a_head_on_another_host_lives_while_its_lease_is_fresh(root: Path, site: Site) -> None:
    cluster(root, head=ELSEWHERE)
    assert Clusters(root).get("mine").phase is Phase.RUNNING
    assert site.calls("squeue") == 0


def test_a_head_that_has_begun_and_said_nothing_yet_is_starting(root: Path, site: Site) -> None:
    directory = cluster(root)
    directory.process_file.write_text(json.dumps(to_json(this_process())))
    view = Clusters(root).get("mine")
    assert (view.phase, view.words) == (Phase.STARTING, "its scheduler's job has begun")


def test_a_head_that_is_silent_is_unreachable_until_its_job_has_ended(
    root: Path, site: Site
) -> None:
    directory = cluster(root, head=ELSEWHERE)
    lapse(directory)
    site.lists("RUNNING")
    clusters = Clusters(root)
    assert clusters.get("mine").phase is Phase.UNREACHABLE
    ask_again(directory)
    site.lists("TIMEOUT")
    view = clusters.get("mine")
    assert view.phase is Phase.FAILED
    assert "reached its walltime" in view.reason
    assert "with the scheduler (timeout)" in view.reason


def test_a_waiting_head_whose_batch_system_is_silent_is_not_called_stopped(
    root: Path, site: Site
) -> None:
    cluster(root)
    site.say("squeue", code=1)
    clusters = Clusters(root)
    with pytest.raises(BackendUnavailable, match="still waits for its scheduler's job"):
        clusters.stop("mine")
    assert clusters.get("mine").phase is Phase.PENDING
    site.say("squeue")
    assert clusters.stop("mine").phase is Phase.STOPPED


def test_the_last_words_of_a_job_are_found_wherever_they_stand(root: Path) -> None:
    directory = cluster(root)
    job = replace(directory.read_record().jobs[0], state=JobState.FAILED, exit_code=1, ended=1.0)
    (directory.logs / "head.log").write_text("ok\nModuleNotFoundError: No module named 'dask'\n")
    words = head_job.end_reason(directory, directory.read_record(), job)
    assert words.startswith("Its scheduler's job 70_0 ended before the scheduler was up (failed).")
    assert "Exit code 1." in words
    assert "No module named 'dask'" in words


def test_of_a_slow_start_why_shows_only_the_last_event(root: Path, site: Site) -> None:
    directory = cluster(root, head=ELSEWHERE)
    job = f"{heads_mark(ID)}_0"
    for words in ("in environment.prologue", "importing distributed"):
        directory.append_event(Event(time.time(), "slow", f"{job} hangs: {words}", job))
    told = Clusters(root).why("mine")
    assert told.count(f"{job} hangs") == 1
    assert "importing distributed" in told
