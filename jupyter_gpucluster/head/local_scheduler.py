"""The batch system of one machine: starts jobs as process groups and ends them with the head.

It is a process between the head and its workers, for three reasons.  It has imported distributed
before the first worker is asked for, so a worker is a fork (0.1 s) and not a Python start; for GPUs
that is dask-cuda, whose import starts no thread and does not touch CUDA or the driver.  It
sees the head die (end of file on their socket) and ends the workers from outside, which a task that
holds the GIL cannot prevent.  And it keeps one job's memory from taking the machine.

Requests and answers are JSON lines on an inherited socket: ``{"number": 1, "argv": [...]}`` in the
words of `batch.local`, ``{"number": 1, "exit_code": 0, "stdout": "...", "stderr": ""}`` back.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import psutil

from ..core.errors import UsageError
from ..host.private_files import DAMAGE
from ..host.processes import signal_group, start_time

GRACE_SECONDS = 3.0
"""Between asking a job to end and ending it."""
ORPHAN_GRACE_SECONDS = 2.0
"""The same when the head is gone and no client waits for results."""
MEMORY_CHECK_SECONDS = 0.2
"""A nanny looks every 0.1 s; a fifth of a second costs half of that."""
KEPT_TASKS = 300
"""Ended jobs that a status still lists; the head asks every second."""
SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
SHOWN = "id mark number state pid started_ticks devices exit_code reason started ended".split()
"""Fields of a task that a status shows."""
LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT


@dataclass
class Task:
    """One job, from submission to its end."""

    mark: str
    number: int
    script: Path
    worker_argv: list[str]
    gpus: int = 0
    memory: int | None = None
    state: str = "pending"
    pid: int = 0
    started_ticks: int = 0
    devices: list[str] = field(default_factory=list)
    exit_code: int | None = None
    reason: str = ""
    started: float | None = None
    ended: float | None = None
    kill_at: float | None = None
    restarts: int = 0

    @property
    def id(self) -> str:
        return f"{self.mark}_{self.number}"

    @property
    def worker(self) -> str:
        """The worker's name: a job that starts again must not meet its earlier self."""
        return f"{self.id}.r{self.restarts}" if self.restarts else self.id

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SHOWN}


