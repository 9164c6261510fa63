"""Grid Engine (Sun, Son of, Univa): qsub(1), qstat(1) and accounting(5)."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..core.errors import BackendUnavailable, InvalidInput
from ..core.job import (
    Allocation,
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Share,
    Submission,
)
from .base import UNREAD, AllocationQuery, Backend, answered, ended_with, local_time, xml_of
from .directives import Syntax
from .job_classes import head, named
from .quoting import directive_value, gpu_kind, resource_name
from .reasons import Reasons
from .refusal import unsubmitted
from .sge_site import SgeSurvey

REASONS = Reasons("sge")
ID = re.compile(r"^(?:Your job(?:-array)? )?(\d+)(\.\d+-\d+:\d+)?(?: \(.*)?$", re.MULTILINE)
SILENT = re.compile(
    r"commlib error|unable to (send message to|contact) qmaster|connection (refused|timed out)"
    r"|got (send|select|read) error|can't connect to service",
    re.IGNORECASE,
)
"""No answer, as opposed to a refusal: qmaster stopped or hanging."""
UNKNOWN = re.compile(r"^Following jobs do not exist: *((?:\n?[\d, ]+)+)", re.MULTILINE)
QACCT_EACH = 'for id do qacct -j "$id"; done'
"""qacct takes one id or name a call; the script is fixed, they are its arguments and never read as
shell."""
RESCHEDULED, OVER_LIMIT, KILLED = 25, 37, 100
"""Numbers after `failed`: it runs again; at a limit of time or memory; by a signal, qdel's too."""
NODE_LOST = frozenset({11, 18, 19, 21})
"""Those of a node that went down, or came back and knew nothing of its jobs."""
SOFT_LIMITS = {
    (signal.SIGXCPU, "s_vmem"): JobState.OUT_OF_MEMORY,
    (signal.SIGUSR1, "s_rt"): JobState.TIMEOUT,
}
"""The signals of limits that a job may still react to, where it had asked for one."""
DESCRIBE = 'qstat -j "$1" | grep -E "^(owner|hard resource_list):"; exec qstat -u "$2" -g t -xml'
"""The first tells whose a job is, the second on which hosts this user's jobs are; the script is
fixed, number and user are its arguments."""
OWNER = re.compile(r"^owner:\s+(\S+)", re.MULTILINE)
LIMIT = re.compile(r"^hard resource_list:.*\bh_rt=(\d+)\b", re.MULTILINE)


SYNTAX = Syntax(
    "#$",
    keys={
        "-q": ("queue",), "-P": ("account",), "-l h_rt": ("walltime",), "-pe": ("cpus",),
        "-l {gpu}": ("gpus",), "-l gpu_type": ("gpu_type",), "-l {memory}": ("memory",),
    },
    name="-N",
    arrays=("-t",),
    waits=("-sync",),
    repeated=("-l", "-v"),
    listed=True,
)  # fmt: skip


