"""The head as a process: its environment, its log, the way of its commands, its end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import shutil
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..batch import elsewhere, find_backend, on_this_machine, routing
from ..batch.cancel import cancel_jobs_of
from ..batch.queue import COMMAND_SECONDS, JobServerRunner, ProcessRunner, Runner
from ..batch.variables import inherited
from ..core.cluster import ENDED, Phase, Record, heads_mark
from ..core.errors import GpuClusterError, StateError
from ..core.job import CommandResult
from ..core.serialize import from_json, to_json
from ..core.summary import Event
from ..host.cluster_directory import ClusterDirectory
from ..host.dask_settings import own_settings
from ..host.private_files import DAMAGE, check_private, write_private
from ..host.processes import end_leftovers, raise_open_files, this_process
from ..node.start_worker import stacks
from .simulator.site import site_file

END_TRIES = 3
"""Number of attempts of a head at its end, a second apart, to write to a full disk."""
HERE = Path(__file__).resolve().parent / "__main__.py"


def main(argv: list[str]) -> None:
    """Run the head of the cluster in ``--directory``."""
    parser = argparse.ArgumentParser(prog="head")
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=0, help="process group, where in a job")
    arguments = parser.parse_args(argv)
    os.umask(0o077)
    raise_open_files()
    # In a job it stays what the job's script waits for.
    starter = None if arguments.workers else detach()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s - %(name)s - %(levelname)s - %(message)s"
    )
    directory = ClusterDirectory(arguments.directory)
    try:
        check_private(directory.path)
        # Until the head is on record this tells whether it still lives.
        directory.write_process(this_process())
        record = directory.read_record()
    except GpuClusterError as error:
        sys.exit(f"{error.message} {error.hint}")
    if record.phase in ENDED:
        sys.exit("The cluster has ended already.")
    if starter is not None:
        os.write(starter, b"1")
        os.close(starter)
    sys.exit(asyncio.run(serve(directory, record, arguments.scratch, arguments.workers)))


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


async def serve(
    directory: ClusterDirectory, record: Record, scratch: Path, workers: int = 0
) -> int:
    """Run the cluster to its end; whatever happens, the record tells it."""
    # Before distributed is imported here: the job server's imports then go on beside ours.
    runner = make_runner(directory, record, scratch)
    service, code = None, 0
    try:
        if workers:
            record = begin_in_job(directory, record, scratch)
        with stacks():
            from . import http_api
            from .service import Service

        service = Service(directory, record, runner, workers)
        await service.run(http_api.install)
        last = service.record
    except Exception as error:
        logging.getLogger(__name__).exception("The head failed")
        last = record if service is None else service.record
        spare = heads_mark(last.id) if workers else ""  # its own job ends with it
        last, jobs = await cancel_jobs_of(last, runner, spare=spare, directory=directory)
        fail(directory, last, jobs, error)
        code = 1
    if isinstance(runner, JobServerRunner):
        await runner.close()
    shutil.rmtree(scratch, ignore_errors=True)
    directory.remove_private(last, keep_lease=True)
    for _ in range(END_TRIES):
        if code or service is None or service.files.save_end(last):
            directory.remove_private(last)
            break
        # Without room the note in the lease tells it, which the process that finds the end reads.
        await asyncio.sleep(1)
    return code


def begin_in_job(directory: ClusterDirectory, record: Record, scratch: Path) -> Record:
    """Return the record with what is settled in the job; refuse a job that was started again.

    Raises
    ------
    StateError
        Another head had this record, in an earlier run of the same job.
    """
    if record.head is not None:
        raise StateError(
            "The batch system restarted the scheduler's job, so the scheduler's state is lost."
        )
    directory.scheduler_file.unlink(missing_ok=True)
    return replace(record, spec=replace(record.spec, scratch=str(scratch)))


def fail(directory: ClusterDirectory, record: Record, jobs: str, error: Exception) -> None:
    """Put on record what ended the head, and what became of its jobs."""
    first: BaseException = error
    # Dask wraps what went wrong in "Scheduler failed to start".
    while first.__cause__ is not None:
        first = first.__cause__
    named = f"{type(first).__name__}: {' '.join(str(first).split())}"
    text = first.message if isinstance(first, GpuClusterError) else named
    now = time.time()
    parts = (f"The scheduler process failed: {text.removesuffix('.')}.", jobs, own_settings())
    reason = " ".join(part for part in parts if part)
    # Who asked for a stop has got it.
    outcome = Phase.FAILED if record.stop_requested is None else record.outcome
    failed = replace(record, phase=outcome, phase_since=now, ended=now, reason=reason)
    # The disk may be what failed; what is needless to keep makes room first.
    directory.remove_private(record)
    try:
        directory.write_record(failed)
        directory.append_event(Event(now, "phase", f"{outcome.value}: {reason}"))
    except GpuClusterError as trouble:
        logging.getLogger(__name__).error("%s", trouble)


def make_runner(directory: ClusterDirectory, record: Record, scratch: Path) -> Runner:
    """Return what runs the backend's commands."""
    spec = record.spec
    if not on_this_machine(spec.backend):
        if spec.relayed:
            return MailboxRunner(directory)
        # What a head in a job submits is a job of its own, none within that job.
        if not spec.in_job:
            return ProcessRunner()
        # Where the system sets its variables in a job (Slurm, Grid Engine, LSF), those count.
        own = {**routing(spec), **inherited(os.environ)}
        return NodeRunner(spec.backend, own | elsewhere(spec.backend, spec.job))

    def command(channel: int) -> list[str]:
        argv = [sys.executable, "-P", str(HERE), "jobs", "--channel", str(channel)]
        argv += ["--logs", str(directory.logs), "--scratch", str(scratch)]
        argv += ["--devices", ",".join(spec.devices)]
        if spec.worker_argv:
            argv.append("--preload")
        if spec.simulated:
            argv += ["--site", str(site_file(directory.root))]
        return argv

    environment = {**os.environ, **spec.variables}
    return JobServerRunner(command, environment, lambda: end_leftovers(directory.path))


