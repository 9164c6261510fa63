"""The head as a process: its environment, its log, its end."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from ..errors import GpuClusterError
from ..processes import end_heirs, this_process
from ..records import Event, Phase, Record, to_json
from ..store import ClusterDirectory, check_private, write_private
from ..submission import JobServerRunner, ProcessRunner, Runner

HERE = Path(__file__).resolve().parent / "__main__.py"


def main(argv: list[str]) -> None:
    """Run the head of the cluster in ``--directory``."""
    parser = argparse.ArgumentParser(prog="head")
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    arguments = parser.parse_args(argv)
    os.umask(0o077)
    starter = detach()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s"
    )
    directory = ClusterDirectory(arguments.directory)
    try:
        check_private(directory.path)
        # Until the head is on record this tells whether it still lives.
        write_private(directory.process_file, json.dumps(to_json(this_process())).encode())
        record = directory.read_record()
    except GpuClusterError as error:
        sys.exit(f"{error.message} {error.hint}")
    os.write(starter, b"1")
    os.close(starter)
    sys.exit(asyncio.run(serve(directory, record, arguments.scratch)))


def detach() -> int:
    """Leave the starter: its child ends here and now, so it keeps no zombie of the head.

    Returns
    -------
    int
        Where a byte lets the starter's child end well; closed without one, it tells of a failure.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)
    os.close(reader)
    os.setsid()
    return writer


async def serve(directory: ClusterDirectory, record: Record, scratch: Path) -> int:
    """Run the cluster to its end; whatever happens, the record tells it."""
    # Before distributed is imported here: the job server's imports then go on beside ours.
    runner = make_runner(directory, record, scratch)
    service = None
    try:
        from .service import Service

        service = Service(directory, record, runner)
        await service.run()
        code = 0
    except Exception as error:
        logging.getLogger(__name__).exception("The head failed")
        fail(directory, record if service is None else service.record, error)
        code = 1
    if isinstance(runner, JobServerRunner):
        await runner.close()
    directory.remove_private()
    shutil.rmtree(scratch, ignore_errors=True)
    return code


def fail(directory: ClusterDirectory, record: Record, error: Exception) -> None:
    """Put on record what ended the head."""
    told = error.message if isinstance(error, GpuClusterError) else repr(error)
    now = time.time()
    reason = f"The head failed: {told}"
    failed = replace(record, phase=Phase.FAILED, phase_since=now, ended=now, reason=reason)
    # The disk may be what failed; what is needless to keep makes room first.
    directory.remove_private()
    try:
        directory.write_record(failed)
        directory.append_event(Event(now, "phase", f"failed: {reason}"))
    except GpuClusterError as trouble:
        logging.getLogger(__name__).error("%s", trouble)


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

    environment = {**os.environ, **spec.variables}
    return JobServerRunner(command, environment, lambda: end_heirs(directory.path))
