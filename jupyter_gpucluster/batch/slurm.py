"""Slurm: https://slurm.schedmd.com/sbatch.html, squeue.html and sacct.html."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..core.errors import BackendUnavailable
from ..core.job import (
    FINAL,
    Allocation,
    Capacity,
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Share,
    Submission,
)
from .base import (
    AllocationQuery,
    Amounts,
    Backend,
    Routing,
    Sent,
    answered,
    by_word,
    ended_with,
    exit_code_of_wait,
    least,
    local_time,
)
from .directives import Syntax, options_in
from .job_classes import head, named, without
from .quoting import directive_value, gpu_kind, gpu_way, memory_of
from .reasons import Reasons
from .refusal import unsubmitted
from .slurm_site import SlurmSurvey, fields_of

# Asked for and parsed by one list.  The name comes last, since it may hold the separator.
LISTED = ("JobArrayID", "State", "Reason", "NodeList", "StartTime", "EndTime", "exit_code", "Name")
ACCOUNTED = ("JobID", "State", "ExitCode", "NodeList", "Start", "End", "JobName")
FOUND_DAYS = 7
"""The time span of the search for a submission whose answer was lost."""
ID = re.compile(r"^(?:Submitted batch job )?(\d+)(?:;[\w.-]+)?$", re.MULTILINE)
TASK = re.compile(r"\d+(_\d+)?", re.ASCII)
CLUSTER = re.compile(r"^CLUSTER: .*$", re.MULTILINE)
SILENT = re.compile(
    r"unable to contact|socket timed out|connection refused|communication failure|munged"
    r"|persistent connection|resource temporarily unavailable|zero bytes",
    re.IGNORECASE,
)
"""No answer, as opposed to a refusal: slurmctld stopped or hanging, slurmdbd or munged down."""
UNKNOWN = "Invalid job id specified"
SRUN_INTO_TASK = (
    'id=$(squeue -h -o %A -j "$1") && shift && [ "$id" ] && exec srun --jobid="$id" "$@"'
)
"""srun takes no number of an array's task ("Invalid numeric value"); the script is fixed, and what
is named its argument."""
NOT_LAUNCHED = -53
"""Slurm's text in place of an exit code if a job did not start."""
REASONS = Reasons("slurm")
STATES = by_word(
    pending="PENDING REQUEUED REQUEUE_FED CONFIGURING",
    held="REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
    running="RUNNING RESIZING SIGNALING",
    suspended="SUSPENDED STOPPED",
    ending="COMPLETING STAGE_OUT",
    done="COMPLETED",
    failed="FAILED",
    node_fail="BOOT_FAIL NODE_FAIL",
    cancelled="CANCELLED REVOKED",
    timeout="TIMEOUT DEADLINE",
    out_of_memory="OUT_OF_MEMORY",
    preempted="PREEMPTED",
)
"""https://slurm.schedmd.com/job_state_codes.html."""
BUSY_STATES = re.compile(r"down|drain|maint|reserved|planned|fail|unknown|power", re.IGNORECASE)
"""Nodes whose free GPUs no job gets now; a drained node reports no GPU in use."""
NO_SUCH_JOB = re.compile(r"Invalid job id", re.IGNORECASE)
DESCRIBED = {
    "JobArrayID": "JobId", "State": "JobState", "Reason": "Reason", "NodeList": "NodeList",
    "StartTime": "StartTime", "EndTime": "EndTime", "Name": "JobName",
}  # fmt: skip
"""scontrol's names of squeue's columns."""
RECORDED = {
    "JobArrayID": "JobID", "State": "State", "Reason": "", "NodeList": "NodeList",
    "StartTime": "Start", "EndTime": "End", "Name": "JobName",
}  # fmt: skip
"""sacct's."""
DETAIL = re.compile(r" Nodes=(\S+) CPU_IDs=(\S*) Mem=(\d*)(?: GRES=(\S*))?")
"""Resources of a job on nodes with equal shares."""


class SlurmSyntax(Syntax):
    """Directives of sbatch, whose lists of resources ask for GPUs in several ways."""

    def requests_of(self, line: str) -> tuple[str, ...]:
        option, value = self.option_of(line)
        if option != "--gres" and not option.startswith("--tres-per-"):
            return super().requests_of(line)
        return tuple(
            "GPUs" if re.match(r"(gres[:/])?gpu\b", each) else f"{option} {each}"
            for each in value.split(",")
        )


