"""A head's lease while commands of a batch system take long."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed.core import Status

from jupyter_gpucluster.batch.pbs import Pbs
from jupyter_gpucluster.core.cluster import Record, Spec, Target
from jupyter_gpucluster.core.job import CommandResult
from jupyter_gpucluster.head import service
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory

ID = "41.login1"


class Slow:
    """Stands in for a PBS that answers after a second."""

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        await asyncio.sleep(1)
        return CommandResult(tuple(argv), 0, "{}")


class Answered(Exception):
    """Ends the turn with the answer."""


async def test_the_lease_is_renewed_while_a_command_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def observe(now: float) -> None:
        raise Answered(await head.queue.cancel([ID]))

    monkeypatch.setattr(service, "LEASE_SECONDS", 0.1)
    directory = ClusterDirectory(tmp_path / "abc123")
    directory.create()
    directory.renew_lease()
    os.utime(directory.lease, (0, 0))
    spec = Spec(profile="p", title="P", backend="pbs", python="python")
    record = Record("abc123", "c", spec, Target(1, 1), created=time.time())
    head = service.Service(directory, record, Slow())
    # `run` sets these up before the first turn.
    monkeypatch.setattr(head, "scheduler", SimpleNamespace(status=Status.running), raising=False)
    monkeypatch.setattr(head, "removal", SimpleNamespace(done=bool), raising=False)
    monkeypatch.setattr(head, "observe", observe)
    with pytest.raises(Answered) as caught:
        await head.turn()
    assert caught.value.args == (CommandResult(tuple(Pbs().cancel([ID])), 0, "{}"),)
    assert time.time() - directory.lease.stat().st_mtime < 1
