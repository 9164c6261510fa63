"""The process of a job: a worker without a nanny, or dask-cuda's with its own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import runpy
import signal
import sys
from pathlib import Path
from typing import NoReturn

import dask
from distributed import Worker
from distributed.security import Security

TAKE_LIMIT = "gpucluster_take_memory_limit"
"""By this name the head tells a worker another memory limit."""
CLOSE_SECONDS = 2.0
"""Time for a worker's goodbye; the job server waits a little longer."""


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the worker's command line, a part of ``dask worker``'s."""
    parser = argparse.ArgumentParser(prog="worker")
    parser.add_argument("scheduler")
    parser.add_argument("--name", required=True)
    parser.add_argument("--nthreads", type=int, default=1)
    parser.add_argument("--memory-limit", type=int, default=0)
    parser.add_argument("--local-directory")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--tls-directory", type=Path)
    parser.add_argument("--death-timeout", type=float, default=60.0)
    return parser.parse_args(argv)


def security_of(tls: Path, role: str) -> Security:
    """Return what a ``scheduler`` or ``worker`` shows and demands."""
    files = {
        f"tls_{side}_{part}": str(tls / f"{role}-{part}.pem")
        # Each also calls workers, as a client of theirs.
        for side in (role, "client")
        for part in ("cert", "key")
    }
    return Security(require_encryption=True, tls_ca_file=str(tls / "ca.pem"), **files)


class MemoryLimit:
    """Gives a running worker another memory limit; what is above it goes to disk by and by."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.newest = 0

    def take(self, limit: int, number: int) -> None:
        """Take a limit, unless a newer one has come before.

        ``memory_monitor`` reads the limit at each look (0.1 s).  The other two are settled only
        when distributed makes a worker.
        """
        if number < self.newest:
            return
        self.newest = number
        manager = self.worker.memory_manager
        fast, target = getattr(manager.data, "fast", None), manager.memory_target_fraction
        if target and fast is not None:
            fast.n = int(limit * target)
        transfer = dask.config.get("distributed.worker.memory.transfer")
        if transfer is not False:
            self.worker.state.transfer_incoming_bytes_limit = int(limit * transfer)
        manager.memory_limit = limit


async def run(arguments: argparse.Namespace) -> None:
    """Work until the scheduler goes or SIGTERM comes."""
    tls = arguments.tls_directory
    worker = Worker(
        arguments.scheduler,
        name=arguments.name,
        nthreads=arguments.nthreads,
        memory_limit=arguments.memory_limit,
        local_directory=arguments.local_directory,
        host=arguments.host,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        death_timeout=arguments.death_timeout,
        security=security_of(tls, "worker") if tls is not None else None,
    )
    worker.handlers[TAKE_LIMIT] = MemoryLimit(worker).take
    loop = asyncio.get_running_loop()

    def close() -> None:
        task = loop.create_task(worker.close(timeout=CLOSE_SECONDS, executor_wait=False))
        task.add_done_callback(lambda _: None)

    loop.add_signal_handler(signal.SIGTERM, close)
    async with worker:
        await worker.finished()


def main(argv: list[str]) -> NoReturn:
    """Run a worker with this command line; never returns.

    Threads of running tasks would keep the interpreter from ending, so the process leaves by
    ``os._exit`` once the worker has said goodbye.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(name)s - %(message)s")
    # Fewer doors: nothing of ours reads the worker's own pages.
    dask.config.set({"distributed.worker.http.routes": []})
    code = 0
    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(run(parse(argv)))
    except Exception:
        logging.getLogger(__name__).exception("The worker ended")
        code = 1
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def run_dask_cuda(argv: list[str]) -> NoReturn:
    """Do what ``python -m dask_cuda.cli`` does, in a process that may have imported it."""
    # Its nannies start new interpreters, which import what is ``__main__`` here.
    sys.argv[1:] = argv
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_module("dask_cuda.cli", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    main(sys.argv[1:])
