"""A cluster that is there is used if it keeps the workers that are needed."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any, cast

import pytest

from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.cli.waiting import borrowed
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import ClusterConflict, InvalidInput
from jupyter_gpucluster.core.summary import WorkerCounts

from .doubles import InMemoryClusters, a_view

if TYPE_CHECKING:
    from jupyter_gpucluster.clusters import Clusters


def a_terminal(**view: Any) -> Terminal:
    terminal = Terminal(out=StringIO(), err=StringIO())
    terminal.clusters = cast("Clusters", InMemoryClusters(a_view("alpha", **view)))
    return terminal


@pytest.mark.parametrize("target", [Target(2, 2), Target(2, 4)])
def test_a_cluster_with_enough_workers_is_taken_as_it_is(target: Target) -> None:
    terminal = a_terminal(target=target)
    assert borrowed("alpha", 2, terminal).name == "alpha"
    assert cast("StringIO", terminal.err).getvalue() == ""


def test_missing_workers_are_waited_for_and_that_is_said() -> None:
    terminal = a_terminal(workers=WorkerCounts())
    assert borrowed("alpha", 2, terminal).workers.ready == 2
    said = cast("StringIO", terminal.err).getvalue()
    assert "waiting for 2 workers of cluster alpha; 0 are ready" in said


@pytest.mark.parametrize("target", [Target(0, 1), Target(1, 1), Target(0, 0), Target(1, 4)])
def test_one_that_may_have_fewer_is_refused_with_the_fix(target: Target) -> None:
    with pytest.raises(InvalidInput, match="2 are needed") as caught:
        borrowed("alpha", 2, a_terminal(target=target))
    assert "scale alpha --workers 2" in caught.value.hint


@pytest.mark.parametrize("phase", [Phase.STOPPED, Phase.STOPPING, Phase.FAILED])
def test_one_that_is_over_is_refused(phase: Phase) -> None:
    with pytest.raises(ClusterConflict):
        borrowed("alpha", None, a_terminal(phase=phase))
