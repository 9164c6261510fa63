"""Answers of a head while its loop waits for a batch system."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from jupyter_gpucluster.core.cluster import Phase, Target, heads_mark
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.head import http_api
from jupyter_gpucluster.head.http_api import Cluster, droppable, with_requests
from jupyter_gpucluster.head.reconcile.model import Observation
from jupyter_gpucluster.head.summary import summarise

from .world import a_record


def test_a_request_is_answered_before_the_loop_has_seen_it() -> None:
    before = replace(a_record(), phase=Phase.RUNNING, target=Target(2, 2))
    summary = summarise(before, Observation(), 100.0)
    asked = replace(before, name="renamed", target=Target(4, 4))
    told = with_requests(summary, asked)
    assert (told.name, told.target, told.phase) == ("renamed", Target(4, 4), Phase.RUNNING)
    stopped = replace(asked, stop_requested=110.0, reason="You stopped it.")
    told = with_requests(summary, stopped)
    assert (told.phase, told.words, told.phase_since) == (Phase.STOPPING, "stopping", 110.0)
    ending = summarise(replace(stopped, phase=Phase.STOPPING), Observation(), 120.0)
    assert with_requests(ending, stopped) == ending


def test_only_own_jobs_without_the_head_can_be_given_back_and_none_of_a_range() -> None:
    record = a_record()
    own, head, other = (Job(mark, 0, JobState.RUNNING, id=mark) for mark in ("a", "b", "c"))
    head = replace(head, mark=heads_mark(record.id))
    jobs = (own, head, replace(other, group="readers"))
    record = replace(record, spec=replace(record.spec, in_job=True), jobs=jobs)
    assert droppable(record) == {own.key: own}
    assert droppable(replace(record, target=Target(0, 2))) == {}


def test_a_restart_that_takes_long_is_answered_before_and_its_error_is_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_api, "RESTART_SECONDS", 0.01)

    async def play() -> None:
        go_on = asyncio.Event()

        async def restart_workers(addresses: list[str], **options: object) -> None:
            await go_on.wait()
            raise OSError("no nanny at tcp://a")

        workers = {"tcp://a": SimpleNamespace(address="tcp://a", name="gpc-1-1_0")}
        service = SimpleNamespace(
            scheduler=SimpleNamespace(workers=workers, restart_workers=restart_workers),
            watch=SimpleNamespace(restarted=set()),
            files=SimpleNamespace(events=[]),
            restarts=set(),
        )
        handler = Cluster.__new__(Cluster)
        handler.initialize(service)  # type: ignore[arg-type]
        async with asyncio.timeout(20):
            await handler.restart("gpc-1-1_0")
            [task] = service.restarts
            assert (task.done(), service.watch.restarted) == (False, {"gpc-1-1_0"})
            go_on.set()
            await task
        [event] = service.files.events
        assert event.message == "Worker gpc-1-1_0 was not restarted: no nanny at tcp://a"
        assert (event.job, service.restarts) == ("gpc-1-1_0", set())

    asyncio.run(play())
