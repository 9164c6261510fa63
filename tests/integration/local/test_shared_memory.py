"""The workers of a local cluster share this machine's memory, however many there are."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from distributed import Client

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Target
from jupyter_gpucluster.core.errors import InvalidInput, LimitReached
from jupyter_gpucluster.host.hardware import usable_memory
from jupyter_gpucluster.state.view import ClusterView
from tests.waiting import workers_of

from .conftest import Start, WriteProfile
from .driving import client_of, fixed, live_jobs, until
from .tasks import double_slowly, hold_the_interpreter, process_id, sent_whole

MACHINE = usable_memory()
GIB = 2**30


@sent_whole
def limits_of_worker(dask_worker: Any) -> tuple[int, float, float]:
    """Return the limit, and what distributed has settled by it."""
    manager = dask_worker.memory_manager
    transfer = dask_worker.state.transfer_incoming_bytes_limit
    return manager.memory_limit, manager.data.fast.n, transfer


@sent_whole
def memory_of_worker(dask_worker: Any) -> int:
    return int(dask_worker.monitor.get_process_memory())


@sent_whole
def a_block(size: int) -> bytearray:
    block = bytearray(size)
    block[::4096] = b"x" * len(block[::4096])
    return block


@sent_whole
def hold_a_block(size: int, seconds: float) -> int:
    """Use memory that nothing can write to disk."""
    block = a_block(size)
    time.sleep(seconds)
    return len(block)


def limits(client: Client) -> list[int]:
    """Return the limits of the workers that answer; others may be leaving."""
    answers = client.run(limits_of_worker, on_error="return").values()
    return [answer[0] for answer in answers if isinstance(answer, tuple)]


@contextmanager
def sums_of_limits(view: ClusterView, clusters: Clusters) -> Iterator[list[int]]:
    """Add up the limits again and again: those of the workers, and those that users see."""
    over, sums = threading.Event(), []

    def watch() -> None:
        with client_of(view) as client:
            while not over.is_set():
                sums.append(sum(limits(client)))
                sums.append(clusters.get(view.id).memory_limit)
                time.sleep(0.02)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sums
    finally:
        over.set()
        thread.join()


def test_limits_fall_before_workers_come_and_rise_when_some_have_gone(
    clusters: Clusters, start: Start
) -> None:
    view = start(workers=2)
    with client_of(view) as client, sums_of_limits(view, clusters) as sums:
        assert limits(client) == [MACHINE // 2] * 2
        before = set(client.run(process_id).values())
        data = client.scatter(list(range(100)))
        running = client.map(double_slowly, range(2), seconds=6, pure=False)
        until(lambda: sum(map(len, client.processing().values())) == 2)

        clusters.update(view.id, target=fixed(3))
        clusters.wait_ready(view.id, timeout=60)
        assert until(lambda: limits(client) == [MACHINE // 3] * 3)
        assert before < set(client.run(process_id).values())
        assert clusters.get(view.id).memory_limit == MACHINE // 3 * 3
        [(limit, target, transfer)] = set(client.run(limits_of_worker).values())
        assert (target, transfer) == (int(limit * 0.6), int(limit * 0.1))

        clusters.update(view.id, target=fixed(2))
        until(lambda: len(live_jobs(clusters, view)) == 2)
        assert until(lambda: limits(client) == [MACHINE // 2] * 2)
        assert client.gather(running) == [0, 2]
        assert client.gather(data) == list(range(100))
    assert len(sums) > 20
    assert max(sums) <= MACHINE


def test_an_adaptive_cluster_shares_the_memory_too(clusters: Clusters, start: Start) -> None:
    view = start(target=Target(1, 3))
    with client_of(view) as client, sums_of_limits(view, clusters) as sums:
        assert limits(client) == [MACHINE]
        done = client.map(double_slowly, range(60), seconds=0.3, pure=False)
        until(lambda: len(workers_of(client)) > 1, 60)
        assert client.gather(done) == [2 * number for number in range(60)]
        del done
        until(lambda: limits(client) == [MACHINE], 60)
    assert max(sums) <= MACHINE


def test_no_worker_starts_into_memory_that_another_uses(
    clusters: Clusters, write_profile: WriteProfile, start: Start
) -> None:
    view = start(write_profile("shares", "job: {memory: 2 GiB}"), 1)
    with client_of(view) as client:
        assert limits(client) == [2 * GIB]
        holds = client.submit(hold_a_block, 6 * GIB // 5, 8, pure=False)
        until(lambda: max(client.run(memory_of_worker).values()) > GIB)
        clusters.update(view.id, target=fixed(2))
        reason = until(lambda: clusters.get(view.id).reason)
        [job] = live_jobs(clusters, view)
        assert reason == f"More workers start when {job.id} uses less than 972.7 MiB of memory."
        assert not holds.done()
        assert holds.result() == 6 * GIB // 5
        clusters.wait_ready(view.id, timeout=60)
        assert until(lambda: limits(client) == [GIB, GIB])
        until(lambda: not clusters.get(view.id).reason)


def test_results_above_the_lower_limit_go_to_disk(
    clusters: Clusters, write_profile: WriteProfile, start: Start
) -> None:
    view = start(write_profile("shares", "job: {memory: 2 GiB}"), 1)
    with client_of(view) as client:
        blocks = client.map(a_block, [GIB // 10 + n for n in range(11)], pure=False)
        until(lambda: all(block.done() for block in blocks))
        before = client.run(process_id)
        clusters.update(view.id, target=fixed(2))
        clusters.wait_ready(view.id, timeout=60)
        assert before.items() <= client.run(process_id).items()
        sizes = client.gather(client.map(len, blocks))
        assert sizes == [GIB // 10 + n for n in range(11)]


def test_workers_that_do_not_answer_are_waited_for(clusters: Clusters, start: Start) -> None:
    view = start(workers=1)
    with client_of(view) as client:
        busy = client.submit(hold_the_interpreter, 8, pure=False)
        until(lambda: sum(map(len, client.processing().values())) == 1)
        time.sleep(0.5)
        clusters.update(view.id, target=fixed(2))
        reason = until(lambda: clusters.get(view.id).reason)
        assert "answers and takes less memory" in reason
        busy.result()
        clusters.wait_ready(view.id, timeout=60)
        assert until(lambda: limits(client) == [MACHINE // 2] * 2)


def test_more_workers_than_the_memory_holds_are_refused(clusters: Clusters, start: Start) -> None:
    most = MACHINE // (512 * 2**20)
    with pytest.raises(LimitReached, match="a worker needs 512 MiB") as caught:
        clusters.start("local", target=fixed(most + 1))
    assert caught.value.hint == f"Ask for {most} or fewer."
    view = start()
    for target in (fixed(most + 1), Target(0, most + 1)):
        with pytest.raises(LimitReached, match="a worker needs 512 MiB"):
            clusters.update(view.id, target=target)
    assert clusters.get(view.id).target == fixed(1)


def test_a_limit_above_the_machine_s_memory_is_refused(clusters: Clusters) -> None:
    with pytest.raises(InvalidInput, match=r"90\.9 TiB: this machine has") as caught:
        clusters.start("local", options={"memory": "100 TB"}, target=fixed(1))
    assert caught.value.detail == "options.memory"
    half = str(MACHINE // 2)
    with pytest.raises(LimitReached, match=r"3 workers with .* each need .* are available"):
        clusters.start("local", options={"memory": half}, target=fixed(3))
    assert clusters.list() == []


def test_a_limit_under_a_nanny_cannot_change(
    clusters: Clusters, write_profile: WriteProfile, start: Start
) -> None:
    nannies = write_profile("nannies", "workers: {resources: {big: 1}}")
    view = start(nannies, 2)
    with pytest.raises(LimitReached, match=r"3 workers with .* each need .* are available"):
        clusters.update(view.id, target=fixed(3))
    assert clusters.get(view.id).target == fixed(2)
    assert clusters.get(view.id).memory_limit <= MACHINE
