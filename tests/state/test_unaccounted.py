"""Jobs of an ended cluster whose end nothing proves are asked about until something does."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.slurm import Slurm
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Record, Spec, Target
from jupyter_gpucluster.core.errors import ClusterConflict
from jupyter_gpucluster.core.job import Job, JobShape, JobState
from jupyter_gpucluster.core.summary import Summary
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.private_files import locked
from jupyter_gpucluster.state import unaccounted
from jupyter_gpucluster.state.reaper import record_death
from jupyter_gpucluster.state.unaccounted import ASKED, ask_now
from tests.commands import put_command

TAG = "gpc-abc123-1"
ENDED = 1_000_000.0
BY_HAND = "To end them now: scancel 7"
LISTED = f"7|RUNNING|None|node1|N/A|N/A|0|{TAG}"


class Site:
    """A Slurm whose squeue, scontrol and scancel are scripts that can be switched to false answers.

    Then squeue lists no job, scontrol knows no id, and scancel ends no job.
    """

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs, self.lies = tmp_path / "queue", tmp_path / "lies"
        self.jobs.write_text(f"{LISTED}\n")
        self.lies.touch()
        lying, here = f"[ -e {self.lies} ]", f"[ -s {self.jobs} ]"
        put_command(tmp_path, monkeypatch, "squeue", f"{lying} || cat {self.jobs}")
        denial = "echo slurm_load_jobs error: Invalid job id specified >&2; exit 1"
        put_command(
            tmp_path, monkeypatch, "scontrol", f"{lying} && exit 1; {here} && exit 1; {denial}"
        )
        put_command(tmp_path, monkeypatch, "sacct", "exit 1")
        self.cancels = put_command(
            tmp_path, monkeypatch, "scancel", f"{lying} && exit 0; : >{self.jobs}"
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(Slurm, "hurry_seconds", 0.0)
    return Site(tmp_path, monkeypatch)


class Clock:
    """The time of this process and of the file that notes the last question."""

    def __init__(self, directory: ClusterDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = ENDED
        self.asked: list[float] = []
        self.directory = directory
        monkeypatch.setattr("time.time", lambda: self.now)
        monkeypatch.setattr(subprocess, "run", self.run)
        monkeypatch.setattr(unaccounted, "note_time", self.note)

    def note(self, directory: ClusterDirectory) -> None:
        path = directory.path / ASKED
        path.touch(mode=0o600)
        os.utime(path, (self.now, self.now))

    def run(self, argv: list[str], **options: object) -> None:
        """Do at once what the process would do that a look starts."""
        assert argv[4:] == [
            sys.executable, "-P", "-m", unaccounted.__name__, str(self.directory.path)
        ]  # fmt: skip
        self.asked.append(self.now)
        ask_now(self.directory)


@pytest.fixture
def directory(tmp_path: Path) -> ClusterDirectory:
    (tmp_path / "clusters").mkdir(mode=0o700)
    made = ClusterDirectory(tmp_path / "clusters" / "abc123")
    made.create()
    return made


@pytest.fixture
def clock(directory: ClusterDirectory, site: Site, monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(directory, monkeypatch)
    leave(directory)
    return made


def leave(directory: ClusterDirectory, **changes: object) -> Record:
    """End a cluster of one job while the site lies."""
    spec = Spec("p", "P", "slurm", "python", job=JobShape(walltime=7200))
    job = Job(TAG, 0, JobState.RUNNING, id="7", submitted=1.0)
    record = Record("abc123", "c", spec, Target(1, 1), 1.0, Phase.RUNNING, jobs=(job,))
    directory.write_summary(
        Summary("abc123", "c", "p", Phase.RUNNING, 1.0, "", "", revision=0, written=1.0)
    )
    return record_death(directory, replace(record, **changes), "Killed.", Phase.STOPPED)  # type: ignore[arg-type]


@pytest.fixture
def clusters(directory: ClusterDirectory) -> Clusters:
    return Clusters(directory.path.parent)


def test_whoever_looks_has_it_asked_ever_more_seldom_until_there_is_proof(
    directory: ClusterDirectory, clock: Clock, clusters: Clusters, site: Site
) -> None:
    left = directory.read_record().unaccounted
    assert left is not None
    assert (left.ids, left.tags, left.command) == (("7",), (TAG,), "scancel 7")
    assert clusters.get("c").reason.endswith(BY_HAND)
    for _ in range(24 * 60):
        clock.now += 60
        clusters.list()  # a stopped cluster is not in it
    periods = [b - a for a, b in zip([ENDED, *clock.asked], clock.asked, strict=False)]
    assert periods == sorted(periods)
    assert (periods[0], periods[-1]) == (60, 3600)
    assert len(periods) < 35
    before = site.cancels.read_text().count("7")
    assert before > len(periods)
    site.lies.unlink()
    clock.now += 3600
    clusters.list()
    assert site.cancels.read_text().count("7") > before
    record, summary = directory.read_record(), directory.read_summary()
    assert summary is not None
    assert (record.unaccounted, record.phase, record.reason) == (None, Phase.STOPPED, "Killed.")
    assert (summary.unaccounted, summary.reason) == (False, "Killed.")
    assert record.jobs[0].ended is not None
    assert [event.message for event in directory.events()][-1].startswith(
        "The end of job 7 is proved."
    )
    asked = len(clock.asked)
    clock.now += 86400
    clusters.list(ended=True)
    assert len(clock.asked) == asked


@pytest.mark.parametrize("ended", [False, True])
def test_lists_of_a_server_ask_too(
    ended: bool, directory: ClusterDirectory, clock: Clock, clusters: Clusters, site: Site
) -> None:
    clusters.list(ended=ended)
    clusters.list(ended=ended)  # from its memory
    assert clock.asked == []
    site.lies.unlink()
    clock.now += 61
    clusters.list(ended=ended)
    assert clock.asked == [clock.now]
    assert directory.read_record().unaccounted is None
    told = clusters.list(ended=ended)
    assert [view.reason for view in told] == (["Killed."] if ended else [])


def test_the_file_that_a_job_leaves_at_its_end_is_proof_after_the_cluster_s(
    directory: ClusterDirectory, clock: Clock, clusters: Clusters
) -> None:
    (directory.path / "exit" / f"{TAG}_0").write_text("0\n")
    clusters.stop("c")
    assert directory.read_record().unaccounted is None
    assert not (directory.path / "exit").exists()


@pytest.mark.parametrize(
    "job,after,proved",
    [
        ({"started": ENDED - 600}, 7200 + 3600 - 601, False),
        ({"started": ENDED - 600}, 7200 + 3600 - 599, True),
        ({"started": None, "state": JobState.PENDING}, 10 * 86400, False),
        # Without an id, three listings and two minutes are all there is to ask.
        ({"id": "", "state": JobState.SUBMITTING}, 3600, True),
    ],
)  # fmt: skip
def test_time_is_proof_for_a_job_that_ran_and_for_one_without_an_id(
    job: dict[str, object], after: float, proved: bool,
    directory: ClusterDirectory, clock: Clock, clusters: Clusters,
) -> None:  # fmt: skip
    one = replace(Job(TAG, 0, JobState.RUNNING, id="7", submitted=1.0), **job)  # type: ignore[arg-type]
    leave(directory, jobs=(one,))
    for minutes in (60, 61, 0):
        clock.now += minutes
        clusters.stop("c")
    clock.now = ENDED + after
    clusters.stop("c")
    assert (directory.read_record().unaccounted is None) is proved


def test_stop_asks_at_once_and_only_one_process_asks(
    directory: ClusterDirectory, clock: Clock, clusters: Clusters, site: Site
) -> None:
    site.lies.unlink()
    with locked(directory.path / ASKED) as held:
        assert held
        assert clusters.stop("c").reason.endswith(BY_HAND)
    assert clusters.stop("c").reason == "Killed."


def test_forget_refuses_with_what_to_do_and_names_by_force_what_it_lets_go(
    directory: ClusterDirectory, clock: Clock, clusters: Clusters
) -> None:
    with pytest.raises(ClusterConflict, match="Nothing proves that job 7 of cluster c") as told:
        clusters.forget("c")
    for command in ("stop abc123", "scancel 7", "forget --force abc123"):
        assert command in told.value.hint
    assert clusters.forget("c", force=True).endswith(BY_HAND)
    assert not directory.path.exists()


def test_a_job_of_another_name_that_has_the_id_now_is_left_alone(
    directory: ClusterDirectory, clock: Clock, clusters: Clusters, site: Site
) -> None:
    site.jobs.write_text(LISTED.replace(TAG, "analysis"))
    site.cancels.unlink()
    site.lies.unlink()
    assert clusters.stop("c").reason == "Killed."
    assert not site.cancels.exists()


def test_a_look_does_not_wait_for_the_process_that_asks(
    directory: ClusterDirectory, site: Site, clusters: Clusters
) -> None:
    leave(directory)
    site.lies.unlink()
    os.utime(directory.path / "summary.json")
    unaccounted.ask_later(directory, 0.0)
    while directory.read_record().unaccounted is not None:
        pass
    assert directory.read_record().reason == "Killed."
