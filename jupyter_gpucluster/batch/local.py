"""The local machine as a batch system: jobs are process groups under a job server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..core.errors import BackendError, BackendUnavailable
from ..core.job import Capacity, CommandResult, JobShape, JobState, JobStatus, Submission
from .base import Backend, worded
from .directives import NO_DIRECTIVES, Syntax

UNUSED = (
    "job.submit_by", "job.nodes", "job.walltime", "job.queue", "job.account", "job.directives",
    "job.skip_directives", "job.submit_args", "job.cancel_args", "launcher", "head.placement",
    "head.interface", "head.submit", "head.gpus", "network.interface", "network.ports",
    "policy.drain_before", "policy.at_walltime", "existing",
)  # fmt: skip
UNUSED_SPREAD = tuple({*UNUSED} - {"launcher", "head.interface", "network.interface"})
"""The same where a launcher spreads workers over the nodes of an allocation."""


class Local(Backend):
    """Dialect of `head.local_scheduler`."""

    name = "local"
    command = "gpucluster-jobs"
    """The job server answers this name on its socket; no such file exists."""
    server = "This machine's job server"
    partition = "this machine"
    silence = "No worker can start or end."
    title = "this machine"
    syntax: Syntax = NO_DIRECTIVES
    lacks = frozenset("stdin look_up denies history parse_history find routing allocation".split())
    job_class = ""
    poll_seconds = 1.0
    hurry_seconds = 0.05
    most_tasks = 1000
    task = ""
    restarts = ""
    listing_proves = True
    keeps_ended = False
    on_this_machine = True
    launchers = frozenset({"none", "srun", "mpirun", "mpiexec", "jsrun", "aprun", "ssh"})
    unasked: frozenset[str] = frozenset()
    job_variables = ()
    job_prefixes = ()
    node_lists = ()
    steering = ()
    locating = ()
    selecting = ()
    own_logs = ()
    needs_node = False
    rehearsal = ()
    interactive = None
    batch_only = frozenset()
    remarks = None

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        return []

    def unused_keys(self, launcher: str) -> tuple[str, ...]:
        return UNUSED if launcher == "none" else UNUSED_SPREAD

    def submit(self, submission: Submission) -> list[str]:
        argv = [self.command, "submit", "--mark", submission.mark, "--count", str(submission.count)]
        if submission.gpus:
            argv += ["--gpus", str(submission.gpus)]
        if submission.memory:
            argv += ["--memory", str(submission.memory)]
        argv.append(submission.script)
        if submission.worker_argv:
            argv += ["--", *submission.worker_argv]
        return argv

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        return tuple(str(id) for id in self.answer(result))

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        return [self.command, "status"]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        if result.exit_code:
            # A listing that is refused says nothing of the jobs.
            raise BackendUnavailable(f"{self.server} lists no jobs.", detail=result.stderr)
        return {task["id"]: self.job(task) for task in self.answer(result)}

    def explain(self, status: JobStatus) -> str:
        if status.state is JobState.PENDING:
            return "All GPUs of this machine that the cluster may use are taken."
        if status.state is JobState.OUT_OF_MEMORY:
            return (
                "The worker reached its memory limit and was ended; use fewer, larger workers, "
                "smaller chunks, or a higher memory option."
            )
        if status.state is JobState.FAILED:
            if status.exit_code is None:
                return f"The worker could not be started ({status.reason})."
            if status.exit_code < 0:
                return f"The worker was killed by signal {-status.exit_code}."
            return f"The worker ended by itself with exit code {worded(status.exit_code)}."
        return ""

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return [self.command, "cancel", *ids]

    def enter(self, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
        return list(words)

    def capacity(self) -> list[str] | None:
        return [self.command, "capacity"]

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        answer = self.answer(result)
        return [Capacity(self.partition, answer["free"], answer["total"])]

    def answer(self, result: CommandResult) -> Any:
        """Return what the job server sent."""
        if result.exit_code is None:
            raise BackendUnavailable(self.silence, hint=result.stderr)
        if result.exit_code:
            raise BackendError(f"{self.server} refused.", detail=result.stderr)
        try:
            return json.loads(result.stdout)
        except ValueError as error:
            raise BackendUnavailable(
                f"{self.server} sent an unreadable answer.", detail=result.stdout
            ) from error

    def job(self, task: dict[str, Any]) -> JobStatus:
        """Read one job of a listing."""
        if task["state"] == "pending":
            state = JobState.PENDING
        elif task["state"] == "running":
            state = JobState.RUNNING
        elif task["reason"] == "memory":
            state = JobState.OUT_OF_MEMORY
        elif task["reason"] in ("cancelled", "head gone"):
            state = JobState.CANCELLED
        else:
            state = JobState.DONE if task["exit_code"] == 0 else JobState.FAILED
        return JobStatus(
            id=task["id"],
            state=state,
            mark=task["mark"],
            task=task["number"],
            reason=task["reason"],
            exit_code=task["exit_code"],
            process=(task["pid"], task["started_ticks"]) if task["pid"] else (),
            devices=tuple(task["devices"]),
            started=task["started"],
            ended=task["ended"],
        )


def limit_command(ids: Sequence[str], memory: int) -> list[str]:
    """Return the request that ends these jobs from now on when they use more bytes."""
    return [Local.command, "limit", "--memory", str(memory), *ids]


def parse_limit(result: CommandResult) -> tuple[str, ...]:
    """Return the jobs that use more now, whose limit has not changed."""
    return tuple(str(id) for id in Local().answer(result))
