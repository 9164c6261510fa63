"""Answers of a head while its loop waits for a batch system."""

from __future__ import annotations

from dataclasses import replace

from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.head.http_api import with_requests
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
