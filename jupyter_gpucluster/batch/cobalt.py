"""Cobalt, the batch system of Theta and ThetaGPU: its manual's pages qsub, qstat and qdel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..core.errors import BackendUnavailable, InvalidInput
from ..core.job import CommandResult, JobShape, JobState, JobStatus, Submission
from .base import UNREAD, Amounts, Backend, answered, by_word
from .directives import Syntax
from .job_classes import named
from .quoting import directive_value, gpu_way
from .reasons import Reasons
from .refusal import unsubmitted

REASONS = Reasons("cobalt")
HEADER = ("JobID", "JobName", "State", "Location")
FIELD = re.compile(r"^\s*(\w+)\s*: ?(.*?)\s*$", re.ASCII)
ID = re.compile(r"^\s*(\d{1,12})\s*$", re.MULTILINE | re.ASCII)
"""The id stands alone in a line; the queue and the memory mode are told in lines before it."""
SILENT = re.compile(
    r"failed to connect|component lookup|unable to find the queue manager|connection (?:refused|"
    r"reset|timed out)|FATAL EXCEPTION|cannot communicate",
    re.IGNORECASE,
)
"""No answer, as opposed to a refusal."""
STATES = by_word(
    pending="queued starting maxrun_hold dep_hold preempted",
    held="dep_fail user_hold admin_hold hold",
    running="running",
    ending="preempting killing exiting done",
)
"""Ended jobs vanish; what became of one is in the file that its script leaves."""


class CobaltSyntax(Syntax):
    """Directives of qsub, some of whose values are lists with colons."""

    def requests_of(self, line: str) -> tuple[str, ...]:
        option, value = self.option_of(line)
        if option not in self.joined:
            return super().requests_of(line)
        return tuple(f"{option} {each.partition('=')[0]}" for each in value.split(":"))


SYNTAX = CobaltSyntax(
    "#COBALT",
    # In queues that count GPUs, -n is the number of GPUs.
    keys={"-q": ("queue",), "-A": ("account",), "-t": ("walltime",), "-n": ("nodes", "gpus")},
    name="--jobname",
    arrays=(),
    waits=("-I", "--interactive"),
    synonyms={"--project": "-A", "--queue": "-q", "--time": "-t", "--nodecount": "-n"},
    joined={"--attrs": "#COBALT --attrs {0}:{1}", "--env": "#COBALT --env {0}:{1}"},
    glued=True,
    clock={1: (60,), 3: (3600, 60, 1)},
)


class Cobalt(Backend):
    """Dialect of Cobalt's qsub, qstat and qdel."""

    name = "cobalt"
    title = "Cobalt"
    syntax: Syntax = SYNTAX
    # It forgets ended jobs at once; their files tell.  What qstat tells of a job that is not ours
    # has not been seen.
    lacks = frozenset(
        "stdin history parse_history find routing enter allocation capacity parse_capacity".split()
    )
    job_class = ""
    most_tasks = 1
    task = "0"
    restarts = "0"
    listing_proves = False
    keeps_ended = False
    launchers = frozenset({"none", "mpirun", "mpiexec", "ssh", "aprun"})
    # Jobs get whole nodes; only -n of queues that count GPUs asks for these.
    unasked = frozenset({"cpus", "memory", "gpus"})
    job_variables = ("COBALT_JOBID",)
    job_prefixes = ("COBALT_",)
    node_lists = (("file", "COBALT_NODEFILE"),)
    amounts = Amounts(whole_nodes=True)
    steering = ("QSTAT_HEADER", "CQSTAT_HEADER")
    locating = ("COBALT_CONFIG_FILES",)
    selecting = ("COBALT_CONFIG_FILES",)
    own_logs = (r"{number}\.(?:output|error|cobaltlog)",)
    needs_node = True
    rehearsal = ()
    interactive = (("qsub", "-I"), ())
    batch_only = frozenset("--jobname -o -e -O --mode".split())
    remarks = None
    gpu_requests = ("nodes", "gpus", "none")

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        file = directive_value(output, "output")
        minutes = None if job.walltime is None else -(-job.walltime // 60) * 60
        values = named(replace(job, walltime=minutes), mark)
        lines = [f"--jobname {values['job_name']}", f"-o {file}", f"-e {file}"]
        options = {"queue": "-q", "account": "-A", "walltime": "-t"}
        lines += [f"{option} {values[key]}" for key, option in options.items() if key in values]
        return [f"#COBALT {line}" for line in (*lines, f"-n {self.amount(job)}")]

    def amount(self, job: JobShape) -> int:
        """Return what ``-n`` counts: nodes, in some queues GPUs.  Nothing else can be asked for."""
        request = gpu_way(job, self.title, self.gpu_requests)
        if job.gpu_type:
            raise InvalidInput(
                "Cobalt cannot ask for a GPU type.",
                hint="Choose a queue that has such GPUs, or add --attrs to job.directives.",
                detail="job.gpu_type",
            )
        return job.gpus if request == "gpus" and job.gpus else job.nodes

    def submit(self, submission: Submission) -> list[str]:
        return ["qsub", "--mode", "script", submission.script]

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        # Filters of the site may make qsub exit with 1 although it printed the id of a new job.
        found = ID.findall(result.stdout)
        refused = re.search(r"\berror\b|\bfailed\b", result.stderr, re.IGNORECASE)
        if result.exit_code is not None and len(found) == 1 and not (result.exit_code and refused):
            return (found[0],)
        unclear = found or SILENT.search(result.stderr + result.stdout)
        raise unsubmitted(self, submission, result, REASONS.phrases, unclear)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        # With ids it exits with 1 when all of them have ended; -l is the form without columns.
        return ["qstat", "-l", "--header", ":".join(HEADER), "-u", user]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        found = {}
        text = answered(self.title, result, silent=SILENT.search(result.stderr))
        for record in _records(text):
            id, location = record["JobID"], record.get("Location", "")
            id = id if id.isascii() and id.isdigit() else UNREAD.id
            word = record.get("State", "")
            found[id] = JobStatus(
                id=id,
                state=STATES.get(word, JobState.UNKNOWN),
                mark=record.get("JobName", ""),
                reason="" if word in ("queued", "running") else word,
                nodes=() if location in ("", "None", "N/A", "-") else (location,),
                unsatisfiable=REASONS.find("waiting", word).unsatisfiable,
            )
        if text.strip() and not found:
            raise BackendUnavailable("Cobalt's answer to qstat cannot be read.")
        return found

    def look_up(self, id: str) -> list[str] | None:
        return ["qstat", "-l", "--header", ":".join(HEADER), id]

    def denies(self, result: CommandResult, id: str) -> bool:
        # In its source it exits with 1 and no word only where there is no such job.
        said = (result.stdout + result.stderr).strip()
        return result.exit_code == 1 and not said and result.argv[-1] == id

    def explain(self, status: JobStatus) -> str:
        return REASONS.explain(status, self.title, {})

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["qdel", *ids]


def _records(text: str) -> Iterator[dict[str, str]]:
    """Yield the blocks of qstat's vertical form, each of which begins with the job's id."""
    record: dict[str, str] = {}
    for line in text.splitlines():
        match = FIELD.match(line)
        if match is None or match[1] not in HEADER:
            continue
        if match[1] == "JobID":
            if record:
                yield record
            record = {}
        elif not record:
            continue
        record[match[1]] = match[2]
    if record:
        yield record