HETEROGENEOUS = (
    "begins another part of a heterogeneous job; the jobs of a cluster have one part, and workers"
    " of another kind go into `groups`"
)
SYNTAX = SlurmSyntax(
    "#SBATCH",
    keys={
        "--partition": ("queue",), "--account": ("account",), "--time": ("walltime",),
        "--nodes": ("nodes",), "--ntasks": ("cpus",), "--cpus-per-task": ("cpus",),
        "--cpus-per-gpu": ("cpus",), "--mem": ("memory",), "--mem-per-cpu": ("memory",),
        "--mem-per-gpu": ("memory",), "--gpus": ("gpus", "gpu_type"),
        "--gpus-per-*": ("gpus", "gpu_type"), "--gres gpu": ("gpus", "gpu_type"),
        "--tres-per-* gpu": ("gpus", "gpu_type"),
    },
    name="--job-name",
    arrays=("--array",),
    waits=("--wait", "--test-only"),
    others=(
        "--qos=", "--constraint=", "--reservation=", "--exclusive", "--exclude=", "--nodelist=",
        "--licenses=", "--nice=", "--requeue", "--mail-type=", "--mail-user=", "--dependency=",
    ),
    refused=dict.fromkeys(("hetjob", "packjob", "--het-group", "--pack-group"), HETEROGENEOUS),
    synonyms={
        "-A": "--account", "-C": "--constraint", "-G": "--gpus", "-J": "--job-name",
        "-L": "--licenses", "-M": "--clusters", "-N": "--nodes", "-W": "--wait", "-a": "--array",
        "-b": "--begin", "-c": "--cpus-per-task", "-d": "--dependency", "-e": "--error",
        "-n": "--ntasks", "-o": "--output", "-p": "--partition", "-q": "--qos",
        "-s": "--oversubscribe", "-t": "--time", "-w": "--nodelist", "-x": "--exclude",
    },
    alike={
        # Of these Slurm takes one: https://slurm.schedmd.com/sbatch.html#OPT_gpus-per-task.
        "--gpus": "GPUs", "--gpus-per-node": "GPUs", "--gpus-per-task": "GPUs",
        "--gpus-per-socket": "GPUs", "--mem": "memory", "--mem-per-cpu": "memory",
        "--mem-per-gpu": "memory", "--cpus-per-gpu": "--cpus-per-task",
        "--no-requeue": "--requeue", "--oversubscribe": "--exclusive",
    },
    joined={"--gres": "#SBATCH --gres={0},{1}"},
    glued=True,
    clock={1: (60,), 2: (60, 1), 3: (3600, 60, 1)},
)  # fmt: skip