@dataclass
class JobServer:
    """Runs jobs until the head goes away."""

    channel: socket.socket
    logs: Path
    scratch: Path
    devices: list[str]
    site: Path = Path()
    """File of the simulated site, if the server is one's."""
    tasks: dict[str, Task] = field(default_factory=dict)
    received: bytes = b""
    orphaned: bool = False

    def serve(self) -> None:
        """Answer requests until the head is gone and every job has ended."""
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Ended by the end of the channel, never by a signal meant for a terminal's processes.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        selector = selectors.DefaultSelector()
        selector.register(reader, selectors.EVENT_READ)
        selector.register(self.channel, selectors.EVENT_READ)
        while not (self.orphaned and not self.running()):
            for key, _ in selector.select(self.wait_seconds()):
                if key.fd == reader:
                    with contextlib.suppress(BlockingIOError):
                        os.read(reader, 4096)
                elif not self.receive():
                    selector.unregister(self.channel)
                    self.orphan()
            self.reap()
            self.watch()
            self.start_pending()
        end_adopted()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def running(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.state == "running"]

    def wait_seconds(self) -> float | None:
        running = self.running()
        if any(task.kill_at for task in running):
            return 0.05
        if any(task.memory for task in running):
            return MEMORY_CHECK_SECONDS
        return None

    # Requests.

    def receive(self) -> bool:
        try:
            data = self.channel.recv(65536)
        except OSError:
            data = b""
        if not data:
            return False
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.channel.sendall(json.dumps(self.answer(line)).encode() + b"\n")
        return True

    def answer(self, line: bytes) -> dict[str, Any]:
        """Answer one request; nonsense is refused, since running jobs depend on this process."""
        answer = {"number": None, "exit_code": 0, "stdout": "", "stderr": ""}
        try:
            request = json.loads(line)
            answer["number"] = request["number"]
            arguments = request_parser().parse_args(request["argv"][1:])
            answer["stdout"] = json.dumps(getattr(self, arguments.verb)(arguments))
        except (UsageError, OSError, *DAMAGE) as error:
            answer |= {"exit_code": 1, "stderr": str(error) or type(error).__name__}
        return answer

    def submit(self, arguments: argparse.Namespace) -> list[str]:
        if any(task.mark == arguments.mark for task in self.tasks.values()):
            raise UsageError(f"{arguments.mark} was submitted before")
        if arguments.count < 1 or arguments.workers < 1 or arguments.gpus < 0:
            raise UsageError("counts of jobs and workers begin with 1, of GPUs with 0")
        self.check(arguments)
        tasks = {}
        for number in range(arguments.count):
            task = Task(arguments.mark, number, arguments.script, arguments.worker_argv)
            task.gpus, task.memory = arguments.gpus, arguments.memory
            tasks[task.id] = task
        self.tasks |= tasks
        self.start_pending()
        return [*tasks]

    def check(self, arguments: argparse.Namespace) -> None:
        """Refuse a submission that asks for more than there is."""
        if arguments.gpus > len(self.devices):
            raise UsageError(f"{arguments.gpus} GPUs requested, {len(self.devices)} in use here")

    def status(self, arguments: argparse.Namespace) -> list[dict[str, Any]]:
        return [task.as_json() for task in self.tasks.values()]

    def cancel(self, arguments: argparse.Namespace) -> list[str]:
        for id in arguments.ids:
            task = self.tasks.get(id)
            if task is not None and task.state == "pending":
                self.end(task, None, "cancelled")
            elif task is not None and task.state == "running" and task.kill_at is None:
                task.reason = task.reason or "cancelled"
                self.ask_to_end(task, GRACE_SECONDS)
        return [id for id in arguments.ids if id in self.tasks]

    def limit(self, arguments: argparse.Namespace) -> list[str]:
        """Change the bytes at which jobs are ended; return those that would end at once, unchanged.

        They are writing to disk what is too much, and their results are worth the wait.
        """
        above = []
        for id in arguments.ids:
            task = self.tasks.get(id)
            if task is None or task.state == "ended":
                continue
            if task.state == "running" and resident_bytes(task.pid) > arguments.memory:
                above.append(id)
            else:
                task.memory = arguments.memory
        return above

    def capacity(self, arguments: argparse.Namespace) -> dict[str, int]:
        return {"free": len(self.free_devices()), "total": len(self.devices)}

    # Processes.

    def free_devices(self) -> list[str]:
        taken = {device for task in self.running() for device in task.devices}
        return [device for device in self.devices if device not in taken]

    def start_pending(self) -> None:
        for task in list(self.tasks.values()):
            if task.state == "pending" and task.gpus <= len(free := self.free_devices()):
                task.devices = free[: task.gpus]
                self.start(task)

    def start(self, task: Task) -> None:
        parent = os.getpid()
        # What is sent to the child before it takes signals again waits for it.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self.become(task, parent)
        except OSError as error:
            self.end(task, None, f"no process: {error.strerror}")
            return
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        task.pid = pid
        task.started_ticks = start_time(pid) or 0
        task.state, task.started = "running", time.time()

    def become(self, task: Task, parent: int) -> None:
        """Turn this forked process into the job; never returns."""
        code = 1
        try:
            os.setsid()
            # Should the job server be killed too, the kernel ends the job's first process.
            die_with(parent)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, *SIGNALS):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            self.channel.close()
            path = self.logs / f"{task.id}.log"
            log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.environ["GPUCLUSTER_WORKER"] = task.worker
            os.environ["GPUCLUSTER_DIRECTORY"] = str(self.logs.parent)
            if task.gpus:
                os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
                os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(task.devices)
            if task.worker_argv:
                code = self.work(task)
            else:
                shell = shell_of(task.script)
                os.execv(shell, [shell, str(task.script)])  # noqa: S606  # a script of our own
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def work(self, task: Task) -> int:
        """Run the job's worker in this process; return how it ended."""
        self.be_worker(task, task.worker)

    def be_worker(self, task: Task, name: str) -> NoReturn:
        """Become a worker of this name."""
        from . import worker

        become = worker.run_dask_cuda if task.gpus else worker.main
        become([part.replace("{name}", name) for part in task.worker_argv])

    def ask_to_end(self, task: Task, grace: float) -> None:
        task.kill_at = time.monotonic() + grace
        try:
            os.killpg(task.pid, signal.SIGTERM)
        except ProcessLookupError:
            # So young that it leads no group yet; it has not been waited for, so it is still it.
            os.kill(task.pid, signal.SIGTERM)

    def reap(self) -> None:
        for task in self.running():
            pid, status = os.waitpid(task.pid, os.WNOHANG)
            if pid:
                # What the job's first process left behind in its group goes too.
                signal_group(task.pid, signal.SIGKILL)
                self.end(task, os.waitstatus_to_exitcode(status), task.reason)
        # What was left to this process and has ended is no zombie for long.
        ours = {task.pid for task in self.running()}
        with contextlib.suppress(ChildProcessError):
            # A job that has ended just now is the next turn's.
            while (ended := os.waitid(os.P_ALL, 0, LOOK)) and ended.si_pid not in ours:
                os.waitpid(ended.si_pid, 0)

    def end(self, task: Task, exit_code: int | None, reason: str) -> None:
        task.state, task.ended = "ended", time.time()
        task.exit_code, task.reason = exit_code, reason
        finished = [task for task in self.tasks.values() if task.state == "ended"]
        for old in finished[:-KEPT_TASKS]:
            del self.tasks[old.id]

    def watch(self) -> None:
        now = time.monotonic()
        for task in self.running():
            if task.kill_at is not None and now >= task.kill_at:
                signal_group(task.pid, signal.SIGKILL)
            elif task.memory and resident_bytes(task.pid) > task.memory:
                task.reason = "memory"
                signal_group(task.pid, signal.SIGKILL)

    def orphan(self) -> None:
        """The head is gone: end every job, whatever it does."""
        self.orphaned = True
        for task in list(self.tasks.values()):
            if task.state == "pending":
                self.end(task, None, "cancelled")
            elif task.state == "running":
                task.reason = "head gone"
                self.ask_to_end(task, ORPHAN_GRACE_SECONDS)


