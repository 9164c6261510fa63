"""The head as a process: its environment, its log, its end."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from ..errors import GpuClusterError
from ..processes import this_process
from ..records import Event, Phase, Record, to_json
from ..submission import JobServerRunner, ProcessRunner, Runner
from ..store import ClusterDirectory, check_private, write_private

HERE = Path(__file__).resolve().parent / "__main__.py"


def main(argv: list[str]) -> None:
    """Run the head of the cluster in ``--directory``."""
    parser = argparse.ArgumentParser(prog="head")
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    arguments = parser.parse_args(argv)
    os.umask(0o077)
    detach()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s"
    )
    directory = ClusterDirectory(arguments.directory)
    check_private(directory.path)
    # Until the head is on record this tells whether it still lives.
    write_private(directory.process_file, json.dumps(to_json(this_process())).encode())
    record = directory.read_record()
    sys.exit(asyncio.run(serve(directory, record, arguments.scratch)))


def detach() -> None:
    """Leave the starter: its child ends here and now, so it keeps no zombie of the head."""
    if os.fork():
        os._exit(0)
    os.setsid()


async def serve(directory: ClusterDirectory, record: Record, scratch: Path) -> int:
    """Run the cluster to its end; whatever happens, the record tells it."""
    # Before distributed is imported here: the job server's imports then go on beside ours.
    runner = make_runner(directory, record, scratch)
    from .service import Service, clean_up

    service = Service(directory, record, runner)
    try:
        await service.run()
        code = 0
    except Exception as error:
        logging.getLogger(__name__).exception("The head failed")
        told = error.message if isinstance(error, GpuClusterError) else repr(error)
        now = time.time()
        failed = replace(
            service.record,
            phase=Phase.FAILED,
            phase_since=now,
            ended=now,
            reason=f"The head failed: {told}",
        )
        directory.write_record(failed)
        directory.append_event(Event(now, "phase", f"failed: {failed.reason}"))
        code = 1
    if isinstance(runner, JobServerRunner):
        await runner.close()
    clean_up(directory, scratch)
    return code


def make_runner(directory: ClusterDirectory, record: Record, scratch: Path) -> Runner:
    """Return what runs the backend's commands."""
    spec = record.spec
    if spec.backend != "local":
        return ProcessRunner()

    def command(channel: int) -> list[str]:
        argv = [sys.executable, "-P", str(HERE), "jobs", "--channel", str(channel)]
        argv += ["--logs", str(directory.logs), "--scratch", str(scratch)]
        if spec.devices:
            argv += ["--devices", ",".join(spec.devices)]
        if spec.worker_argv:
            argv.append("--preload")
        return argv

    return JobServerRunner(command, {**os.environ, **spec.variables})
