"""The contract of a backend: the dialect of one queueing system, argv and text in, records out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..core.fast_dataclass import frozen
from ..core.job import Allocation, Capacity, CommandResult, JobShape, JobStatus, Share, Submission


class Sent(Protocol):
    """What tells where a job is sent to: a profile's ``job``, or a shape."""

    @property
    def account(self) -> str:
        """Who pays, which on Kubernetes is a namespace."""

    @property
    def directives(self) -> Sequence[str]:
        """The profile's own lines."""

    @property
    def submit_args(self) -> Sequence[str]:
        """More arguments of the submit command."""


@frozen
class Routing:
    """How commands find the jobs that a profile sends to another part of a system."""

    variables: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    """Those of commands that end or enter jobs."""


@dataclass(frozen=True)
class AllocationQuery:
    """How one batch system is asked about a job that is there already, by its number."""

    programs: tuple[str, ...]
    """Those of the commands that tell this system from others of similar names."""
    ask: Callable[[str, str], list[str]]
    """Return the command, for a job's number and this user's name."""
    read: Callable[[str, CommandResult], Allocation | None]
    """Return what it answered about that number, None for a job that the system does not know.

    Raises `BackendUnavailable` where it did not answer.
    """
    variables: Callable[[str, Sequence[tuple[list[str], Share]]], dict[str, str]]
    """Return what the system sets in a job, by which launchers join it.

    Its number is given, and its shares, each with its hosts.
    """
    of_process: Callable[[Mapping[str, str]], str]
    """Return the number of the job that a process with these variables is in; empty for none."""
    nodes_variable: str = ""
    """The one of `variables` that names a job's nodes; empty if there is none."""
    launchers: tuple[str, ...] = ()
    """Launchers that start ranks in jobs of this system only."""


