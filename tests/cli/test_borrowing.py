"""A cluster that is there is used with the workers that are needed, and left as it was found."""

from __future__ import annotations

from contextlib import suppress
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

NONE = WorkerCounts()


class Desk:
    """A terminal that remembers what it said, and each target that was set."""

    def __init__(self, **view: Any) -> None:
        self.clusters = InMemoryClusters(a_view("alpha", **view))
        self.err = StringIO()
        self.targets: list[Target] = []
        update = self.clusters.update

        def remembered(name: str, *, target: Target) -> Any:
            self.targets.append(target)
            return update(name, target=target)

        self.clusters.update = remembered  # type: ignore[method-assign]
        self.terminal = Terminal(out=StringIO(), err=self.err)
        self.terminal.clusters = cast("Clusters", self.clusters)


def test_a_cluster_with_enough_workers_is_taken_as_it_is() -> None:
    desk = Desk()
    with borrowed("alpha", 2, desk.terminal) as view:
        assert view.name == "alpha"
    assert desk.targets == []
    assert desk.err.getvalue() == ""


def test_missing_workers_are_waited_for_and_that_is_said() -> None:
    desk = Desk(workers=NONE)
    with borrowed("alpha", 2, desk.terminal):
        pass
    assert desk.targets == []
    assert "waiting for 2 workers of cluster alpha; 0 are ready" in desk.err.getvalue()


@pytest.mark.parametrize("workers, asked, kept", [(None, 0, 1), (None, 3, 3), (2, 0, 2), (4, 3, 4)])
def test_one_that_follows_the_load_keeps_its_number_meanwhile(
    workers: int | None, asked: int, kept: int
) -> None:
    desk = Desk(target=Target(0, 4), workers=WorkerCounts(asked=asked, ready=asked))
    with suppress(KeyboardInterrupt), borrowed("alpha", workers, desk.terminal):
        assert desk.targets == [Target(kept, kept)]
        raise KeyboardInterrupt
    assert desk.targets == [Target(kept, kept), Target(0, 4)]
    assert "follows the load" in desk.err.getvalue()


@pytest.mark.parametrize("target", [Target(0, 1), Target(1, 1), Target(0, 0)])
def test_one_that_will_never_have_so_many_is_refused_with_the_fix(target: Target) -> None:
    desk = Desk(target=target)
    with (
        pytest.raises(InvalidInput, match=r"at most \d worker") as caught,
        borrowed("alpha", 2, desk.terminal),
    ):
        raise AssertionError
    assert "scale alpha --workers 2" in caught.value.hint
    assert desk.targets == []


@pytest.mark.parametrize("phase", [Phase.STOPPED, Phase.STOPPING, Phase.FAILED])
def test_one_that_is_over_is_refused(phase: Phase) -> None:
    desk = Desk(phase=phase)
    with pytest.raises(ClusterConflict), borrowed("alpha", None, desk.terminal):
        raise AssertionError
