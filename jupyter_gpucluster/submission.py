"""Run a queueing system's commands: submit once, list all jobs in one call, cancel until gone."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from .backends import cancel_command, submit_command
from .backends.base import Backend
from .errors import BackendError
from .inheritance import for_commands
from .processes import lower_open_files, signal_group
from .records import CommandResult, JobStatus, Submission
from .sharing import Poll, SharedQueue

T = TypeVar("T")
LONGEST_ANSWER = 1 << 24
"""Bytes; asyncio's own limit of 64 KiB is less than a status of some 270 jobs."""
JOB_SERVERS = 3
"""As many in a row may die of one request before it counts as refused."""
COMMAND_SECONDS = 60.0
"""After this a command counts as unanswered; a hanging PBS server never ends one by itself."""
JOB_SERVER_SECONDS = 5.0
"""The same of a job server that has answered before: it needs milliseconds, once its imports are
done."""
CLOSE_SECONDS = 20.0
"""A job server gives jobs 2 s to end, and 5 s to what they left; one that is stopped never ends."""


class Runner(Protocol):
    """The edge to the world: runs one command."""

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Return what the command answered; ``exit_code`` is None where it did not."""


class ProcessRunner:
    """Runs commands as processes, without a shell, in the C locale.

    Parameters
    ----------
    environment
        Variables of the commands, of which `for_commands` keeps a part; by default this process's.
    seconds
        After these a command counts as unanswered; by default `COMMAND_SECONDS`.
    """

    def __init__(
        self, environment: Mapping[str, str] | None = None, *, seconds: float | None = None
    ) -> None:
        self.environment = for_commands(environment or os.environ)
        self.seconds = seconds

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Run a command; one that is not there is a refusal, one that hangs is ended."""
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
                start_new_session=True,
                preexec_fn=lower_open_files(),
            )
        except OSError as error:
            return CommandResult(tuple(argv), 127, "", f"{argv[0]}: {error.strerror}")
        try:
            given = stdin.encode() if stdin else None
            limit = COMMAND_SECONDS if self.seconds is None else self.seconds
            out, err = await asyncio.wait_for(process.communicate(given), limit)
        except TimeoutError:
            signal_group(process.pid, signal.SIGKILL)
            await process.wait()
            return CommandResult(tuple(argv), None, "", "no answer")
        return CommandResult(
            tuple(argv),
            process.returncode,
            out.decode("utf-8", "replace"),
            err.decode("utf-8", "replace"),
        )


class JobServerRunner:
    """Sends commands to a job server of this machine over a socket pair.

    The pair is also how the job server learns that its head is gone: the kernel closes it.

    Parameters
    ----------
    command
        Makes the job server's command from the number of its end of the pair.
    environment
        Variables of the job server, which its jobs inherit.
    bury
        Ends what a job server left behind that was killed.
    """

    def __init__(
        self,
        command: Callable[[int], list[str]],
        environment: Mapping[str, str],
        bury: Callable[[], None] = lambda: None,
    ) -> None:
        self.command = command
        self.environment = dict(environment)
        self.bury = bury
        self.turn = asyncio.Lock()
        self.asked = 0
        self.answered = False
        self.unanswered_since: float | None = None
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None
        self.spawn()

    def spawn(self) -> None:
        """Start the job server; its imports go on while the head does its own."""
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                self.command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                env=self.environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                preexec_fn=lower_open_files(),
            )

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Ask the job server; where it has died, ask another one.

        A job server's jobs end with it, so asking the next one submits nothing twice.
        """
        code = 0
        async with self.turn:
            for _ in range(JOB_SERVERS):
                try:
                    answer = await asyncio.wait_for(self.ask(argv), self.limit())
                except TimeoutError:
                    return CommandResult(tuple(argv), None, "", self.silence())
                except (OSError, ValueError):
                    code = await self.replace()
                else:
                    exit_code, out, err = answer["exit_code"], answer["stdout"], answer["stderr"]
                    return CommandResult(tuple(argv), exit_code, out, err)
        told = f"It ended {JOB_SERVERS} times in a row, at last with exit code {code}."
        return CommandResult(tuple(argv), 127, "", told)

    def limit(self) -> float:
        """Return the seconds after which a request counts as unanswered."""
        return min(JOB_SERVER_SECONDS, COMMAND_SECONDS) if self.answered else COMMAND_SECONDS

    def silent_seconds(self) -> float:
        """Return for how long a job server that has answered before owes an answer."""
        since = self.unanswered_since
        return 0.0 if since is None or not self.answered else time.monotonic() - since

    def silence(self) -> str:
        """Say which process does not answer, and what to type."""
        pid = self.process.pid
        return (
            f"The process that starts and ends this cluster's workers (PID {pid}) does not answer."
            f" If it was stopped, continue it: kill -CONT {pid}"
        )

    async def ask(self, argv: Sequence[str]) -> dict[str, Any]:
        """Send one request and return its answer; raises `OSError` or `ValueError` without one."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                sock=self.socket, limit=LONGEST_ANSWER
            )
        self.asked += 1
        if self.unanswered_since is None:
            self.unanswered_since = time.monotonic()
        request = {"number": self.asked, "argv": list(argv)}
        self.writer.write(json.dumps(request).encode() + b"\n")
        await self.writer.drain()
        return await self.answer(self.asked)

    async def replace(self) -> int:
        """Start another job server in place of one that hung up; return how that one ended."""
        self.disconnect()
        self.process.kill()
        code = await asyncio.to_thread(self.process.wait)
        await asyncio.to_thread(self.bury)
        self.answered, self.unanswered_since = False, None
        self.spawn()
        return code

    async def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to one request; those to requests that nobody waits for come before."""
        assert self.reader is not None  # noqa: S101  # for mypy: `ask` has connected
        while True:
            answer: dict[str, Any] = json.loads(await self.reader.readline())
            if answer["number"] == number:
                self.answered, self.unanswered_since = True, None
                return answer

    def disconnect(self) -> None:
        """Close our end; the job server ends its jobs and itself."""
        if self.writer is not None:
            self.writer.close()
        else:
            self.socket.close()
        self.reader = self.writer = None

    async def close(self) -> None:
        """Close our end and wait for the job server to go; one that does not is killed."""
        self.disconnect()
        try:
            await asyncio.to_thread(self.process.wait, CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)
            await asyncio.to_thread(self.bury)


def run_aside(work: Coroutine[Any, Any, T]) -> T:
    """Run work in a thread of its own: the caller's may have an event loop, as in a notebook."""
    with ThreadPoolExecutor(1, "gpucluster-aside") as thread:
        return thread.submit(asyncio.run, work).result()


