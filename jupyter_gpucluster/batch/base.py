"""The contract of a backend: the dialect of one batch system, argv and text in, records out."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ..core.errors import BackendUnavailable
from ..core.fast_dataclass import frozen
from ..core.job import (
    Allocation,
    Capacity,
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Share,
    Submission,
)
from ..core.site import Site
from .directives import Syntax

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


class Sent(Protocol):
    """The keys that send a job somewhere: of a profile's ``job``, or of a shape."""

    @property
    def account(self) -> str:
        """The account that pays; on Kubernetes a namespace."""

    @property
    def directives(self) -> Sequence[str]:
        """The profile's own lines."""

    @property
    def submit_args(self) -> Sequence[str]:
        """More arguments of the submit command."""


@frozen
class Destination:
    """The keys of `Sent`, completed before a start."""

    account: str
    directives: tuple[str, ...]
    submit_args: tuple[str, ...]


@frozen
class Routing:
    """Commands for the jobs that a profile sends to another part of a system."""

    variables: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    """Those of commands that end or enter jobs."""


@dataclass(frozen=True)
class AllocationQuery:
    """The query of a batch system for one existing job, by its number."""

    programs: tuple[str, ...]
    """Those of the commands that tell this system from others of similar names."""
    ask: Callable[[str, str], list[str]]
    """Return the command, for a job's number and this user's name."""
    read: Callable[[str, CommandResult], Allocation | None]
    """Return its answer about that number, None for a job that the system does not know.

    Raises `BackendUnavailable` where it did not answer.
    """
    of_process: Callable[[Mapping[str, str]], str]
    """Return the number of the job that a process with these variables is in; empty for none."""
    variables: Callable[[str, Sequence[tuple[list[str], Share]]], dict[str, str]] = (
        lambda id, shares: {}
    )
    """Return what the system sets in a job, by which launchers join it; nothing if they need none.

    Its number is given, and its shares, each with its hosts.
    """
    nodes_variable: str = ""
    """The one of `variables` that names a job's nodes; empty if there is none."""
    end_variable: str = ""
    """The variable with the epoch seconds of a job's end; empty if there is none."""
    launchers: tuple[str, ...] = ()
    """Launchers that start ranks in jobs of this system only."""


@frozen
class Question:
    """A command that is run before a start, whose answer completes the profile."""

    argv: tuple[str, ...]
    lasting: bool = False
    """True if an answer stays valid as long as the process that got it."""


@frozen
class Amounts:
    """Variables of a job that hold what it has on each node; empty for those that a system lacks.

    ``memory`` and ``memory_per_core`` are in MiB.
    """

    gpus: str = ""
    memory: str = ""
    memory_per_core: str = ""
    cores: str = ""
    """Cores, if the list of nodes counts something else."""
    whole_nodes: bool = False
    """True if jobs have all cores of their nodes, whatever the list of nodes counts."""


