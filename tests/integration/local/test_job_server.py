"""The local batch system alone: long answers, late answers, and a server that does not start."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import queue as queue_module
from jupyter_gpucluster.batch.local import Local
from jupyter_gpucluster.batch.queue import JobServerRunner, Queue
from jupyter_gpucluster.core.errors import BackendError
from jupyter_gpucluster.core.job import FINAL, Submission
from jupyter_gpucluster.launch.spawning import HEAD

JOBS = 290
"""Their status is longer than the 64 KiB that asyncio takes by default."""


@asynccontextmanager
async def job_server(home: Path) -> AsyncIterator[tuple[Queue, JobServerRunner]]:
    (home / "logs").mkdir()

    def command(channel: int) -> list[str]:
        argv = [sys.executable, "-P", str(HEAD), "jobs", "--channel", str(channel)]
        return [*argv, "--logs", str(home / "logs"), "--scratch", str(home / "scratch")]

    runner = JobServerRunner(command, os.environ)
    try:
        yield Queue(Local(), runner), runner
    finally:
        await runner.close()


async def finished(queue: Queue) -> int:
    """Wait until all jobs are over; return how many there are."""
    while True:
        listing = await queue.poll([])
        assert listing is not None
        if all(job.state in FINAL for job in listing.values()):
            return len(listing)
        await asyncio.sleep(0.1)


def write_job(home: Path, text: str) -> str:
    (home / "job.sh").write_text(f"#!/bin/sh\n{text}\n")
    return str(home / "job.sh")


def test_hundreds_of_jobs_are_listed(home: Path) -> None:
    async def run() -> int:
        async with job_server(home) as (queue, _):
            ids = await queue.submit(Submission("gpc-aaaaaa-1", write_job(home, "exit 0"), JOBS))
            assert len(ids) == JOBS
            return await asyncio.wait_for(finished(queue), 60)

    assert asyncio.run(run()) == JOBS


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with job_server(home) as (queue, runner):
            assert await queue.poll([]) == {}
            os.kill(runner.process.pid, signal.SIGSTOP)
            monkeypatch.setattr(queue_module, "COMMAND_SECONDS", 0.3)
            assert await queue.poll([]) is None
            os.kill(runner.process.pid, signal.SIGCONT)
            monkeypatch.setattr(queue_module, "COMMAND_SECONDS", 30)
            ids = await queue.submit(Submission("gpc-aaaaaa-1", write_job(home, "sleep 60"), 2))
            assert ids == ("gpc-aaaaaa-1_0", "gpc-aaaaaa-1_1")
            listing = await queue.poll([])
            assert listing is not None
            assert set(listing) == set(ids)

    asyncio.run(run())


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)"])
def test_a_job_server_that_ends_at_once_is_a_refusal_not_silence(home: Path, code: str) -> None:
    command: Callable[[int], list[str]] = lambda channel: [sys.executable, "-c", code]  # noqa: E731

    async def run() -> None:
        runner = JobServerRunner(command, os.environ)
        with pytest.raises(BackendError) as caught:
            await Queue(Local(), runner).submit(Submission("gpc-aaaaaa-1", "/none"))
        assert "times in a row" in caught.value.detail
        assert await Queue(Local(), runner).poll([]) is None
        await runner.close()

    asyncio.run(run())
