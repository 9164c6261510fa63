"""Run the commands of a batch system: submit once, list all jobs in one call, cancel."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..core.absence import Trace
from ..core.cluster import Record
from ..core.errors import BackendError, GpuClusterError
from ..core.job import FINAL, CommandResult, JobStatus, Submission
from ..host.private_files import DAMAGE, write_private
from ..host.processes import lower_open_files, signal_group
from . import cancel_command, find_backend, routed, submit_command
from .base import UNREAD, Backend
from .status_cache import PERIOD, Listing, Poll, StatusCache
from .variables import for_commands

T = TypeVar("T")
LONGEST_ANSWER = 1 << 24
"""Bytes; asyncio's own limit of 64 KiB is less than a status of some 270 jobs."""
JOB_SERVERS = 3
"""Number of job servers that may die of one request before it counts as refused."""
COMMAND_SECONDS = 60.0
"""After this a command counts as unanswered; a hanging PBS server never ends one by itself."""
JOB_SERVER_SECONDS = 5.0
"""The same of a job server that has answered before: it needs milliseconds, once its imports are
done."""
CLOSE_SECONDS = 20.0
"""A job server gives jobs 2 s to end, and 5 s to what they left; one that is stopped never ends."""
LOOK_UPS = 5
"""Jobs that one listing lacks and that are asked about one by one, at most."""
MOST_REMARKS = 50


class Runner(Protocol):
    """Interface of what runs commands."""

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Return the answer of a command; ``exit_code`` is None if there was none."""


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
        """Run a command; a missing one is a refusal, and one that hangs is ended."""
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
        except (TimeoutError, asyncio.CancelledError) as error:
            signal_group(process.pid, signal.SIGKILL)
            await process.communicate()
            if isinstance(error, asyncio.CancelledError):
                raise
            return CommandResult(tuple(argv), None, "", "no answer")
        stdout, stderr = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        return CommandResult(tuple(argv), process.returncode, stdout, stderr)


class JobServerRunner:
    """Sends commands to a job server of this machine over a socket pair.

    When the head dies, the kernel closes the pair, and the job server ends.

    Parameters
    ----------
    command
        Makes the job server's command from the number of its end of the pair.
    environment
        Variables of the job server, which its jobs inherit.
    clean_up
        Ends what a job server left behind that was killed.
    """

    def __init__(
        self,
        command: Callable[[int], list[str]],
        environment: Mapping[str, str],
        clean_up: Callable[[], None] = lambda: None,
    ) -> None:
        self.command = command
        self.environment = dict(environment)
        self.clean_up = clean_up
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
        """Send a command to the job server, or to the next one if it has died.

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
                    continue
                exit_code, out, err = answer["exit_code"], answer["stdout"], answer["stderr"]
                return CommandResult(tuple(argv), exit_code, out, err)
        report = f"It ended {JOB_SERVERS} times in a row, at last with exit code {code}."
        return CommandResult(tuple(argv), 127, "", report)

    def limit(self) -> float:
        """Return the seconds after which a request counts as unanswered."""
        return min(JOB_SERVER_SECONDS, COMMAND_SECONDS) if self.answered else COMMAND_SECONDS

    def silent_seconds(self) -> float:
        """Return the seconds since the oldest request without an answer; 0 before the first one."""
        since = self.unanswered_since
        return 0.0 if since is None or not self.answered else time.monotonic() - since

    def silence(self) -> str:
        """Return a sentence with the process that does not answer, and its fix."""
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
        """Replace a job server that hung up; return its exit code."""
        self.disconnect()
        self.process.kill()
        code = await asyncio.to_thread(self.process.wait)
        await asyncio.to_thread(self.clean_up)
        self.answered, self.unanswered_since = False, None
        self.spawn()
        return code

    async def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to one request; skip the late answers to earlier ones."""
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
        """Close our end and wait until the job server ends; kill it if it does not."""
        self.disconnect()
        try:
            await asyncio.to_thread(self.process.wait, CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)
            await asyncio.to_thread(self.clean_up)


class PatientRunner:
    """Runs what a user's action asks a batch system, within the limits of `StatusCache`."""

    def __init__(self, runner: Runner, shared: StatusCache) -> None:
        self.runner = runner
        self.shared = shared

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Return the answer of a command that reads, perhaps one of the last minute."""
        return await self.shared.answer_user(argv, lambda: self.runner.run(argv, stdin))


def for_user(
    backend: Backend,
    runner: Runner,
    root: Path,
    environment: Mapping[str, str] = os.environ,
) -> Runner:
    """Return what runs the commands of a user's action; without clusters there are no limits.

    Parameters
    ----------
    root
        The directory of cluster directories.
    environment
        As in `StatusCache`.
    """
    if not os.access(root, os.W_OK | os.X_OK):
        return runner
    return PatientRunner(runner, StatusCache(root, backend, user_name(), "", environment))


def shared_cache(root: Path, record: Record) -> StatusCache:
    """Return what a cluster shares with the others of its batch system.

    Parameters
    ----------
    root
        The directory of cluster directories.
    """
    spec = record.spec
    # A head in a job has the variables for commands only.
    environment = routed(spec, os.environ)
    backend, period = find_backend(spec.backend), listing_period(record)
    return StatusCache(root, backend, user_name(), record.id, environment, period)


def listing_period(record: Record) -> float:
    """Return the seconds between two listings while a job waits or ends."""
    return record.spec.site.poll_period or PERIOD


def run_aside(work: Coroutine[Any, Any, T]) -> T:
    """Run work in a thread of its own: the caller's may have an event loop, as in a notebook."""
    with ThreadPoolExecutor(1, "gpucluster-aside") as thread:
        return thread.submit(asyncio.run, work).result()