class Sge(SgeSurvey, Backend):
    """Dialect of qsub, qstat, qacct and qdel."""

    name = "sge"
    title = "Grid Engine"
    syntax: Syntax = SYNTAX
    # Free GPUs would take a command for each host, with `qconf -se`.
    lacks = frozenset({"stdin", "routing", "enter", "capacity", "parse_capacity"})
    job_class = "sge.SGEJob"
    # sge_qstat(5), sge_request(5).  Tried on 8.1.9: nothing takes -l, -pe and -help back, and qsub
    # waits with "-sync y" there even if -sync n is given.
    personal_files = (".sge_qstat", ".sge_request")
    most_tasks = 1000
    # Tasks count from 1; "undefined" in a job that is no array.
    task = "$((${SGE_TASK_ID/undefined/1} - 1))"
    # RESTARTED only says whether; the time tells one restart from the next.
    restarts = '$([ "${RESTARTED:-0}" = 0 ] && echo 0 || date +%s)'
    memory_request = "mem_free"
    environment = "smp"
    listing_proves = False
    keeps_ended = False
    launchers = frozenset({"none", "mpirun", "mpiexec", "ssh"})
    unasked: frozenset[str] = frozenset()
    # JOB_ID alone is too plain a name to mean Grid Engine.
    job_variables = ("JOB_ID", "SGE_ROOT")
    job_prefixes = ("JOB_ID", "PE_", "SGE_")
    node_lists = (("table", "PE_HOSTFILE"),)
    steering = ()
    locating = ("SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "SGE_EXECD_PORT")
    selecting = ("SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT")
    submit_host = re.compile(r"sge_o_host:\s+(\S+)")
    own_logs = (r"{mark}\.[oe]{number}{task}",)
    needs_node = True
    rehearsal = ("-w", "v")
    # qlogin takes neither -cwd nor a variable list.
    interactive = (("qrsh",), ())
    batch_only = frozenset("-N -o -e -j -S -r -t".split())
    remarks = None

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        lines = [*self.resources(job), f"-o {directive_value(output, 'output')}"]
        # Where queues say shell_start_mode posix_compliant, the script's first line counts nothing.
        lines.append("-S /bin/bash")
        return [
            *head(self.job_class, named(job, mark, "project")),
            *(f"#$ {line}" for line in lines),
        ]

    def resources(self, job: JobShape) -> list[str]:
        """Return what asks for cores, memory and GPUs."""
        if job.nodes > 1 and not any(line.startswith("-pe ") for line in job.directives):
            raise InvalidInput(
                "Grid Engine gives several nodes only through a parallel environment of the site.",
                hint="Add '-pe <name> <slots>' to job.directives (see: qconf -spl).",
                detail="job.nodes",
            )
        slots = job.cpus or 1
        lines = [f"-pe {self.environment} {slots}"] if slots > 1 and job.nodes == 1 else []
        if job.memory is not None and job.memory_request != "none":
            for each in (job.memory_request or self.memory_request).split(","):
                name, whole, _ = each.strip().partition("/job")
                # What is asked for with -l is asked for once a slot, but for a site's exceptions.
                amount = -(-job.memory // (1 if whole else slots) // 2**20)
                lines.append(f"-l {resource_name(name, 'job.memory_request')}={amount}M")
        if job.gpus and job.gpu_request != "none":
            name, per, _ = (job.gpu_request or "gpu").partition("/slot")
            name = resource_name(name, "job.gpu_request")
            lines.append(f"-l {name}={job.gpus / slots if per else job.gpus:g}")
        if job.gpus and job.gpu_type:
            lines.append(f"-l gpu_type={gpu_kind(job.gpu_type)}")
        return lines

    def submit(self, submission: Submission) -> list[str]:
        array = ["-t", f"1-{submission.count}"] if submission.count > 1 else []
        return ["qsub", "-terse", *array, submission.script]

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        found = set(ID.findall(result.stdout))
        if result.exit_code == 0 and len(found) == 1:
            number, array = found.pop()
            if bool(array) == (submission.count > 1):
                tasks = range(1, submission.count + 1)
                return tuple(f"{number}.{task}" for task in tasks) if array else (number,)
        unclear = found or SILENT.search(result.stderr)
        raise unsubmitted(self, submission, result, REASONS.phrases, unclear)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        # -g d: array tasks one by one; -r: whole names.  -s and -q override those of .sge_qstat.
        return ["qstat", "-s", "prs", "-q", "*", "-g", "d", "-r", "-xml", "-u", user]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        text = answered(self.title, result)
        if "-j" in result.argv:
            return described(text)
        root = xml_of(text, self.title)
        if root.tag != "job_info":
            raise BackendUnavailable("Grid Engine's answer to qstat cannot be read.")
        found = {}
        for job in root.iter("job_list"):
            status = listed({field.tag: field.text or "" for field in job})
            found[status.id] = status
        return found

    def look_up(self, id: str) -> list[str] | None:
        return ["qstat", "-j", id.partition(".")[0]]

    def denies(self, result: CommandResult, id: str) -> bool:
        found = UNKNOWN.search(result.stderr)
        return found is not None and id.partition(".")[0] in re.split(r"[\s,]+", found[1])

    def history(self, ids: Sequence[str]) -> list[str] | None:
        numbers = dict.fromkeys(id.partition(".")[0] for id in ids)
        return ["sh", "-c", QACCT_EACH, "qacct", *numbers]

    def parse_history(self, result: CommandResult) -> dict[str, JobStatus]:
        if result.exit_code is None:
            raise BackendUnavailable("Grid Engine did not answer qacct.", detail=result.stderr)
        # Records come in the order of their ends: the last one of a job that ran twice counts.
        found = (_accounted(record) for record in _records(result.stdout))
        return {status.id: status for status in found if status is not None}

    def find(self, marks: Sequence[str]) -> list[str] | None:
        return ["sh", "-c", QACCT_EACH, "qacct", *marks]

    def explain(self, status: JobStatus) -> str:
        reason, code, number = status.reason, status.exit_code, status.id.partition(".")[0]
        memory = "It used more memory than it may; ask for more, or change the directive h_vmem."
        failed = f"Grid Engine says: failed {reason}."
        if code is not None:
            failed = ended_with(
                code, ": deleted with qdel, or by its node, as when memory runs out"
            )
        sentences = {
            JobState.PENDING: f"Waits in the queue; `qalter -w p {number}` shows what is missing.",
            JobState.SUSPENDED: REASONS.say("waiting", reason),
            JobState.OUT_OF_MEMORY: memory,
            JobState.FAILED: failed,
            JobState.NODE_FAIL: failed,
        }
        return REASONS.explain(status, self.title, sentences, number=number)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["qdel", *ids]

    def allocation(self) -> AllocationQuery | None:
        return AllocationQuery(("qstat", "qconf"), _ask_about, _read_about, _job_of)


def described(text: str) -> dict[str, JobStatus]:
    """Read ``qstat -j``: that a job is there; of an array it does not tell which tasks are."""
    fields = dict(re.findall(r"^(\w[\w-]*(?: \w+)*):[ \t]+(.*)$", text, re.MULTILINE))
    number = fields.get("job_number", "").strip()
    if not number.isdecimal() or "job-array tasks" in fields:
        return {}
    return {number: JobStatus(number, JobState.UNKNOWN, fields.get("job_name", "").strip())}


def listed(job: dict[str, str]) -> JobStatus:
    """Return a row of qstat as a status, `UNREAD` for tasks of ours that are listed together."""
    number, task = job.get("JB_job_number", ""), job.get("tasks", "")
    name = job.get("full_job_name") or job.get("JB_name", "")
    # "3-9:1": tasks that -g d has not told apart.
    together = bool(task) and not task.isdecimal() and name.startswith("gpc-")
    if together or not number.isdecimal():
        return UNREAD
    state, reason = _state(job.get("state", ""))
    host = job.get("queue_name", "").rpartition("@")[2]
    return JobStatus(
        id=f"{number}.{task}" if task else number,
        state=state,
        mark=name,
        task=int(task) - 1 if task.isdecimal() else 0,
        reason=reason,
        nodes=(host,) if host else (),
        started=local_time(job.get("JAT_start_time", "")),
    )


def _state(letters: str) -> tuple[JobState, str]:
    """Read letters such as ``hqw`` and ``dRr``; what is looked for first is worth most."""
    letters = letters if "w" in letters else letters.replace("h", "")  # a hold on a running job
    for letter, state, reason in (
        ("d", JobState.ENDING, ""),
        ("E", JobState.HELD, "error state"),
        ("h", JobState.HELD, "hold"),
        ("S", JobState.SUSPENDED, "suspended by queue"),
        ("T", JobState.SUSPENDED, "suspended by load"),
        ("s", JobState.SUSPENDED, "suspended by user"),
        ("q", JobState.PENDING, ""),
        ("w", JobState.PENDING, ""),
        ("t", JobState.RUNNING, ""),
        ("r", JobState.RUNNING, ""),
    ):
        if letter in letters:
            return state, reason
    return JobState.UNKNOWN, ""


def _records(text: str) -> Iterator[dict[str, str]]:
    for block in re.split(r"^={10,}$", text, flags=re.MULTILINE)[1:]:
        words = (line.partition(" ") for line in block.splitlines())
        yield {name: value.strip() for name, _, value in words}


def _accounted(record: dict[str, str]) -> JobStatus | None:
    number, task = record.get("jobnumber", ""), record.get("taskid", "")
    failed, code = _first_number(record.get("failed")), _first_number(record.get("exit_status"))
    if not number.isdecimal() or failed in (None, RESCHEDULED):
        return None
    state = JobState.FAILED if failed or code else JobState.DONE
    if failed == OVER_LIMIT:
        state = JobState.TIMEOUT if _reached_walltime(record) else JobState.OUT_OF_MEMORY
    elif failed in NODE_LOST:
        state = JobState.NODE_FAIL
    if failed in (OVER_LIMIT, KILLED) and code is not None and code > 128:
        code = 128 - code
        for (sent, limit), soft in SOFT_LIMITS.items():
            if code == -sent and f"{limit}=" in record.get("category", ""):
                state = soft
    return JobStatus(
        id=f"{number}.{task}" if task.isdecimal() else number,
        state=state,
        mark=record.get("jobname", ""),
        task=int(task) - 1 if task.isdecimal() else 0,
        reason=str(failed) if failed else "",
        nodes=(record.get("hostname", ""),),
        exit_code=code if failed in (0, OVER_LIMIT, KILLED) else None,
        started=local_time(record.get("start_time", "")),
        ended=local_time(record.get("end_time", "")),
    )


def _reached_walltime(record: dict[str, str]) -> bool:
    """Return whether a job at a limit of time or memory reached its time."""
    asked = re.search(r"\bh_rt=(\d+)\b", record.get("category", ""))
    took = _first_number(record.get("ru_wallclock"))
    return asked is not None and took is not None and took >= int(asked[1])


def _first_number(text: str | None) -> int | None:
    match = re.match(r"-?\d{1,9}", text or "")
    return int(match[0]) if match else None


def _ask_about(id: str, user: str) -> list[str]:
    """Return the command that tells a job's owner and the hosts of this user's jobs."""
    return ["sh", "-c", DESCRIBE, "qstat", id, user]


def _read_about(id: str, result: CommandResult) -> Allocation | None:
    """Read the lines about the job, and the listing behind them: a row for each slot."""
    about, start, listing = result.stdout.partition("<?xml")
    answered(Sge.title, result, silent=SILENT.search(result.stderr) or not start)
    owner, slots, found = OWNER.search(about), Counter[str](), None
    number, _, task = id.partition(".")
    for job in xml_of(start + listing, Sge.title).iter("job_list"):
        row = {field.tag: field.text or "" for field in job}
        if row.get("JB_job_number") == number and task in ("", row.get("tasks", "")):
            found = listed(row)
            # The master has a row of its own beside those of its slots, but where it is alone.
            slots[row.get("queue_name", "").rpartition("@")[2]] += row.get("master") == "SLAVE"
    if owner is None and found is None:
        return None
    if found is None:  # of another user, whose jobs the listing leaves out
        return Allocation(JobStatus(id, JobState.UNKNOWN), owner[1] if owner else "")
    limit = LIMIT.search(about)
    if limit and found.started is not None and found.state is JobState.RUNNING:
        found = replace(found, ends=found.started + int(limit[1]))
    shares = tuple(Share(host, max(1, count)) for host, count in slots.items() if host)
    return Allocation(replace(found, id=id), owner[1] if owner else "", shares)


def _job_of(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in, with that of its task in an array."""
    id, task = environ.get("JOB_ID", ""), environ.get("SGE_TASK_ID", "")
    if not environ.get("SGE_ROOT"):
        return ""  # too plain a name to mean Grid Engine by itself
    return f"{id}.{task}" if id and task.isdecimal() else id