PATIENCE = COMMAND_SECONDS + 30.0
"""The command has its own time; the rest is for a file server that shows files late."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
MISSING = 127


class MailboxRunner:
    """Puts commands into the cluster directory and waits for what the relay answers.

    The relay (`jupyter_gpucluster.state.relay`) runs on the Jupyter host.
    """

    def __init__(self, directory: ClusterDirectory) -> None:
        self.box = directory.relay
        self.me = this_process()

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Ask the relay to run a command; without an answer in time there is none."""
        name = uuid.uuid4().hex
        data = {"head": to_json(self.me), "argv": list(argv), "stdin": stdin}
        question, answer = self.box / f"{name}.ask", f"{name}.answer"
        try:
            await asyncio.to_thread(write_private, question, json.dumps(data).encode())
        except StateError as error:
            return CommandResult(tuple(argv), None, "", error.message)
        deadline, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
        while time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, LONGEST_PAUSE)
            if (result := await asyncio.to_thread(self.take, answer)) is not None:
                return result
        with contextlib.suppress(OSError):
            question.unlink()
        silence = "The relay on the Jupyter host does not answer."
        return CommandResult(tuple(argv), None, "", silence)

    def take(self, name: str) -> CommandResult | None:
        """Return an answer and remove it; the folder is listed, since NFS remembers absence."""
        with contextlib.suppress(OSError, *DAMAGE):
            for path in (path for path in self.box.iterdir() if path.name == name):
                result = from_json(CommandResult, json.loads(path.read_bytes()))
                path.unlink()
                return result
        return None


class NodeRunner(ProcessRunner):
    """Runs commands on the node of the head's job, and reports one that is not there.

    Parameters
    ----------
    backend
        The cluster's.
    environment
        Variables of the commands.
    """

    def __init__(self, backend: str, environment: Mapping[str, str]) -> None:
        variables, self.without = find_backend(backend).on_a_node(environment)
        super().__init__(variables)

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Run a command as `ProcessRunner` does."""
        result = await super().run([x for x in argv if not x.startswith(self.without)], stdin)
        if result.exit_code != MISSING:
            return result
        text = (
            f"{result.stderr}; the node of the scheduler's job lacks this command, so the cluster"
            " cannot grow. Set head.submit: relay to have it run on the Jupyter host."
        )
        return CommandResult(result.argv, MISSING, result.stdout, text)