class Backend(Protocol):
    """Pure functions in the order in which a job lives; a backend runs nothing.

    Three answers, never two: a *listed* job has a state; of one that is *not listed* history, its
    exit file or the system's own words (`denies`) prove the end; *no answer*
    (`BackendUnavailable`) changes nothing.

    Dialects inherit this class and state all of it, also what is empty; only the last methods have
    a default, since nothing rests on them.
    """

    name: str
    title: str
    """What users call the queueing system."""
    poll_seconds: float
    """Time between two status calls."""
    hurry_seconds: float
    """The same while a change that was asked for is under way."""
    most_tasks: int
    """The most jobs that one submission may hold."""
    prefix: str
    """The word with which a directive begins; empty where there are none."""
    option_keys: Mapping[str, tuple[str, ...]]
    """The keys of ``job`` that each option of a directive or of the submit command sets.

    Where the values of an option have names, ``-l walltime`` is one of them and ``-l`` all.  ``*``
    stands for any text, ``{gpu}`` and ``{memory}`` for names in ``gpu_request`` and
    ``memory_request``.
    """
    job_class: str
    """dask-jobqueue's class of such jobs, such as ``slurm.SLURMJob``; empty where it has none."""
    task: str
    """A job's number within its submission, from 0, as a shell expands it in the job."""
    restarts: str
    """How often the system has restarted the job, as a shell expands it in the job."""
    listing_proves: bool
    """Whether a job has ended that the listing lacks; of most systems that is no evidence."""
    keeps_ended: bool
    """Whether jobs that are over are listed until they are removed."""
    on_this_machine: bool
    """Whether jobs are processes of the head's machine, which a server of its own starts."""
    job_variables: tuple[str, ...]
    """Variables that are all set in a job; the first is the job's number."""
    job_words: str
    """How a user calls the job of that number, such as ``Slurm job {}``."""
    job_prefixes: tuple[str, ...]
    """How the names of variables begin that describe a job to what runs in it."""
    steering: tuple[str, ...]
    """How others begin by which a user filters, formats, delays or answers for commands."""
    locating: tuple[str, ...]
    """Variables of those names by which commands find the system, and which stay."""
    selecting: tuple[str, ...]
    """Variables that say which of several such systems a command speaks to."""
    command_variables: tuple[tuple[str, str], ...]
    """Variables that each command whose answer is read gets, and their values."""
    needs_node: bool
    """Whether the way into a job needs the name of one of its nodes."""
    rehearsal: tuple[str, ...]
    """Options with which `submit` says what would become of a job, and submits nothing."""
    interactive: tuple[tuple[str, ...], tuple[str, ...]] | None
    """What stands before and after a job's options where a user gets a shell in it."""
    batch_only: frozenset[str]
    """Options that a job with a user in it has no use for, or that `interactive` does not take."""
    remarks: re.Pattern[str] | None
    """What a whole listing may have on standard error: that there are no jobs, or no such ids."""

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        """Return the lines of the script's head that ask for the job's resources.

        Parameters
        ----------
        job
            What to ask for.
        mark
            The submission's name.
        output
            File for what the system itself or the shell says before the job's log is open.
        """

    def submit(self, submission: Submission) -> list[str]:
        """Return the command that submits ``submission.count`` like jobs under one mark."""

    def stdin(self, submission: Submission) -> str:
        """Return what the submit command reads on its standard input; empty where it reads none."""

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
        """Return the listed jobs by id; raises `BackendUnavailable` where there was no answer."""

    def look_up(self, id: str) -> list[str] | None:
        """Return the command that asks about one job alone, None if there is none.

        Its answer is read by `parse_status` and by `denies`.
        """

    def denies(self, result: CommandResult, id: str) -> bool:
        """Tell whether an answer says, in the system's own words, that it has no such job."""

    def history(self, ids: Sequence[str]) -> list[str] | None:
        """Return the command that asks for the end of jobs, None where nothing accounts."""

    def parse_history(self, result: CommandResult) -> dict[str, JobStatus]:
        """Return what accounting knows, by id."""

    def find(self, marks: Sequence[str]) -> list[str] | None:
        """Return the command that asks for jobs by their marks, also for those that have ended.

        Its answer is read by `parse_history`.  None where the listing tells all that is known.
        """

    def explain(self, status: JobStatus) -> str:
        """Say in one sentence why a job waits or ended, and what to change."""

    def cancel(self, ids: Sequence[str]) -> list[str]:
        """Return the command that asks to end jobs; the next status is the truth."""

    def routing(self, job: Sent) -> Routing:
        """Return how commands find a job that is sent elsewhere.

        What lists and cancels reads no script, and knows no arguments of the submit command.
        """

    def enter(self, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
        """Return the command that runs other words inside a job.

        Parameters
        ----------
        node
            The one of the job's nodes that is meant; empty for the first one.
        terminal
            Whether a user sits at a terminal, which the words then get.
        """

    def allocation(self) -> AllocationQuery | None:
        """Return how a job is asked about that is not ours; None where that is not known."""

    def capacity(self) -> list[str] | None:
        """Return the command that tells free and total GPUs, or None."""

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        """Return free and total GPUs per partition."""

    def array_of(self, id: str) -> str:
        """Return the id under which the end of tasks that never started is listed."""
        return id

    def unused_keys(self, launcher: str) -> tuple[str, ...]:
        """Return the keys of a profile that have no meaning on this system, with a launcher."""
        return ("job.submit_by", "existing")

    def directive_words(self, text: str) -> list[str]:
        """Return the words of a directive as the system reads them in a script."""
        try:
            return shlex.split(text)
        except ValueError:  # a lone quote; the system reads its lines in a way of its own
            return [text]


def least(amounts: Iterable[int | None]) -> int:
    """Return the smallest amount, 0 where one is not told: every node must have as much."""
    return min((amount or 0 for amount in amounts), default=0)


def sets_nothing(id: str, shares: Sequence[tuple[list[str], Share]]) -> dict[str, str]:
    """Return no variables, for a system whose launchers need none to join a job."""
    return {}
