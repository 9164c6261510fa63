"""The simulated site: a dialect as small as possible, for trying every state without a cluster."""

from __future__ import annotations

from typing import Any

from ..core.errors import BackendError
from ..core.job import CommandResult, JobShape, JobState, JobStatus, Submission
from .base import ENDS, ended_with
from .directives import Syntax
from .job_classes import named
from .local import Local

WAITING = {
    "priority": "Other jobs are before it in the queue.",
    "resources": "Next in line; it starts as soon as enough GPUs are free.",
    "limit": "You hold as many GPUs of this queue as one user may; stop something, or wait.",
    "down": "The nodes that could run it are down.",
    "preempted": "A job of higher priority took its place; it starts again by itself.",
}
REFUSALS = (
    ("walltime", "Ask for a shorter walltime, or choose a queue that allows more."),
    ("account", "Choose another account."),
    ("queue", "Choose one of these queues."),
    ("nodes", "Ask for fewer GPUs a job."),
)
"""Keys that a refusal names, and the fix."""
UNUSED = (
    "job.submit_by", "job.submit_args", "job.cancel_args", "launcher", "head.placement",
    "head.interface", "head.submit", "head.gpus", "network.interface", "network.ports",
    "environment.container", "existing",
)  # fmt: skip


class Demo(Local):
    """Dialect of `head.demoserver`."""

    name = "demo"
    command = "gpucluster-demo"
    server = "The simulated site"
    silence = "The simulated site does not answer."
    partition = "simulated"
    title = "the simulated site"
    syntax = Syntax(
        "#DEMO",
        keys={
            "--queue": ("queue",), "--account": ("account",), "--walltime": ("walltime",),
            "--nodes": ("nodes",), "--gpus": ("gpus",),
        },
        name="--job-name",
        arrays=(),
        waits=(),
    )  # fmt: skip
    simulated = True
    unasked = frozenset({"cpus", "memory", "gpu_type"})
    most_tasks = 100

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        values = named(job, mark)
        asked = {
            "job-name": values["job_name"], "output": output, "queue": values.get("queue"),
            "account": values.get("account"), "nodes": job.nodes, "gpus": job.gpus,
            "walltime": values.get("walltime"),
        }  # fmt: skip
        return [f"#DEMO --{name}={value}" for name, value in asked.items() if value is not None]

    def unused_keys(self, launcher: str) -> tuple[str, ...]:
        return UNUSED

    def submit(self, submission: Submission) -> list[str]:
        argv = [self.command, "submit", "--mark", submission.mark, "--count", str(submission.count)]
        argv += ["--workers", str(submission.workers), submission.script]
        if submission.worker_argv:
            argv += ["--", *submission.worker_argv]
        return argv

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        if result.exit_code:
            words = result.stderr.strip().rstrip(".")
            raise BackendError(
                f"The simulated site refused the job: {words}.",
                hint=next((fix for part, fix in REFUSALS if part in words), ""),
            )
        return tuple(str(id) for id in self.answer(result))

    def explain(self, status: JobStatus) -> str:
        if status.state is JobState.PENDING:
            return WAITING.get(status.reason, "Waits in the queue.")
        if status.state is JobState.FAILED:
            return ended_with(status.exit_code)
        return ENDS.get(status.state, "")

    def job(self, task: dict[str, Any]) -> JobStatus:
        return JobStatus(
            id=task["id"],
            # The simulated site has our words.
            state=JobState(task["outcome"] if task["state"] == "over" else task["state"]),
            mark=task["mark"],
            task=task["number"],
            reason=task["reason"],
            nodes=tuple(task["nodes"]),
            exit_code=task["exit_code"],
            process=tuple(task["process"]),
            started=task["started"],
            ended=task["ended"],
            expected_start=task["expected_start"],
            ends=task["ends"],
        )
