"""A head's lease while commands of a batch system take long."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupyter_gpucluster.batch.pbs import Pbs
from jupyter_gpucluster.core.cluster import Record, Spec, Target
from jupyter_gpucluster.core.job import CommandResult, Job, JobState
from jupyter_gpucluster.head import service
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory


class Slow:
    """Stands in for a PBS that answers after a second, and lists no job."""

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        await asyncio.sleep(1)
        return CommandResult(tuple(argv), 0, "{}")


async def test_the_lease_is_renewed_while_a_listing_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LEASE_SECONDS", 0.1)
    directory = ClusterDirectory(tmp_path / "abc123")
    directory.create()
    directory.renew_lease()
    os.utime(directory.lease, (0, 0))
    spec = Spec(profile="p", title="P", backend="pbs", python="python")
    job = Job("gpc-abc123-1", 0, JobState.RUNNING, id="41.login1")
    record = Record("abc123", "c", spec, Target(1, 1), created=time.time(), jobs=(job,))
    head = service.Service(directory, record, Slow())
    assert await head.with_lease(head.queue.cancel([job.id])) == CommandResult(
        tuple(Pbs().cancel([job.id])), 0, "{}"
    )
    age = directory.lease_age()
    assert age is not None
    assert age < 1