def main(argv: list[str], kind: type[JobServer]) -> None:
    """Serve the socket whose descriptor ``--channel`` gives."""
    parser = argparse.ArgumentParser(prog="jobserver")
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--devices", default="")
    parser.add_argument("--preload", action="store_true")
    parser.add_argument("--site", type=Path, default=Path())
    arguments = parser.parse_args(argv)
    os.umask(0o077)
    # The parent of every process of a job whose own parent ends, whatever its name.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if arguments.preload:
        try:
            importlib.import_module("jupyter_gpucluster.head.worker")
            if arguments.devices:
                importlib.import_module("dask_cuda")
        except Exception:
            # The jobs, which try again, fail one by one and say so in their logs.
            traceback.print_exc()
    channel = socket.socket(fileno=arguments.channel)
    devices = [device for device in arguments.devices.split(",") if device]
    kind(channel, arguments.logs, arguments.scratch, devices, arguments.site).serve()


PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ADOPTED_SECONDS = 5.0
"""Time for the end of processes that jobs left behind."""
PAGE = os.sysconf("SC_PAGE_SIZE")


def shell_of(script: Path) -> str:
    """Return the shell that a script names: bash for a prologue and for several nodes."""
    with script.open("rb") as stream:
        return "/bin/bash" if stream.readline() == b"#!/bin/bash\n" else "/bin/sh"


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def die_with(parent: int) -> None:
    """Let the kernel end this process with its parent, or end at once where that is gone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def end_adopted() -> None:
    """Kill what jobs left behind, also where it hides which job it is of."""
    deadline = time.monotonic() + ADOPTED_SECONDS
    while (left := psutil.Process().children()) and time.monotonic() < deadline:
        for child in left:
            with contextlib.suppress(psutil.Error, ChildProcessError):
                child.kill()
                os.waitpid(child.pid, os.WNOHANG)
        time.sleep(0.01)


class Parser(argparse.ArgumentParser):
    """Raises where argparse would end the process."""

    def error(self, message: str) -> Any:
        raise UsageError(message)


@functools.cache
def request_parser() -> argparse.ArgumentParser:
    """Return the parser of requests, which `batch.local` and `batch.demo` write."""
    parser = Parser(prog="gpucluster-jobs", add_help=False)
    commands = parser.add_subparsers(dest="verb", required=True, parser_class=Parser)
    submit = commands.add_parser("submit", add_help=False)
    submit.add_argument("--mark", required=True)
    submit.add_argument("--count", type=int, default=1)
    submit.add_argument("--gpus", type=int, default=0)
    submit.add_argument("--memory", type=int)
    submit.add_argument("--workers", type=int, default=1)
    submit.add_argument("script", type=Path)
    submit.add_argument("worker_argv", nargs="*")
    commands.add_parser("status", add_help=False)
    cancel = commands.add_parser("cancel", add_help=False)
    cancel.add_argument("ids", nargs="+")
    limit = commands.add_parser("limit", add_help=False)
    limit.add_argument("--memory", type=int, required=True)
    limit.add_argument("ids", nargs="+")
    commands.add_parser("capacity", add_help=False)
    return parser