class Slurm(SlurmSurvey, Backend):
    """Dialect of sbatch, squeue, sacct, scancel and sinfo."""

    name = "slurm"
    title = "Slurm"
    syntax = SYNTAX
    lacks = frozenset({"stdin"})
    job_class = "slurm.SLURMJob"
    # The plugin cli_filter/user_defaults reads it for sbatch, not for squeue.
    personal_files = (".slurm/defaults",)
    most_tasks = 1000
    task = "${SLURM_ARRAY_TASK_ID:-0}"
    restarts = "${SLURM_RESTART_COUNT:-0}"
    listing_proves = False
    keeps_ended = False
    launchers = frozenset({"none", "mpirun", "mpiexec", "ssh", "srun", "aprun"})
    unasked: frozenset[str] = frozenset()
    job_variables = ("SLURM_JOB_ID",)
    job_prefixes = ("SLURM_", "SBATCH_")
    node_lists = (
        ("brackets", "SLURM_JOB_NODELIST", "SLURM_JOB_CPUS_PER_NODE"),
        ("brackets", "SLURM_NODELIST", "SLURM_JOB_CPUS_PER_NODE"),
    )
    amounts = Amounts("SLURM_GPUS_ON_NODE", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU")
    steering = ("SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SCONTROL_", "SREPORT_")
    locating = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_CLUSTERS")
    selecting = ("SLURM_CONF", "SLURM_CLUSTERS")
    submit_host = re.compile(r"AllocNode:Sid=([^:\s]+)")
    own_logs = (r"slurm-{number}{task}\.out",)
    needs_node = False
    rehearsal = ("--test-only",)
    interactive = (("salloc",), ())
    batch_only = frozenset(
        "--job-name --output --error --open-mode --array --requeue --no-requeue --export".split()
    )
    remarks = None
    gpu_requests = ("gpus-per-node", "gres", "gpus", "gpus-per-task", "none")

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        memory = memory_of(job, self.title, ("mem-per-cpu", "mem-per-gpu"))
        whole = memory is not None and not job.memory_request
        ranks = job.nodes * job.ranks
        told = named(job, mark)
        if job.cpus is not None:
            told["job_cpu"] = -(-job.cpus // ranks)
        if memory is not None and whole:
            told["job_mem"] = f"{-(-memory // job.nodes // 2**20)}M"
        unasked = [
            *(["#SBATCH --cpus-per-task="] if job.cpus is None else []),
            *([] if whole else ["#SBATCH --mem="]),
            *(["#SBATCH -n "] if ranks > 1 else []),
        ]
        # Of a file that all tasks share each one would cut off what the others' say.
        file = directive_value(output, "output").removesuffix(".out") + ".%a.out"
        lines = [f"-o {file}", f"-N {job.nodes}"]
        if ranks > 1:
            lines.append(f"-n {ranks}")
        if job.ranks > 1:
            lines.append(f"--ntasks-per-node={job.ranks}")
        if memory is not None and job.memory_request:
            each = {"mem-per-cpu": job.cpus, "mem-per-gpu": job.gpus}[job.memory_request] or 1
            lines.append(f"--{job.memory_request}={-(-memory // each // 2**20)}M")
        if job.gpus:
            lines += self.gpus(job)
        written = without(head(self.job_class, told), *unasked)
        return [*written, *(f"#SBATCH {line}" for line in lines)]

    def gpus(self, job: JobShape) -> list[str]:
        kind = f"{gpu_kind(job.gpu_type)}:" if job.gpu_type else ""
        each = -(-job.gpus // job.nodes)
        request = gpu_way(job, self.title, self.gpu_requests)
        return {
            "gres": [f"--gres=gpu:{kind}{each}"],
            "gpus": [f"--gpus={kind}{job.gpus}"],
            "gpus-per-node": [f"--gpus-per-node={kind}{each}"],
            "gpus-per-task": [f"--gpus-per-task={kind}{-(-each // job.ranks)}"],
            "none": [],
        }[request]

    def submit(self, submission: Submission) -> list[str]:
        # One task is an array too, so that every task has an id and a log of the same form.
        array = f"--array=0-{submission.count - 1}"
        return ["sbatch", "--parsable", array, submission.script]

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        found = ID.findall(result.stdout)
        if result.exit_code == 0 and len(found) == 1:
            return tuple(f"{found[0]}_{task}" for task in range(submission.count))
        raise unsubmitted(self, submission, result, REASONS.phrases, SILENT.search(result.stderr))

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        fields = ",".join(f"{field}:|" for field in LISTED)
        # -r: pending tasks one by one; -t all: also those that ended within MinJobAge.
        return ["squeue", "-h", "-r", "-t", "all", "-u", user, "-O", fields]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        answered(self.title, result)
        if result.argv[0] == "scontrol":
            row = {**_row(fields_of(result.stdout), DESCRIBED), "JobArrayID": result.argv[-1]}
            return {row["JobArrayID"]: self.listed(row)} if row["State"] else {}
        found, cut = {}, {}
        for line in result.stdout.splitlines():
            row = dict(zip(LISTED, line.split("|", len(LISTED) - 1), strict=False))
            id = row["JobArrayID"].strip()
            if len(row) == len(LISTED):
                found[id] = self.listed(row)
            elif TASK.fullmatch(id):
                cut[id] = JobStatus(id, JobState.UNKNOWN)
        # Asked about other clusters it names each of them, even with -h.
        if CLUSTER.sub("", result.stdout).strip() and not found:
            # A version that does not know one of the fields exits with 0 and leaves it out.
            raise BackendUnavailable(
                "Slurm answered squeue in a form that cannot be read.",
                detail=(result.stderr or result.stdout)[-2000:],
            )
        return cut | found

    def listed(self, row: Mapping[str, str]) -> JobStatus:
        word = row["State"].partition(" ")[0]  # "CANCELLED by 1001"
        state = STATES.get(word, JobState.UNKNOWN)
        reason = "DeadLine" if word == "DEADLINE" else row["Reason"].removeprefix("None")
        rule = REASONS.find("waiting", reason)
        if state is JobState.PENDING and rule.state is not None:
            state = rule.state
        waits = state in (JobState.PENDING, JobState.HELD)
        wait_status = int(row["exit_code"]) if row["exit_code"].isdigit() else 0
        over = state not in (JobState.RUNNING, JobState.SUSPENDED) and not waits
        return JobStatus(
            id=row["JobArrayID"],
            state=state,
            mark=row["Name"].rstrip("|"),
            task=_task(row["JobArrayID"]),
            reason=reason,
            nodes=(row["NodeList"],) if row["NodeList"] not in ("", "None assigned") else (),
            exit_code=exit_code_of_wait(wait_status) if over else None,
            started=None if waits else local_time(row["StartTime"]),
            ended=local_time(row["EndTime"]) if over else None,
            expected_start=local_time(row["StartTime"]) if waits else None,
            ends=None if over or waits else local_time(row["EndTime"]),
            unsatisfiable=waits and rule.unsatisfiable,
        )

    def look_up(self, id: str) -> list[str] | None:
        # squeue has no word for a task that is gone of an array that is not [tried, 22.05].
        return ["scontrol", "show", "job", "-o", id]

    def denies(self, result: CommandResult, id: str) -> bool:
        if result.argv[0] != "scontrol" or not result.exit_code:
            return False
        no_array = UNKNOWN in result.stderr and result.argv[-1] == id
        return no_array or f"Job {id} not found" in result.stdout.splitlines()

    def history(self, ids: Sequence[str]) -> list[str] | None:
        return ["sacct", "-n", "-P", "-X", "-j", ",".join(ids), "-o", ",".join(ACCOUNTED)]

    def parse_history(self, result: CommandResult) -> dict[str, JobStatus]:
        found = {}
        for line in answered(self.title, result).splitlines():
            row = dict(zip(ACCOUNTED, line.split("|", len(ACCOUNTED) - 1), strict=False))
            # "77_[3-4]": tasks that wait together; the listing knows each of them.
            if len(row) == len(ACCOUNTED) and "[" not in row["JobID"]:
                found[row["JobID"]] = self.listed(_row(row, RECORDED))
        return found

    def find(self, marks: Sequence[str]) -> list[str] | None:
        # Without a time it begins at midnight.
        when = ["-S", f"now-{FOUND_DAYS}days"]
        names = ["--name", ",".join(marks)]
        return ["sacct", "-n", "-P", "-X", *names, *when, "-o", ",".join(ACCOUNTED)]

    def explain(self, status: JobStatus) -> str:
        sentences, reason = {JobState.FAILED: _failure(status.exit_code)}, status.reason
        rule = REASONS.find("waiting", reason)
        if rule.unsatisfiable:  # where a site has Slurm cancel such jobs
            sentences[status.state] = rule.say
        if status.state in FINAL - {JobState.FAILED, JobState.TIMEOUT}:
            status = replace(status, reason="")  # it is of the time when the job waited
        return REASONS.explain(status, self.title, sentences, reason=reason)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["scancel", *_by_array(ids)]

    def routing(self, job: Sent) -> Routing:
        # A command's arguments count more than a script's lines.
        options = map(SYNTAX.option_of, (*options_in(job.submit_args), *job.directives))
        clusters = [value for option, value in options if option == "--clusters"]
        return Routing({"SLURM_CLUSTERS": clusters[0]} if clusters else {})

    def enter(self, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
        # Another step beside the workers, which hold all that the job has.
        options = ["--overlap", "--nodes=1", "--ntasks=1"]
        options += [*([f"--nodelist={node}"] if node else []), *(["--pty"] if terminal else [])]
        if "_" in id:
            return ["sh", "-c", SRUN_INTO_TASK, "srun", id, *options, *words]
        return ["srun", f"--jobid={id}", *options, *words]

    def array_of(self, id: str) -> str:
        # Slurm drops tasks that never started when they are cancelled; if all that waited are, it
        # lists their array as cancelled [tried, 22.05].
        return id.partition("_")[0]

    def allocation(self) -> AllocationQuery | None:
        return AllocationQuery(
            ("scontrol", "srun"), _ask_about, _read_about, _job_of, _inside,
            nodes_variable="SLURM_JOB_NODELIST",
            end_variable="SLURM_JOB_END_TIME",  # sbatch.html, OUTPUT ENVIRONMENT VARIABLES
            launchers=("srun",),
        )  # fmt: skip

    def capacity(self) -> list[str] | None:
        fields = ("NodeList", "Partition", "StateLong", "Gres", "GresUsed")
        return ["sinfo", "-h", "-N", "-O", ",".join(f"{field}:|" for field in fields)]

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        free, total = Counter[str](), Counter[str]()
        for line in answered(self.title, result).splitlines():
            _, partition, state, has, used, *_ = (*line.split("|"), "", "", "", "", "")
            name = partition.rstrip("*")
            total[name] += gpus_of(has)
            if not BUSY_STATES.search(state):
                free[name] += max(0, gpus_of(has) - gpus_of(used))
        return [Capacity(name, free[name], total[name]) for name in total if total[name]]


def _row(fields: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return a job of another command as a row of the listing.

    Parameters
    ----------
    names
        That command's names of squeue's columns.
    """
    code, _, number = fields.get("ExitCode", "").partition(":")
    known = code.isdecimal() and number.isdecimal()
    row = {column: fields.get(name, "") for column, name in names.items()}
    return {**row, "exit_code": str(int(code) * 256 + int(number)) if known else ""}


def _by_array(ids: Sequence[str]) -> list[str]:
    """Write tasks of one array together: scancel sends a request for each of its arguments."""
    arrays: dict[str, list[str]] = {}
    for id in dict.fromkeys(ids):
        array, _, task = id.partition("_")
        arrays.setdefault(array, []).extend([task] if task.isdecimal() else [])
    return [
        f"{array}_[{','.join(tasks)}]" if len(tasks) > 1 else "_".join([array, *tasks])
        for array, tasks in arrays.items()
    ]


def _failure(code: int | None) -> str:
    if code == NOT_LAUNCHED:
        return "Its node could not start it: does the node see the cluster's directory?"
    more = ", as where it uses more memory than job.memory" if code == -signal.SIGKILL else ""
    return ended_with(code, more)


def _task(id: str) -> int:
    """Return the number of a task in its array."""
    number = id.partition("_")[2]
    return int(number) if number.isdecimal() else 0


def gpus_of(gres: str) -> int:
    """Count GPUs in ``gpu:h100:4(IDX:0-3),gpu:a100:2``."""
    return sum(int(n) for n in re.findall(r"gpu(?::[^:,()]+)?:(\d+)", gres))


def _ask_about(id: str, user: str) -> list[str]:
    """Return the command that describes a job, node by node."""
    return ["scontrol", "show", "job", "-d", "-o", id]


def _read_about(id: str, result: CommandResult) -> Allocation | None:
    """Read scontrol's line."""
    if result.exit_code and NO_SUCH_JOB.search(result.stderr + result.stdout):
        return None
    lines = [line for line in result.stdout.splitlines() if line.startswith("JobId=")]
    if result.exit_code != 0 or SILENT.search(result.stderr) or not lines:
        raise BackendUnavailable("Slurm did not answer scontrol.", detail=result.stderr)
    # A whole array or a heterogeneous job has several lines; the number's own comes before others.
    line = next((line for line in lines if line.startswith(f"JobId={id} ")), lines[0])
    fields = fields_of(line)
    owner = fields.get("UserId", "").partition("(")[0]
    return Allocation(Slurm().listed(_row(fields, DESCRIBED)), owner, tuple(_shares(line, fields)))


def _inside(id: str, shares: Sequence[tuple[list[str], Share]]) -> dict[str, str]:
    """Return what Slurm sets in a job; srun and mpirun join the job by it."""
    nodes = ",".join(share.hosts for _, share in shares)
    number = str(sum(len(hosts) for hosts, _ in shares))
    cpus = ",".join(f"{share.cpus}(x{len(hosts)})" for hosts, share in shares)
    found = {
        **dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), id),
        **dict.fromkeys(("SLURM_JOB_NODELIST", "SLURM_NODELIST"), nodes),
        **dict.fromkeys(("SLURM_JOB_NUM_NODES", "SLURM_NNODES"), number),
        **dict.fromkeys(("SLURM_JOB_CPUS_PER_NODE", "SLURM_TASKS_PER_NODE"), cpus),
    }
    gpus, memory = least(share.gpus for _, share in shares), least(s.memory for _, s in shares)
    if gpus:
        found["SLURM_GPUS_ON_NODE"] = str(gpus)
    if memory:
        found["SLURM_MEM_PER_NODE"] = str(memory // 2**20)
    return found


def _job_of(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in."""
    return environ.get("SLURM_JOB_ID", "")


def _shares(line: str, fields: Mapping[str, str]) -> Iterator[Share]:
    found = DETAIL.findall(line)
    for hosts, cpus, memory, gres in found:
        mebibytes = int(memory or 0)
        yield Share(hosts, _count(cpus), gpus_of(gres), mebibytes * 2**20 or None)
    hosts, number = fields.get("NodeList", ""), fields.get("NumNodes", "").partition("-")[0]
    if hosts and not found and number.isdecimal():
        cpus, nodes = fields.get("NumCPUs", "").partition("-")[0], int(number) or 1
        yield Share(hosts, max(1, int(cpus or 1) // nodes))


def _count(numbers: str) -> int:
    """Count ``0-3,7``."""
    total = 0
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", numbers):
        total += int(last or first) - int(first) + 1
    return max(1, total)
