"""The rules of the simulated site, on a clock that the tests push."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.head.simulator import site as site_rules
from jupyter_gpucluster.head.simulator.site import Refusal, Site, SiteJob
from jupyter_gpucluster.host.processes import start_time

ME = (os.getpid(), start_time(os.getpid()) or 0)
OTHER = (1, 1)


def script(**asked: object) -> str:
    return "#!/bin/sh\n" + "".join(f"#DEMO --{name}={value}\n" for name, value in asked.items())


class Play:
    """A site and its clock."""

    def __init__(self) -> None:
        self.site = Site()
        self.begun = self.site.now()

    def submit(self, mark: str = "gpc-a-1", count: int = 1, **asked: object) -> None:
        self.site = site_rules.submit(self.site, mark, count, script(**asked), ME)
        self.push(0)

    def push(self, seconds: float) -> None:
        self.site = replace(self.site, pushed=self.site.pushed + seconds)
        self.site = site_rules.advance(self.site, self.site.now())

    def job(self, id: str = "gpc-a-1_0") -> SiteJob:
        job = self.site.find(id)
        assert job is not None
        return job

    def states(self) -> list[str]:
        return [job.state for job in self.site.jobs]


@pytest.fixture
def play() -> Play:
    return Play()


def test_a_job_waits_for_its_turn_then_for_gpus_then_runs(play: Play) -> None:
    play.submit(queue="batch", gpus=4)
    told = [play.job().reason]
    for _ in range(2):
        play.push(25)
        told.append(play.job().reason)
    assert told == ["priority", "resources", ""]
    assert (play.job().state, play.job().placed) == ("running", ("demo01",))


def test_gpus_that_one_cluster_holds_are_busy_for_the_next(play: Play) -> None:
    play.submit("gpc-a-1", 3, queue="batch", gpus=4)
    play.submit("gpc-b-1", 1, queue="debug", gpus=4)
    play.push(60)
    assert play.states() == ["running", "running", "running", "pending"]
    assert play.job("gpc-b-1_0").reason == "resources"
    play.site = site_rules.cancel(play.site, ["gpc-a-1_1"])
    play.push(0)
    assert play.job("gpc-b-1_0").state == "pending", "its processes are not gone yet"
    play.site = site_rules.finish(play.site, "gpc-a-1_1", 0)
    play.push(0)
    assert play.job("gpc-b-1_0").placed == ("demo02",)
    assert play.job("gpc-a-1_1").outcome == "cancelled"


def test_nobody_holds_more_of_a_queue_than_one_user_may(play: Play) -> None:
    play.submit(count=5, queue="debug", gpus=2)
    play.push(10)
    assert play.states() == ["running"] * 4 + ["pending"]
    assert play.job("gpc-a-1_4").reason == "limit"


def test_the_tasks_of_an_array_are_jobs_of_their_own(play: Play) -> None:
    play.submit(count=2, queue="debug", gpus=1)
    play.site = site_rules.cancel(play.site, ["gpc-a-1_1"])
    play.push(10)
    assert play.states() == ["running", "over"]


def test_walltime_ends_a_job(play: Play) -> None:
    play.submit(queue="debug", gpus=1, walltime="00:10:00")
    play.push(5)
    play.push(599)
    assert play.job().state == "running"
    play.push(2)
    assert play.job().state == "ending"
    play.site = site_rules.finish(play.site, "gpc-a-1_0", 0)
    assert (play.job().state, play.job().outcome) == ("over", "timeout")


def test_a_preempted_job_waits_again_and_runs_once_more_undisturbed(play: Play) -> None:
    play.submit(queue="preempt", gpus=1)
    play.push(5)
    play.push(50)
    assert (play.job().state, play.job().outcome) == ("ending", "preempted")
    play.site = site_rules.finish(play.site, "gpc-a-1_0", -15)
    play.push(0)
    assert (play.job().state, play.job().reason, play.job().placed) == ("pending", "preempted", ())
    play.push(5)
    play.push(500)
    assert (play.job().state, play.job().restarts) == ("running", 1)


def test_a_node_takes_its_jobs_along_and_is_repaired(play: Play) -> None:
    play.submit(queue="debug", gpus=4)
    play.push(5)
    play.site = site_rules.fail_node(play.site, "demo01", 100)
    play.push(0)
    assert (play.job().state, play.job().outcome) == ("ending", "node_fail")
    play.site = site_rules.finish(play.site, "gpc-a-1_0", -9)
    assert play.job().state == "over"
    play.submit("gpc-a-2", queue="debug", gpus=4)
    play.push(5)
    assert play.job("gpc-a-2_0").placed == ("demo02",)
    play.push(100)
    assert not play.site.down


def test_a_job_that_only_broken_nodes_could_run_says_so(play: Play) -> None:
    for node in ("demo01", "demo02", "demo03"):
        play.site = site_rules.fail_node(play.site, node)
    play.submit(queue="debug", gpus=4)
    play.push(5)
    assert play.job().reason == "down"


def test_a_job_over_two_nodes_holds_gpus_of_both(play: Play) -> None:
    play.submit(queue="debug", gpus=6, nodes=2)
    play.push(5)
    assert play.job().placed == ("demo01", "demo02")
    assert site_rules.free_gpus(play.site.jobs)["demo02"] == 1


@pytest.mark.parametrize("code, outcome", [(0, "done"), (2, "failed"), (None, "failed")])
def test_a_job_that_ends_by_itself_says_how(play: Play, code: int | None, outcome: str) -> None:
    play.submit(queue="debug", gpus=1)
    play.push(5)
    play.site = site_rules.finish(play.site, "gpc-a-1_0", code)
    assert (play.job().outcome, play.job().exit_code) == (outcome, code)


@pytest.mark.parametrize(
    "asked, words",
    [
        ({"queue": "nosuch"}, "invalid queue specified: nosuch"),
        ({"account": "expired2019"}, "has no hours left"),
        ({"queue": "debug", "walltime": "08:00:00"}, "exceeds the limit 00:30:00 of queue debug"),
        ({"gpus": 5}, "no 1 nodes of queue debug have 5 GPUs"),
        ({"gpus": "many"}, "invalid request"),
        ({"walltime": "1d"}, "invalid request"),
        ({"constraint": "a100"}, "unrecognized option '--constraint'"),
    ],
)
def test_refusals_have_words(play: Play, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        play.submit(**asked)


def test_the_site_is_one_private_file_that_survives_its_writers(tmp_path: Path) -> None:
    file = site_rules.site_file(tmp_path / "clusters")
    with site_rules.opened(file) as site:
        site[0] = site_rules.submit(site[0], "gpc-a-1", 1, script(gpus=1), ME)
        site[0] = site_rules.submit(site[0], "gpc-b-1", 1, script(gpus=1), OTHER)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with site_rules.opened(file) as site:
        assert [job.id for job in site[0].jobs] == ["gpc-a-1_0"], "the other job server is dead"
    file.write_text(json.dumps({"jobs": "nonsense"}))
    with site_rules.opened(file) as site:
        assert site[0] == Site()


def test_what_is_free_is_told_without_making_a_site(tmp_path: Path) -> None:
    file = site_rules.site_file(tmp_path / "clusters")
    assert site_rules.capacity(file) == (14, 16)
    assert not file.exists()
    with site_rules.opened(file) as site:
        site[0] = site_rules.fail_node(site[0], "demo01")
    assert site_rules.capacity(file) == (10, 16)


def test_a_job_server_forgets_its_jobs_but_for_the_last_that_ended(play: Play) -> None:
    play.submit(count=4, queue="debug", gpus=1)
    play.site = site_rules.cancel(play.site, [f"gpc-a-1_{number}" for number in range(3)])
    assert [j.id for j in site_rules.forget(play.site, ME, kept=1).jobs] == [
        "gpc-a-1_2",
        "gpc-a-1_3",
    ]
    assert site_rules.forget(play.site, ME).jobs == ()
