"""HTCondor: https://htcondor.readthedocs.io on condor_submit, condor_q, condor_history, job ads.

HTCondor reads a description, not a script.  The script's head holds it as ``#CONDOR`` lines, so
that one file says everything; `HTCondor.stdin` makes the description of them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..core.errors import BackendUnavailable, InvalidInput
from ..core.job import Capacity, CommandResult, JobShape, JobState, JobStatus, Submission
from .base import UNREAD, Backend, Routing, Sent, ended_with, epoch_seconds, json_in
from .directives import Syntax
from .job_classes import head
from .quoting import directive_value, gpu_kind, gpu_way, memory_of
from .reasons import Reasons
from .refusal import unsubmitted

REASONS = Reasons("htcondor")
PREFIX = "#CONDOR "
LISTED = (
    "ClusterId", "ProcId", "JobStatus", "JobBatchName", "HoldReason", "HoldReasonCode",
    "LastHoldReasonCode", "RemoveReason", "RemoteHost", "LastRemoteHost", "ExitCode", "ExitSignal",
    "ExitBySignal", "JobCurrentStartDate", "CompletionDate", "EnteredCurrentStatus",
)  # fmt: skip
GPU_SLOTS = ("Machine", "TotalGPUs", "GPUs", "State", "PartitionableSlot", "DynamicSlot")
TERSE = re.compile(r"^(\d+)\.0 - (\d+)\.(\d+)\s*$", re.MULTILINE)
PLAIN = re.compile(r"^(\d+) job\(s\) submitted to cluster (\d+)\.\s*$", re.MULTILINE)
SILENT = re.compile(
    r"failed to (?:connect|fetch ads)|can't (?:connect|find address)|unable to contact"
    r"|connection (?:refused|timed out)|communication error|failed to end transaction|SECMAN:2",
    re.IGNORECASE,
)
"""No answer, as opposed to a refusal."""
STATES = {
    1: JobState.PENDING,
    2: JobState.RUNNING,
    3: JobState.CANCELLED,
    4: JobState.DONE,
    5: JobState.HELD,
    6: JobState.ENDING,
    7: JobState.SUSPENDED,
}
DEAD = "JobStatus == 5 && HoldReasonCode =!= 1 && NumJobStarts > 0"
"""A job that HTCondor held at its end (memory, say) would stay in the queue for ever."""

PAST_WALLTIME = "JobStatus == 2 && time() - JobCurrentStartDate >"
"""The clause of ``periodic_remove`` that ends a job at its walltime."""


class Description(Syntax):
    """Lines of a submit description; HTCondor reads RequestCpus and request_cpus alike."""

    def option_of(self, line: str) -> tuple[str, str]:
        name, _, value = line.removeprefix(PREFIX).partition("=")
        option = name.strip().lower().replace("_", "")
        return self.synonyms.get(option, option), value.strip()


SYNTAX = Description(
    "#CONDOR",
    # Own periodic_remove and require_gpus are joined with ours, so they replace nothing.
    keys={
        "accountinggroup": ("account",), "requestcpus": ("cpus",), "requestgpus": ("gpus",),
        "requestmemory": ("memory",),
    },
    name="batchname",
    arrays=("queue",),
    waits=(),
    others=("requirements = ", "request_disk = "),
    synonyms={"jobbatchname": "batchname"},
    joined={
        "periodicremove": "#CONDOR periodic_remove = ({0}) || ({1})",
        "requiregpus": "#CONDOR require_gpus = ({0}) && ({1})",
    },
    arguments=False,
)  # fmt: skip


class HTCondor(Backend):
    """Dialect of condor_submit, condor_q, condor_history, condor_rm and condor_status."""

    name = "htcondor"
    title = "HTCondor"
    syntax: Syntax = SYNTAX
    # Of an id that it does not know it prints nothing.  What condor_q tells of a job that is not
    # ours has not been seen.
    lacks = frozenset({"denies", "allocation"})
    job_class = "htcondor.HTCondorJob"
    personal_files = (".condor/user_config",)
    most_tasks = 1000
    # The description gives the number of the job as the script's argument.
    task = "${1:-0}"
    restarts = (
        "$(awk -F' = ' '/^NumShadowStarts/ {n = $2 - 1} END {print (n > 0 ? n : 0)}'"
        ' "${_CONDOR_JOB_AD:-/dev/null}")'
    )
    gpu_requests = ("request_gpus", "none")
    listing_proves = False
    keeps_ended = False
    launchers = frozenset({"none", "mpirun", "mpiexec"})
    unasked: frozenset[str] = frozenset()
    job_variables = ("_CONDOR_SLOT",)
    job_prefixes = ("_CONDOR_",)
    node_lists = ()
    # HTCondor reads its settings in small letters, too.
    steering = ("_condor_",)
    locating = ("_CONDOR_SCHEDD_HOST", "_CONDOR_COLLECTOR_HOST")
    selecting = ("CONDOR_CONFIG", "_CONDOR_SCHEDD_HOST", "_CONDOR_COLLECTOR_HOST")
    own_logs = ()
    needs_node = False
    rehearsal = ()
    # Its sessions are described in a file.
    interactive = None
    batch_only = frozenset()
    remarks = None

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        if job.nodes > 1:
            raise InvalidInput(
                "HTCondor gives one machine to a job.",
                hint="Set job.nodes: 1 and ask for more workers instead.",
                detail="job.nodes",
            )
        if job.queue:
            raise InvalidInput(
                "HTCondor has no queues.",
                hint="Leave job.queue empty; a pool's own ways go into job.directives, such as "
                'MY.JobFlavour = "longlunch".',
                detail="job.queue",
            )
        memory, asked = memory_of(job, self.title), {}
        if job.cpus is not None:
            asked["RequestCpus"] = job.cpus
        if memory is not None:
            asked["RequestMemory"] = memory // 2**20
        told = {"name": directive_value(mark, "mark"), "job_extra_directives": asked}
        # The rest is for a count of its own, or of what is not asked for.
        kept = ("batch_name = ", *(f"{name} = " for name in asked))
        written = [x for x in head(self.job_class, told) if x.startswith(kept)]
        file = directive_value(output, "output").removesuffix(".out") + ".$(ProcId).out"
        lines = [f"output = {file}", f"error = {file}"]
        # Jobs are ended by removing them; what they said would be lost without streaming.
        lines += ["stream_output = True", "stream_error = True"]
        if job.account:
            lines.append(f"accounting_group = {directive_value(job.account, 'job.account')}")
        if job.gpus:
            lines += self.gpus(job)
        end = f"{PAST_WALLTIME} {job.walltime}" if job.walltime is not None else ""
        lines.append(f"periodic_remove = ({DEAD})" + (f" || ({end})" if end else ""))
        return [f"{PREFIX}{line}" for line in (*written, *lines)]

    def gpus(self, job: JobShape) -> list[str]:
        request = gpu_way(job, self.title, self.gpu_requests)
        if request == "none":
            return []
        lines = [f"request_gpus = {job.gpus}"]
        if job.gpu_type:
            kind = gpu_kind(job.gpu_type)
            lines.append(f'require_gpus = regexp("{kind}", DeviceName)')
        return lines

    def submit(self, submission: Submission) -> list[str]:
        return ["condor_submit", "-terse", "-"]

    def stdin(self, submission: Submission) -> str:
        lines = [
            line.removeprefix(PREFIX)
            for line in submission.text.splitlines()
            if line.startswith(PREFIX)
        ]
        script = directive_value(submission.script, "script")
        lines += [f"executable = {script}", "arguments = $(ProcId)"]
        return "\n".join([*lines, f"queue {submission.count}"]) + "\n"

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        found = {(a, int(last) + 1) for a, b, last in TERSE.findall(result.stdout) if a == b}
        found |= {(cluster, int(count)) for count, cluster in PLAIN.findall(result.stdout)}
        if result.exit_code == 0 and len(found) == 1:
            cluster, count = found.pop()
            if count == submission.count:
                return tuple(f"{cluster}.{task}" for task in range(count))
        raise unsubmitted(self, submission, result, REASONS.phrases, SILENT.search(result.stderr))

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        return ["condor_q", "-json", "-attributes", ",".join(LISTED), user]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        return {job.id: job for job in self.listed(result, "condor_q")}

    def listed(self, result: CommandResult, command: str) -> Iterator[JobStatus]:
        for ad in _ads(result, command):
            cluster, number = _whole(ad.get("ClusterId")), _whole(ad.get("ProcId"))
            if cluster is None or number is None:
                yield UNREAD
            else:
                yield self.job(f"{cluster}.{number}", number, ad, command == "condor_history")

    def job(self, id: str, number: int, ad: Mapping[str, Any], past: bool) -> JobStatus:
        state = STATES.get(_whole(ad.get("JobStatus")) or 0, JobState.UNKNOWN)
        reason, code = _text(ad.get("HoldReason")), None
        if state is JobState.HELD and (why := _whole(ad.get("HoldReasonCode"))) is not None:
            reason = f"{reason} (code {why})".strip()
        if state is JobState.DONE:
            signal = _whole(ad.get("ExitSignal")) if ad.get("ExitBySignal") is True else None
            code = _whole(ad.get("ExitCode")) if signal is None else -signal
            if code != 0:
                state = JobState.FAILED if code is not None else JobState.UNKNOWN
        elif state is JobState.CANCELLED:
            reason = _text(ad.get("RemoveReason"))
            held = _whole(ad.get("HoldReasonCode")) or _whole(ad.get("LastHoldReasonCode"))
            # "Removing" in the queue is "removed" in the history: the machine may still be at it.
            state = removed(reason, held) if past else JobState.ENDING
        over = state not in (JobState.PENDING, JobState.HELD, JobState.RUNNING, JobState.SUSPENDED)
        host = _text(ad.get("RemoteHost")) or _text(ad.get("LastRemoteHost"))
        started = epoch_seconds(ad.get("JobCurrentStartDate"))
        ended = epoch_seconds(ad.get("CompletionDate")) or epoch_seconds(
            ad.get("EnteredCurrentStatus")
        )
        return JobStatus(
            id=id,
            state=state,
            mark=_text(ad.get("JobBatchName")),
            task=number,
            reason=reason,
            nodes=(host.rpartition("@")[2],) if host else (),
            exit_code=code,
            started=None if state is JobState.PENDING else started,
            ended=ended if over else None,
        )

    def look_up(self, id: str) -> list[str] | None:
        return ["condor_q", "-json", "-attributes", ",".join(LISTED), id]

    def history(self, ids: Sequence[str]) -> list[str] | None:
        # Without the limit it reads the schedd's whole history, which may be gigabytes.
        limit = ["-limit", str(len(ids))]
        return ["condor_history", "-json", "-attributes", ",".join(LISTED), *limit, *ids]

    def parse_history(self, result: CommandResult) -> dict[str, JobStatus]:
        return {job.id: job for job in self.listed(result, "condor_history")}

    def find(self, marks: Sequence[str]) -> list[str] | None:
        wanted = " || ".join(f'JobBatchName == "{mark}"' for mark in marks)
        # Newest first; what is looked for was submitted a minute ago.
        return [
            *("condor_history", "-json", "-attributes", ",".join(LISTED)),
            *("-scanlimit", "10000", "-constraint", wanted),
        ]

    def explain(self, status: JobStatus) -> str:
        code, why = re.search(r"\(code (\d+)\)$", status.reason), status.reason or "no reason given"
        held = REASONS.say("held_codes", code[1] if code else "")
        failed = f"HTCondor ended it: {why}."
        if status.exit_code is not None:
            failed = ended_with(status.exit_code)
        sentences = {
            JobState.PENDING: "Waits for a machine that fits and is free; "
            f"`condor_q -better-analyze {status.id}` shows their number.",
            JobState.HELD: REASONS.say("held", status.reason)
            or held
            or f"On hold: {why}. Release it with `condor_release`, or stop the cluster.",
            JobState.SUSPENDED: "Suspended by its machine; it continues when the machine is free.",
            JobState.CANCELLED: f"It was removed: {why}.",
            JobState.FAILED: failed,
        }
        return REASONS.explain(status, self.title, sentences)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["condor_rm", *ids]

    def routing(self, job: Sent) -> Routing:
        found = {}
        for word, value in pairwise(job.submit_args):
            if word in ("-name", "-pool", "-remote") and not value.startswith("-"):
                part = "COLLECTOR" if word == "-pool" else "SCHEDD"
                found[f"_CONDOR_{part}_HOST"] = value
        return Routing(found)

    def enter(self, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
        return ["condor_ssh_to_job", id, shlex.join(words)]

    def capacity(self) -> list[str] | None:
        gpus = ["-constraint", "TotalGPUs > 0", "-attributes", ",".join(GPU_SLOTS)]
        return ["condor_status", "-json", *gpus]

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        total: dict[str, int] = {}
        free = 0
        for ad in _ads(result, "condor_status"):
            total[_text(ad.get("Machine"))] = _whole(ad.get("TotalGPUs")) or 0
            # A partitionable slot holds what is left of its machine, whatever runs beside it.
            if ad.get("PartitionableSlot") is True or ad.get("DynamicSlot") is not True:
                if _text(ad.get("State")) == "Unclaimed":
                    free += _whole(ad.get("GPUs")) or 0
        return [Capacity("pool", free, sum(total.values()))] if total else []


def _ads(result: CommandResult, command: str) -> list[Mapping[str, Any]]:
    """Return the ads that a command printed; it prints nothing at all where there are none."""
    ads = json_in(result.stdout, r"^\s*\[") if result.stdout.strip() else []
    if result.exit_code != 0 or not isinstance(ads, list):
        detail = (result.stderr or result.stdout)[-2000:]
        raise BackendUnavailable(f"HTCondor did not answer {command}.", detail=detail)
    return [ad if isinstance(ad, Mapping) else {} for ad in ads]


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def removed(reason: str, hold_code: int | None) -> JobState:
    """Return the end of a job that left the queue, by RemoveReason and its last HoldReasonCode."""
    if "PeriodicRemove" not in reason and "periodic" not in reason.lower():
        return JobState.CANCELLED
    default = JobState.FAILED if hold_code else JobState.TIMEOUT
    return REASONS.find("held_codes", str(hold_code)).state or default