def user_name() -> str:
    """Return the user's name, or the number: in a container users may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.geteuid())


def submit_line(backend: Backend, submission: Submission) -> str:
    """Return the shell command that submits."""
    command = shlex.join(submit_command(backend, submission))
    stdin = backend.stdin(submission)
    if stdin == submission.text:
        return f"{command} < {shlex.quote(submission.script)}"
    return f"{command} <<'END'\n{stdin}END" if stdin else command


def personal_settings(backend: Backend) -> str:
    """Name the user's own files that may change what commands answer; empty if there are none."""
    found = []
    for name in backend.personal_files:
        with contextlib.suppress(OSError):
            lines = Path("~", name).expanduser().read_text("utf-8", "replace").splitlines()
            if any(line.strip() and not line.lstrip().startswith("#") for line in lines):
                found.append(f"~/{name}")
    if not found:
        return ""
    return (
        f"Your file {' and '.join(found)} may be the cause: it changes {backend.title}'s commands."
    )


def words_of(backend: Backend, result: CommandResult) -> tuple[str, ...]:
    """Return the lines on standard error that belong to no complete answer."""
    output = backend.remarks.sub("", result.stderr) if backend.remarks else result.stderr
    lines = (line.strip() for line in output.splitlines())
    return tuple(line[:300] for line in lines if line)[:MOST_REMARKS]


def _bare(line: str) -> str:
    """Return a line without its numbers: times and loads change with each answer."""
    return re.sub(r"\d+", "#", line.strip()[:300])


