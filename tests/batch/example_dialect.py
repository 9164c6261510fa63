"""Flux (https://flux-framework.readthedocs.io), as another package would add it: one file.

The example of CONTRIBUTING.md.  It was written from the manual, and was never tried on a real Flux.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from jupyter_gpucluster.batch.base import Backend, ended_with
from jupyter_gpucluster.batch.directives import Syntax
from jupyter_gpucluster.batch.quoting import directive_value, memory_of
from jupyter_gpucluster.batch.refusal import Phrases, unsubmitted
from jupyter_gpucluster.core.errors import BackendUnavailable
from jupyter_gpucluster.core.job import CommandResult, JobShape, JobState, JobStatus, Submission

PHRASES = Phrases((("invalid queue", "Set job.queue to a queue of this site."),))
STATES = {
    "DEPEND": JobState.PENDING, "PRIORITY": JobState.PENDING, "SCHED": JobState.PENDING,
    "RUN": JobState.RUNNING, "CLEANUP": JobState.ENDING, "COMPLETED": JobState.DONE,
    "FAILED": JobState.FAILED, "CANCELED": JobState.CANCELLED, "TIMEOUT": JobState.TIMEOUT,
}  # fmt: skip


class Flux(Backend):
    """Dialect of flux batch, jobs and cancel."""

    name = "flux"
    title = "Flux"
    syntax = Syntax(
        "#flux:",
        keys={
            "--queue": ("queue",), "--bank": ("account",), "--time-limit": ("walltime",),
            "--nodes": ("nodes",), "--cores-per-slot": ("cpus",), "--gpus-per-slot": ("gpus",),
        },
        name="--job-name",
        arrays=("--cc", "--bcc"),
        waits=("--wait", "--watch"),
        synonyms={"-q": "--queue", "-B": "--bank", "-t": "--time-limit", "-N": "--nodes"},
    )  # fmt: skip
    lacks = frozenset(
        "stdin history parse_history find routing enter allocation capacity parse_capacity".split()
    )
    most_tasks = 1
    job_class = ""
    task = restarts = "0"
    listing_proves = keeps_ended = on_this_machine = simulated = False
    launchers = frozenset({"none", "mpirun", "mpiexec", "ssh"})
    unasked = frozenset({"memory", "gpu_type"})
    job_variables = ("FLUX_JOB_ID",)
    job_words = "Flux job {}"
    job_prefixes = ("FLUX_",)
    node_lists = ()
    steering = ("FLUX_JOBS_",)
    locating = selecting = ("FLUX_URI",)
    command_variables = ()
    own_logs = (r"flux-{number}\.out",)
    needs_node = True
    rehearsal = ("--dry-run",)
    interactive = (("flux", "alloc"), ())
    batch_only = frozenset({"--job-name", "--output"})
    remarks = None

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        memory_of(job, self.title)
        lines = [f"--job-name={directive_value(mark, 'mark')}"]
        lines += [f"--output={directive_value(output, 'output')}", f"--nodes={job.nodes}"]
        lines.append(f"--nslots={job.nodes}")
        for option, key in (("queue", "queue"), ("bank", "account")):
            if value := getattr(job, key):
                lines.append(f"--{option}={directive_value(value, f'job.{key}')}")
        if job.walltime is not None:
            lines.append(f"--time-limit={job.walltime}s")
        if job.cpus is not None:
            lines.append(f"--cores-per-slot={-(-job.cpus // job.nodes)}")
        if job.gpus and job.gpu_request != "none":
            lines.append(f"--gpus-per-slot={-(-job.gpus // job.nodes)}")
        return [f"#flux: {line}" for line in lines]

    def submit(self, submission: Submission) -> list[str]:
        return ["flux", "batch", submission.script]

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        words = result.stdout.split()
        if result.exit_code == 0 and len(words) == 1 and words[0].isalnum():
            return (words[0],)
        raise unsubmitted(self, submission, result, PHRASES, "broker" in result.stderr)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        return ["flux", "jobs", "-a", "--json", f"--user={user}"]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        try:
            jobs = json.loads(result.stdout if result.exit_code == 0 else "")["jobs"]
            return {job["id"]: _status(job) for job in jobs}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            text = result.stderr or result.stdout
            raise BackendUnavailable("Flux did not answer flux jobs.", detail=text) from None

    def look_up(self, id: str) -> list[str] | None:
        return ["flux", "jobs", "--json", id]

    def denies(self, result: CommandResult, id: str) -> bool:
        return f"JobID {id} unknown" in result.stderr

    def explain(self, status: JobStatus) -> str:
        waits = status.state is JobState.PENDING
        return "Waits in the queue." if waits else ended_with(status.exit_code)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["flux", "cancel", *ids]


def _status(job: dict[str, str]) -> JobStatus:
    word, code = job["result"] if job["state"] == "INACTIVE" else job["state"], job["returncode"]
    exit_code = int(code) if str(code).isdigit() else None
    state = STATES.get(word, JobState.UNKNOWN)
    return JobStatus(str(job["id"]), state, job["name"], exit_code=exit_code)
