"""Data over UCX: really where its package is installed, and refused in words where it is not."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from jupyter_gpucluster.benchmark import run_benchmark, sending, table
from jupyter_gpucluster.benchmark.family import exchange_of
from jupyter_gpucluster.benchmark.options import Options
from jupyter_gpucluster.benchmark.workloads import Crew, Workload
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import UnsuitableEnvironment
from tests.waiting import workers_of

from .conftest import Start, WriteProfile
from .driving import client_of, ended, fixed, until

SIZE = (800, 800)


class SmallShuffle(Options):
    """Options of a shuffle that takes no time: UCX on two busy cores takes a lot of it."""

    def workload_for(self, crew: Crew) -> Workload:
        return exchange_of(SIZE, SIZE[0] // 4, gpu=False)


FAST = "network: {protocol: ucx}\n"

if importlib.util.find_spec("distributed_ucxx"):

    def test_workers_exchange_data_over_ucx_without_a_gpu(
        clusters: Clusters,
        start: Start,
        write_profile: WriteProfile,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(sending, "ROUNDS", 1)
        monkeypatch.setitem(sending.BYTES, "cpu", 10**6)
        view = start(write_profile("fast", FAST), workers=2)
        assert view.scheduler_address.startswith("ucx://127.0.0.1:")
        assert not view.encrypted
        with client_of(view) as client:
            workers = list(workers_of(client))
            assert all(address.startswith("ucx://") for address in workers)
            report = run_benchmark(client, SmallShuffle(device="cpu", workers=2))
            assert "data over ucx" in "\n".join(table(report))
            assert {link.giver for link in report.results[0].links} == set(names_of(client))
        clusters.stop(view.id)
        assert until(lambda: ended(clusters, view)).phase is Phase.STOPPED

    def names_of(client: Any) -> list[str]:
        return [str(w["name"]) for w in workers_of(client).values()]

else:

    def test_where_there_is_no_ucx_a_profile_may_fall_back_on_another_protocol(
        clusters: Clusters, start: Start, write_profile: WriteProfile
    ) -> None:
        name = write_profile("either", "network: {protocol: ucx, fallback: tls}\n")
        view = start(name, workers=1)
        assert view.scheduler_address.startswith("tls://127.0.0.1:")
        assert view.encrypted
        told = [event.message for event in clusters.events(view.id)]
        assert any(message.endswith("so tls is used instead of UCX") for message in told)

    def test_another_protocol_that_the_user_chose_is_no_fallback(
        clusters: Clusters, start: Start, write_profile: WriteProfile
    ) -> None:
        text = (
            FAST
            + "options: {protocol: {type: enum, choices: [tls, ucx], field: network.protocol}}\n"
        )
        view = start(write_profile("chosen", text), workers=1, options={"protocol": "tls"})
        told = [event.message for event in clusters.events(view.id)]
        assert not any("UCX" in message for message in told)

    def test_ucx_without_its_package_is_refused_before_anything_is_made(
        clusters: Clusters, write_profile: WriteProfile
    ) -> None:
        with pytest.raises(UnsuitableEnvironment, match="lacks distributed-ucxx") as refused:
            clusters.start(write_profile("fast", FAST), target=fixed(1))
        assert refused.value.detail == "python"
        assert clusters.list(ended=True) == []