class Queue:
    """One dialect with the runner of its commands.

    Parameters
    ----------
    shared
        Listings and command limit that heads share; None if the system is the cluster's own.
    cancel_args
        More arguments of the command that ends jobs.
    root
        The directory of cluster directories, with the lines that a site prints with every answer.
    """

    def __init__(
        self,
        backend: Backend,
        runner: Runner,
        shared: StatusCache | None = None,
        cancel_args: Sequence[str] = (),
        root: Path | None = None,
    ) -> None:
        self.remarks: frozenset[str] = frozenset()
        """Standard error of the last complete answer."""
        self.remarks_file = root / f".{backend.name}.remarks" if root is not None else None
        self.backend = backend
        self.cancel_args = cancel_args
        self.runner = runner
        self.user = user_name()
        self.shared = shared
        self.fix = ""
        """Cause and fix of a missing answer that does not pass by itself."""

    async def submit(self, submission: Submission) -> tuple[str, ...]:
        """Submit once.

        Raises
        ------
        BackendError
            The system refused.
        BackendUnavailable
            It did not answer: look for the tag before the next try.
        """
        argv, stdin = submit_command(self.backend, submission), self.backend.stdin(submission)
        result = await self.change(argv, stdin)
        try:
            ids = self.backend.parse_submit(submission, result)
        except BackendError as error:
            if error.accepted:
                await self.cancel(error.accepted)
            raise
        # A job may end before any listing has it, and the site's own lines come with this, too.
        output = frozenset(map(_bare, words_of(self.backend, result)))
        await asyncio.to_thread(self.remember, self.remarks | output)
        return ids

    async def change(
        self, argv: Sequence[str], stdin: str = "", *, again: bool = False
    ) -> CommandResult:
        """Run a command that changes something, when the limit has room for it."""
        if self.shared is None:
            return await self.runner.run(argv, stdin)
        await self.shared.wait_for_room()
        try:
            return await self.runner.run(argv, stdin)
        finally:
            self.shared.note_change(soon=not again)

    async def look(
        self,
        ids: Sequence[str],
        period: float,
        expected: Sequence[str] | None = None,
        nameless: Sequence[str] = (),
    ) -> Poll:
        """Return a listing that is no older than the period, or that none is due yet.

        Parameters
        ----------
        expected
            The jobs that have not ended as far as is known; by default ``ids``.
        nameless
            The keys of jobs whose submission was not answered: they have no id.
        """
        expected = ids if expected is None else expected
        if self.shared is not None:
            poll = await self.shared.poll(ids, period, self.answer)
        else:
            found = await self.answer(ids)
            poll = Poll(True) if found is None else Poll(True, found.jobs, found.words)
        if poll.listing is None:
            return poll
        # Perhaps it is another head's.
        listing = Listing(poll.listing, poll.words)
        jobs = await asyncio.to_thread(self.whole, listing, expected, nameless)
        return replace(poll, listing=jobs)

    async def poll(
        self,
        ids: Sequence[str],
        expected: Sequence[str] | None = None,
        nameless: Sequence[str] = (),
    ) -> dict[str, JobStatus] | None:
        """List all jobs in one call; None without an answer.  More arguments as in `look`."""
        return (await self.look(ids, PERIOD, expected, nameless)).listing

    async def answer(self, ids: Sequence[str]) -> Listing | None:
        """List all jobs in one call, with what stood on standard error."""
        result = await self.runner.run(self.backend.status(self.user, ids))
        try:
            # A user's 5,000 jobs take a few tenths of a second to read.
            jobs = await asyncio.to_thread(self.backend.parse_status, result)
        except BackendError as error:
            personal = await asyncio.to_thread(personal_settings, self.backend)
            fix = " ".join(filter(None, (error.hint, personal)))
            self.fix = f"{error.message} {fix}" if fix else ""
            return None
        return Listing(jobs, words_of(self.backend, result))

    def whole(
        self, listing: Listing, expected: Sequence[str], nameless: Sequence[str] = ()
    ) -> dict[str, JobStatus] | None:
        """Return the jobs of a listing, None if it lacks one and may be incomplete.

        It is if a record in it cannot be read, or if there are words on standard error.
        OAR was seen to exit with 0 and list nothing while its database failed.  Words that also
        came with the last answer that lacked no job are the site's.
        """
        jobs, lines = dict(listing.jobs), {_bare(line): line for line in listing.words}
        unread = jobs.pop(UNREAD.id, None)
        for id in expected:
            array = jobs.get(self.backend.array_of(id))
            if id not in jobs and array is not None and array.state in FINAL:
                jobs[id] = replace(array, id=id, task=int(id.rpartition("_")[2]))
        lacks = any(id not in jobs for id in expected)
        if unread and (lacks or set(nameless).difference(job.key for job in jobs.values())):
            self.fix = f"{self.backend.title} listed a job in a form that cannot be read."
            return None
        if lacks and (unusual := lines.keys() - self.usual()):
            output = next(line for bare, line in lines.items() if bare in unusual)
            self.fix = f"{self.backend.title} left out jobs and wrote: {output[:200]}"
            return None
        if expected and not lacks:
            self.remember(frozenset(lines))
        self.fix = ""
        return jobs

    def remember(self, remarks: frozenset[str]) -> None:
        """Keep what came with a whole answer; each host of a site may have words of its own."""
        if remarks == self.remarks:
            return
        self.remarks = remarks
        if self.remarks_file is not None:
            kept = {**self.kept(), socket.gethostname(): sorted(remarks)[:MOST_REMARKS]}
            with contextlib.suppress(GpuClusterError):
                write_private(self.remarks_file, json.dumps(kept).encode())

    def kept(self) -> dict[str, list[str]]:
        """Return the remarks on disk, by host."""
        try:
            found = json.loads(self.remarks_file.read_bytes()) if self.remarks_file else {}
            return {str(host): [str(line) for line in lines] for host, lines in found.items()}
        except (OSError, *DAMAGE):
            return {}

    def usual(self) -> frozenset[str]:
        """Return what this site is known to print with whole answers."""
        return self.remarks.union(*self.kept().values())

    async def trace(self, marks: Mapping[str, str], most: int = LOOK_UPS) -> Trace:
        """Look for jobs that a listing lacks: with one command, then one by one.

        Parameters
        ----------
        marks
            The mark of each job by id, in the order in which they are asked about; ids are given
            out again, marks are not.
        most
            How many are asked about one by one.
        """
        backend, ids = self.backend, list(marks)
        if not ids or backend.listing_proves:
            return Trace(listing_proves=backend.listing_proves)
        listing: dict[str, JobStatus] = {}
        past: dict[str, JobStatus] = {}
        unknown: set[str] = set()

        async def ask(
            argv: Sequence[str], parse: Callable[[CommandResult], dict[str, JobStatus]]
        ) -> dict[str, JobStatus]:
            result = await self.runner.run(argv)
            usual = await asyncio.to_thread(self.usual)
            lines = [line for line in result.stderr.splitlines() if _bare(line) not in usual]
            bare = replace(result, stderr="\n".join(lines))
            unknown.update(id for id in ids if backend.denies(bare, id))
            with contextlib.suppress(BackendError):
                found = {id: each for id, each in parse(result).items() if id in marks}
                ours = {id: each for id, each in found.items() if each.mark in ("", marks[id])}
                if parse == backend.parse_status:  # accounting may lack the newer job of an id
                    unknown.update(found.keys() - ours.keys())
                return ours
            return {}

        history, listed = backend.history(ids), backend.status(self.user, ids)
        by_ids = listed != backend.status(self.user, ())
        if (history is not None or by_ids) and not await self.may_read():
            return Trace()
        if history is not None:
            past = await ask(history, backend.parse_history)
            past = {id: status for id, status in past.items() if status.state in FINAL}
        elif by_ids:
            listing = await ask(listed, backend.parse_status)
        left = [id for id in ids if id not in {*past, *listing, *unknown}]
        asked = set(ids).difference(left)
        for id in left[:most]:
            argv = backend.look_up(id)
            if argv is not None:
                if not await self.may_read():
                    break
                listing |= await ask(argv, backend.parse_status)
            asked.add(id)
        unknown -= listing.keys()
        return Trace(past, frozenset(unknown), listing=listing, asked=frozenset(asked))

    async def may_read(self) -> bool:
        """Count a command that reads; return False if the limit has no room for it."""
        return self.shared is None or await asyncio.to_thread(self.shared.take, "reads") == 0

    async def find(self, marks: Sequence[str]) -> dict[str, JobStatus]:
        """Return the jobs in accounting of submissions whose answers were lost.

        Accounting lags behind listings: no answer means nothing.
        """
        argv = self.backend.find(marks)
        if argv is None or not await self.may_read():
            return {}
        try:
            return self.backend.parse_history(await self.runner.run(argv))
        except BackendError:
            return {}

    async def cancel(self, ids: Sequence[str], *, again: bool = False) -> CommandResult:
        """Send the cancel command; only the next listing shows whether the jobs ended.

        Parameters
        ----------
        again
            Whether it was sent for these jobs before: then no listing comes sooner for it.
        """
        argv = cancel_command(self.backend, ids, self.cancel_args)
        return await self.change(argv, again=again)
