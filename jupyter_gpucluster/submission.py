"""Run a queueing system's commands: submit once, list all jobs in one call, cancel until gone."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from .backends.base import Backend
from .errors import BackendUnavailable
from .records import CommandResult, JobStatus, Submission

COMMAND_SECONDS = 60.0
"""After this a command counts as unanswered; a hanging PBS server never ends one by itself."""


class Runner(Protocol):
    """The edge to the world: runs one command."""

    async def run(self, argv: Sequence[str]) -> CommandResult:
        """Return what the command answered; ``exit_code`` is None where it did not."""


class ProcessRunner:
    """Runs commands as processes, without a shell, in the C locale."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment = {**(environment or os.environ), "LC_ALL": "C"}

    async def run(self, argv: Sequence[str]) -> CommandResult:
        """Run a command; one that is not there is a refusal, one that hangs is ended."""
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment,
                start_new_session=True,
            )
        except OSError as error:
            return CommandResult(tuple(argv), 127, "", f"{argv[0]}: {error.strerror}")
        try:
            out, err = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
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
    """

    def __init__(self, command: Callable[[int], list[str]], environment: Mapping[str, str]) -> None:
        self.command = command
        self.environment = dict(environment)
        self.turn = asyncio.Lock()
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None
        self.spawn()

    def spawn(self) -> None:
        """Start the job server; its imports go on while the head does its own."""
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603  # argv of our own making
                self.command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                env=self.environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    async def run(self, argv: Sequence[str]) -> CommandResult:
        """Ask the job server; where it has died, start another one for the next call."""
        async with self.turn:
            try:
                if self.writer is None:
                    self.reader, self.writer = await asyncio.open_connection(sock=self.socket)
                self.writer.write(json.dumps({"argv": list(argv)}).encode() + b"\n")
                await self.writer.drain()
                assert self.reader is not None
                line = await asyncio.wait_for(self.reader.readline(), COMMAND_SECONDS)
                answer = json.loads(line)
            except (OSError, TimeoutError, ValueError) as error:
                if self.process.poll() is not None:
                    self.disconnect()
                    self.spawn()
                return CommandResult(tuple(argv), None, "", str(error))
        return CommandResult(tuple(argv), answer["exit_code"], answer["stdout"], answer["stderr"])

    def disconnect(self) -> None:
        """Close our end; the job server ends its jobs and itself."""
        if self.writer is not None:
            self.writer.close()
        else:
            self.socket.close()
        self.reader = self.writer = None

    async def close(self) -> None:
        """Close our end and wait for the job server to go."""
        self.disconnect()
        await asyncio.to_thread(self.process.wait)


class Queue:
    """One backend's dialect and the runner that speaks it."""

    def __init__(self, backend: Backend, runner: Runner) -> None:
        self.backend = backend
        self.runner = runner
        self.user = getpass.getuser()

    async def submit(self, submission: Submission) -> tuple[str, ...]:
        """Submit once.

        Raises
        ------
        BackendError
            The system refused.
        BackendUnavailable
            It did not answer: look for the mark before trying again.
        """
        result = await self.runner.run(self.backend.submit(submission))
        return self.backend.parse_submit(submission, result)

    async def poll(self, ids: Sequence[str]) -> dict[str, JobStatus] | None:
        """List all jobs in one call; None where there was no answer."""
        try:
            return self.backend.parse_status(
                await self.runner.run(self.backend.status(self.user, ids))
            )
        except BackendUnavailable:
            return None

    async def cancel(self, ids: Sequence[str]) -> None:
        """Ask for the end of jobs; whether they went is the next listing's to say."""
        await self.runner.run(self.backend.cancel(ids))