class Backend(Protocol):
    """Pure functions in the order in which a job lives; a backend runs nothing.

    Three answers, never two: a *listed* job has a state; of one that is *not listed* history, its
    exit file or the system's own words (`denies`) prove the end; *no answer*
    (`BackendUnavailable`) changes nothing.

    Dialects inherit this class and state all attributes, also those that are empty.  They define
    each call, or name it in ``lacks``.
    """

    name: str
    title: str
    """The batch system's name for users."""
    syntax: Syntax
    """The form of directives; `NO_DIRECTIVES` for a system without."""
    lacks: frozenset[str]
    """Calls that the system has nothing for; their results are empty."""
    poll_seconds: float = 10.0
    """Time between two looks of the head at its workers, files and listings; `status_cache` says
    how often the system itself is asked."""
    hurry_seconds: float = 2.0
    """The same while a change that was asked for is under way."""
    most_tasks: int
    """The most jobs that one submission may hold."""
    job_class: str
    """dask-jobqueue's class of such jobs, such as ``slurm.SLURMJob``; empty where it has none."""
    task: str
    """A job's number within its submission, from 0, as a shell expands it in the job."""
    restarts: str
    """The number of restarts of the job, as a shell expands it in the job."""
    listing_proves: bool
    """True if a job missing from the listing has ended; on most systems that is no evidence."""
    keeps_ended: bool
    """True if ended jobs are listed until they are removed."""
    on_this_machine: bool = False
    """True if jobs are processes of the head's machine, started by a server of its own."""
    simulated: bool = False
    """True if a simulation runs the jobs."""
    launchers: frozenset[str]
    """Launchers that start ranks in jobs of the system."""
    unasked: frozenset[str]
    """Keys of ``job`` that the system cannot be asked for, and that a dialect does not refuse."""
    job_variables: tuple[str, ...]
    """Variables that are all set in a job; the first is the job's number."""
    job_words: str = ""
    """The job's name for users, given its number; empty for one such as ``Slurm job {}``."""
    job_prefixes: tuple[str, ...]
    """Prefixes of the variables that describe a job to its own processes."""
    node_lists: tuple[tuple[str, ...], ...]
    """Variables of a job that list its nodes, each behind its form in `node.node_list`."""
    steering: tuple[str, ...]
    """Prefixes of variables by which a user filters, formats, delays or answers for commands."""
    locating: tuple[str, ...]
    """Variables of those names by which commands find the system, and which stay."""
    selecting: tuple[str, ...]
    """Variables that say which of several such systems a command speaks to."""
    command_variables: tuple[tuple[str, str], ...] = ()
    """Variables that each command whose answer is read gets, and their values."""
    own_logs: tuple[str, ...]
    """Patterns of files that the system makes by itself in the directory of the submission.

    ``{mark}``, ``{number}`` and ``{task}`` stand for patterns of the job.
    """
    needs_node: bool
    """True if a shell in a job needs the name of one of its nodes."""
    rehearsal: tuple[str, ...]
    """Options with which `submit` says what would become of a job, and submits nothing."""
    interactive: tuple[tuple[str, ...], tuple[str, ...]] | None
    """Text before and after a job's options in the command for an interactive job."""
    batch_only: frozenset[str]
    """Options that a job with a user in it has no use for, or that `interactive` does not take."""
    remarks: re.Pattern[str] | None
    """Messages on standard error that a whole listing may have: no jobs, or no such ids."""
    submit_host: re.Pattern[str] | None = None
    """The host of a job's submission, in the answer of `look_up` or of `status` for its id."""
    amounts: Amounts = Amounts()
    personal_files: tuple[str, ...] = ()
    """Files below the home directory by which users change the answers of commands, where no option
    of ours takes back all that they can set; messages name them."""
    image_option: str = ""
    """Option of a directive that runs the job in a container's image."""

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        """Return the lines of the script's head that ask for the job's resources.

        Parameters
        ----------
        job
            What to ask for.
        mark
            The submission's tag.
        output
            File for what the system itself or the shell says before the job's log is open.
        """

    def submit(self, submission: Submission) -> list[str]:
        """Return the command that submits ``submission.count`` like jobs under one tag."""

    def stdin(self, submission: Submission) -> str:
        """Return what the submit command reads on its standard input; empty where it reads none."""
        return ""

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        """Return the ids of the jobs, one for each task in order.

        Raises
        ------
        BackendError
            The system refused; its words are in ``detail``.
        BackendUnavailable
            It did not answer: the jobs may or may not exist.
        """

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        """Return one command that lists all jobs of the user, or these."""

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        """Return the listed jobs by id; raises `BackendUnavailable` where there was no answer.

        A record that cannot be read is a job in an unknown state, or `UNREAD` without an id.
        """

    def look_up(self, id: str) -> list[str] | None:
        """Return the command that asks about one job alone, None if there is none.

        Its answer is read by `parse_status` and by `denies`.
        """
        return None

    def denies(self, result: CommandResult, id: str) -> bool:
        """Return whether an answer says, in the system's own words, that it has no such job."""
        return False

    def history(self, ids: Sequence[str]) -> list[str] | None:
        """Return the command that asks for the end of jobs, None where nothing accounts."""
        return None

    def parse_history(self, result: CommandResult) -> dict[str, JobStatus]:
        """Return what accounting knows, by id."""
        return {}

    def find(self, marks: Sequence[str]) -> list[str] | None:
        """Return the command that asks for jobs by their tags, also for those that have ended.

        Its answer is read by `parse_history`.  None where the listing tells all that is known.
        """
        return None

    def explain(self, status: JobStatus) -> str:
        """Return one sentence about why a job waits or ended, and what to change."""

    def cancel(self, ids: Sequence[str]) -> list[str]:
        """Return the command that asks to end jobs; the next status is the truth."""

    def routing(self, job: Sent) -> Routing:
        """Return how commands find a job that is sent to another part of the system.

        What lists and cancels reads no script, and knows no arguments of the submit command.
        """
        return Routing()

    def enter(self, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
        """Return the command that runs other words inside a job.

        By ssh, for a system without a way of its own: many sites allow it on the nodes of one's
        own jobs, outside of the job's limits.

        Parameters
        ----------
        node
            The one of the job's nodes that is meant; empty for the first one.
        terminal
            Whether a user sits at a terminal, which the words then get.
        """
        return ["ssh", *(["-t"] if terminal else []), node, shlex.join(words)]

    def allocation(self) -> AllocationQuery | None:
        """Return how a job is asked about that is not ours; None where that is not known."""
        return None

    def capacity(self) -> list[str] | None:
        """Return the command that tells free and total GPUs, or None."""
        return None

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        """Return free and total GPUs per partition."""
        return []

    def survey(self, user: str) -> dict[str, list[str]]:
        """Return the commands that describe the site to a user, by a name for their answers.

        They only read.  Empty if this version cannot read what the system reports.
        """
        return {}

    def parse_survey(self, answers: Mapping[str, CommandResult]) -> Site:
        """Return queues with GPUs, and what the user may use; raises `BackendUnavailable`.

        What no answer contains is left empty: a guess would become a value of a profile.
        """
        return Site()

    def array_of(self, id: str) -> str:
        """Return the id under which the end of tasks that never started is listed."""
        return id

    def unused_keys(self, launcher: str) -> tuple[str, ...]:
        """Return the keys of a profile that have no meaning on this system, with a launcher."""
        return ("job.submit_by", "existing")

    def questions(self, job: Sent, variables: Mapping[str, str]) -> list[Question]:
        """Return the commands whose answers `completed` reads before a start."""
        return []

    def completed(
        self,
        jobs: Sequence[Sent],
        results: Sequence[CommandResult],
        variables: Mapping[str, str],
        *,
        given: Sequence[str] = (),
        owned: bool = True,
    ) -> list[Destination]:
        """Return where jobs are sent, with what the profile leaves open.

        Parameters
        ----------
        jobs
            The profile's, then those of its worker groups.
        results
            One for each question about the first of them.
        variables
            Of the process that starts the cluster.
        given
            Options that the profile sets by other keys.
        owned
            Whether the jobs go with the process that starts them.
        """
        return [
            Destination(job.account, tuple(job.directives), tuple(job.submit_args)) for job in jobs
        ]

    def on_a_node(self, variables: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the variables of commands on a node, and beginnings of arguments to leave out."""
        return dict(variables), ()

    def interactive_line(self, directives: Sequence[str], arguments: Sequence[str] = ()) -> str:
        """Return what to type for an allocation as large as one job of a profile.

        Parameters
        ----------
        directives
            The lines of the job's script.
        arguments
            What the profile adds to the command that submits.

        Returns
        -------
        A line for a shell; empty where the system has no such command, or begins sessions otherwise
        (HTCondor's are described in a file).
        """
        if self.interactive is None:
            return ""
        before, after = self.interactive
        prefix, words = f"{self.syntax.prefix} ", list(arguments)
        for line in directives:
            if line.startswith(prefix) and self.syntax.option_of(line)[0] not in self.batch_only:
                words += self.syntax.words(line.removeprefix(prefix).strip())
        return shlex.join([*before, *words, *after])


def least(amounts: Iterable[int | None]) -> int:
    """Return the smallest amount, 0 where one is unknown: every node must have as much."""
    return min((amount or 0 for amount in amounts), default=0)


ENDS = {
    JobState.SUSPENDED: "Suspended by the site; it continues when it is resumed.",
    JobState.TIMEOUT: "It reached its walltime; ask for a longer one.",
    JobState.OUT_OF_MEMORY: "It used more memory than job.memory asks for; ask for more.",
    JobState.NODE_FAIL: "Its node failed.",
    JobState.PREEMPTED: "A job of higher priority took its place.",
    JobState.CANCELLED: "It was cancelled by a user.",
}
"""Sentences about states that need no reason."""
MEANINGS = {126: "command cannot be executed", 127: "command not found"}
"""Of exit codes, in every shell and language: POSIX, Shell Command Language 2.8.2."""


UNREAD = JobStatus("", JobState.UNKNOWN)
"""A record of a listing that cannot be read, and in which no id is found: with it a listing does
not prove that a job is missing."""


def by_word(**words: str) -> dict[str, JobState]:
    """Return a system's words for states as a table: ``by_word(pending="Q W", running="R")``."""
    return {word: JobState(state) for state, each in words.items() for word in each.split()}


def program_of(argv: Sequence[str]) -> str:
    """Return the program of a command; a fixed script is called as the one that it runs first."""
    if argv[0] == "sh":
        return argv[3]
    return next(word for word in argv if word != "env" and "=" not in word)


def answered(
    title: str, result: CommandResult, codes: Sequence[int] = (0,), *, silent: object = None
) -> str:
    """Return what a command of a system printed.

    Parameters
    ----------
    codes
        Exit codes of answers.
    silent
        True if the output says that there is no answer, whatever the exit code.

    Raises
    ------
    BackendUnavailable
        There is no answer.
    """
    if result.exit_code not in codes or silent:
        words = f"{title} did not answer {program_of(result.argv)}."
        raise BackendUnavailable(words, detail=result.stderr)
    return result.stdout


def worded(code: int | None) -> str:
    """Return an exit code with its meaning, where it has one: ``127 (command not found)``."""
    meaning = MEANINGS.get(code) if code is not None else None
    return f"{code} ({meaning})" if meaning else str(code)


def ended_with(code: int | None, signal: str = "") -> str:
    """Return the sentence about a job that ended with an exit code, negative for a signal.

    Parameters
    ----------
    signal
        The end of the sentence about a signal.
    """
    if code is not None and code < 0:
        return f"It was killed by signal {-code}{signal}."
    return f"It ended with exit code {worded(code)}."


def json_in(text: str, opening: str = r"^\s*\{") -> Any:
    """Return what is in JSON that other lines may precede; None if there is none.

    Parameters
    ----------
    opening
        The pattern of its beginning, by default of an object on a line of its own.  A note before
        it may begin with the bracket of a list.
    """
    start = re.search(opening, text, re.MULTILINE)
    try:
        return json.loads(text[start.start() :], strict=False) if start else None
    except (ValueError, RecursionError):
        return None


def xml_of(text: str, title: str) -> Element:
    """Read XML, which other lines may precede.

    Raises
    ------
    BackendUnavailable
        It is none.
    """
    from xml.etree.ElementTree import ParseError, fromstring  # two systems write XML

    try:
        return fromstring(text[max(0, text.find("<")) :])  # noqa: S314  # expat bounds entities
    except ParseError as error:
        raise BackendUnavailable(
            f"{title} answered with XML that cannot be read.", detail=str(error)
        ) from error


def local_time(text: object) -> float | None:
    """Read ``2026-11-28T00:32:17`` and ``Sat Nov 28 00:45:36 2026``, by default local times."""
    try:
        return datetime.fromisoformat(str(text).strip().replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        pass
    try:
        return time.mktime(time.strptime(str(text).strip()))
    except (ValueError, OverflowError):
        return None


def epoch_seconds(value: object) -> float | None:
    """Return a positive time since the epoch; systems write 0 and null where there is none."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 0 < number < 2**40 else None


def exit_code_of_wait(status: int) -> int:
    """Turn a wait status into an exit code, negative for a signal."""
    return -(status & 0x7F) if status & 0x7F else status >> 8