def user_name() -> str:
    """Return who asks; in a container with a number of its own the user may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


def submit_line(backend: Backend, submission: Submission) -> str:
    """Return what to type in a shell to submit."""
    command = shlex.join(submit_command(backend, submission))
    stdin = backend.stdin(submission)
    if stdin == submission.text:
        return f"{command} < {shlex.quote(submission.script)}"
    return f"{command} <<'END'\n{stdin}END" if stdin else command


class Queue:
    """One backend's dialect and the runner that speaks it.

    Parameters
    ----------
    shared
        Through what all heads of a user ask together; None where the system is the cluster's own.
    cancel_args
        More arguments of the command that ends jobs.
    """

    def __init__(
        self,
        backend: Backend,
        runner: Runner,
        shared: SharedQueue | None = None,
        cancel_args: Sequence[str] = (),
    ) -> None:
        self.backend = backend
        self.cancel_args = cancel_args
        self.runner = runner
        self.user = user_name()
        self.shared = shared
        self.cure = ""
        """What to do about a silence that does not pass by itself, with its cause."""

    async def submit(self, submission: Submission) -> tuple[str, ...]:
        """Submit once.

        Raises
        ------
        BackendError
            The system refused.
        BackendUnavailable
            It did not answer: look for the mark before trying again.
        """
        argv, stdin = submit_command(self.backend, submission), self.backend.stdin(submission)
        result = await self.change(argv, stdin)
        try:
            return self.backend.parse_submit(submission, result)
        except BackendError as error:
            if error.accepted:
                await self.cancel(error.accepted)
            raise

    async def change(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Run a command that changes something, when the budget has room for it."""
        if self.shared is None:
            return await self.runner.run(argv, stdin)
        await self.shared.wait_for_room()
        try:
            return await self.runner.run(argv, stdin)
        finally:
            self.shared.note_change()

    async def look(self, ids: Sequence[str], period: float) -> Poll:
        """Return a listing that is no older than the period, or the word that none is due yet."""
        if self.shared is None:
            return Poll(True, await self.poll(ids))
        poll = await self.shared.poll(ids, period, self.poll)
        if poll.listing is not None:  # perhaps another head's
            self.cure = ""
        return poll

    async def poll(self, ids: Sequence[str]) -> dict[str, JobStatus] | None:
        """List all jobs in one call; None where there was no answer."""
        result = await self.runner.run(self.backend.status(self.user, ids))
        try:
            # A user's 5,000 jobs take a few tenths of a second to read.
            listing = await asyncio.to_thread(self.backend.parse_status, result)
        except BackendError as error:
            self.cure = f"{error.message} {error.hint}" if error.hint else ""
            return None
        self.cure = ""
        return listing

    async def history(self, ids: Sequence[str]) -> dict[str, JobStatus]:
        """Return what accounting knows of the end of jobs; nothing where it does not answer."""
        return await self.account(self.backend.history(ids))

    async def find(self, marks: Sequence[str]) -> dict[str, JobStatus]:
        """Return what accounting knows of submissions whose answers were lost."""
        return await self.account(self.backend.find(marks))

    async def account(self, argv: Sequence[str] | None) -> dict[str, JobStatus]:
        """Ask accounting; it is behind the listing, so that no answer means nothing."""
        if argv is None:
            return {}
        if self.shared is not None:
            await asyncio.to_thread(self.shared.take_room, always=True)
        try:
            return self.backend.parse_history(await self.runner.run(argv))
        except BackendError:
            return {}

    async def cancel(self, ids: Sequence[str]) -> CommandResult:
        """Ask for the end of jobs; whether they went is the next listing's to say."""
        return await self.change(cancel_command(self.backend, ids, self.cancel_args))
