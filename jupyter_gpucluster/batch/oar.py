"""OAR: https://oar.readthedocs.io/en/2.5/."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from ..core.errors import BackendUnavailable
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
from ..core.site import GpuQueue, Site
from .base import (
    AllocationQuery,
    Backend,
    answered,
    by_word,
    ended_with,
    epoch_seconds,
    exit_code_of_wait,
    json_in,
)
from .directives import Syntax
from .job_classes import head, named
from .quoting import directive_value, gpu_kind, resource_name
from .reasons import Reasons
from .refusal import unsubmitted

REASONS = Reasons("oar")
ID = re.compile(r"^OAR_JOB_ID=(\d+)\s*$", re.MULTILINE | re.ASCII)
NOT_STARTED = 9
"""oarsub's exit code when the server is down; "Job is killed", it says, yet the job runs later."""
SILENT = re.compile(r"DB connection error|DBI connect|Cannot connect to executor", re.IGNORECASE)
"""No answer, as opposed to a refusal: the database or the server is down."""
FOR_PEOPLE = re.compile(r"R=\d+,W=[\d:]+,J=\w.*?(?:\(Karma=[\d.]+(?:,quota_ok)?\))?$")
"""The usual message of a job, which is no reason to wait."""
STATES = by_word(
    pending="Waiting toAckReservation",
    held="Hold",
    running="toLaunch Launching Running",
    suspended="Suspended Resuming",
    ending="Finishing toError",
)
DESCRIBE = """\
job=$(oarstat -J -f -j "$1") || exit
[ "$job" ] || exit 0
printf '%s\\n' "$job"
oarstat -p -j "$1" 2>/dev/null
exit 0"""
"""Only the second tells what is on which node; the script is fixed, the number its argument."""
PROPERTY = re.compile(r"(\w+) = '([^']*)'")


class OarSyntax(Syntax):
    """Directives of oarsub, which takes one condition."""

    def join(self, option: str, before: str, value: str) -> str:
        return super().join(option, _condition(before), _condition(value))

    def words(self, text: str) -> list[str]:
        # It takes off one pair of double quotes; single ones are part of a condition.
        option, _, value = text.partition(" ")
        quoted = len(value) > 1 and value[0] == value[-1] == '"'
        return [option, value[1:-1] if quoted else value] if value else [option]


SYNTAX = OarSyntax(
    "#OAR",
    keys={
        "-q": ("queue",), "--project": ("account",),
        "-l": ("nodes", "gpus", "cpus", "walltime"), "-l core": ("cpus",),
        "-p gpu_model": ("gpu_type",), "-p gpumodel": ("gpu_type",),
    },
    name="-n",
    arrays=("--array", "--array-param-file"),
    waits=("-I", "--interactive"),
    synonyms={
        "--name": "-n", "--queue": "-q", "--resource": "-l", "--property": "-p", "--type": "-t",
        "--stdout": "-O", "--stderr": "-E",
    },
    repeated=("-t",),
    joined={"-p": '#OAR -p "{0} AND {1}"'},
    glued=True,
    clock={1: (3600,), 2: (3600, 60), 3: (3600, 60, 1)},
)  # fmt: skip


CORE_MEMORY = "mem_core"
"""The property with the MiB of a core; a site may call it otherwise."""


class Oar(Backend):
    """Dialect of oarsub, oarstat, oardel and oarnodes."""

    name = "oar"
    title = "OAR"
    syntax: Syntax = SYNTAX
    lacks = frozenset({"stdin", "routing"})
    job_class = "oar.OARJob"
    most_tasks = 1000
    task = "$((${OAR_ARRAY_INDEX:-1} - 1))"
    restarts = "0"  # a job that runs again is another job, with another id
    listing_proves = False
    keeps_ended = False
    launchers = frozenset({"none", "mpirun", "mpiexec", "ssh"})
    unasked = frozenset({"memory"})
    job_variables = ("OAR_JOB_ID",)
    job_prefixes = ("OAR_",)
    node_lists = (
        ("file", "OAR_NODEFILE"), ("file", "OAR_NODE_FILE"), ("file", "OAR_FILE_NODES"),
    )  # fmt: skip
    steering = ()
    locating = ("OARCONFFILE", "OARDIR")
    selecting = ("OARCONFFILE",)
    own_logs = (r"OAR\.{mark}\.{number}\.std(?:out|err)",)
    needs_node = True
    rehearsal = ()
    interactive = (("oarsub", "-I"), ())
    batch_only = frozenset("-n -O -E".split())
    remarks = None

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        told = {
            **named(job, mark, "project"),
            "resource_spec": self.resources(job),
            # It writes a second -p, which would replace the first.
            "memory_per_core_property_name": "not_applicable",
        }
        output = directive_value(output, "output")
        lines = [*(f"-p {each}" for each in self.properties(job)), f"-O {output}", f"-E {output}"]
        return [*head(self.job_class, told), *(f"#OAR {line}" for line in lines)]

    def properties(self, job: JobShape) -> list[str]:
        """Return what resources must be like: a second -p would replace the first."""
        wanted = []
        if job.gpus and job.gpu_type:
            for word in job.gpu_type.split(" "):  # in quotes it may hold blanks
                gpu_kind(word)
            wanted.append(f"gpu_model='{job.gpu_type}'")
        if job.memory is not None and job.memory_request not in ("", "none"):
            name = resource_name(job.memory_request, "job.memory_request")
            wanted.append(f"{name}>={-(-job.memory // (job.cpus or 1) // 2**20)}")
        text = " AND ".join(wanted)
        return [f'"{text}"'] if " " in text else wanted

    def resources(self, job: JobShape) -> str:
        """Return the path through OAR's hierarchy; below a GPU are the cores that belong to it."""
        path = f"/nodes={job.nodes}"
        cores = -(-(job.cpus or 1) // job.nodes)
        request = job.gpu_request or "gpu"
        if not job.gpus or request == "none":
            return f"{path}/core={cores}"
        gpus = -(-job.gpus // job.nodes)
        path += f"/{resource_name(request, 'job.gpu_request')}={gpus}"
        return path if job.cpus is None else f"{path}/core={-(-cores // gpus)}"

    def submit(self, submission: Submission) -> list[str]:
        # OAR reads the path with a shell of its own, and needs a directory where PWD is not set.
        script = directive_value(submission.script, "the script's path")
        array = ["--array", str(submission.count)] if submission.count > 1 else []
        return ["oarsub", "-d", str(PurePosixPath(script).parent), *array, "-S", script]

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        found = tuple(ID.findall(result.stdout))
        if result.exit_code == 0 and len(found) == submission.count:
            return found
        unclear = result.exit_code == NOT_STARTED or SILENT.search(result.stderr)
        raise unsubmitted(self, submission, result, REASONS.phrases, unclear)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        user = directive_value(user, "the user's name")  # without quotes it is a value in SQL
        # Lists the ended too, for ever; so the ids say which of those to list.
        over = f" OR job_id IN ({','.join(id for id in ids if id.isdecimal())})" if ids else ""
        living = "state NOT IN ('Terminated','Error')"
        return ["oarstat", "-J", "-f", "--sql", f"job_user='{user}' AND ({living}{over})"]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        listed = answer_of(answered(self.title, result))
        found = {
            id: self.listed(id, job if isinstance(job, dict) else {})
            for id, job in listed.items()
            if id.isdecimal()
        }
        # It never forgets a job that was asked for.
        asked = any(" IN (" in word.partition("'Error')")[2] for word in result.argv)
        if asked and not found:
            raise BackendUnavailable("OAR did not list its jobs.", detail=result.stderr)
        return found

    def listed(self, id: str, job: Mapping[str, Any]) -> JobStatus:
        word = str(job.get("state", ""))
        state = STATES.get(word, JobState.UNKNOWN)
        reason, code = FOR_PEOPLE.sub("", str(job.get("message") or "")), None
        if word == "Terminated":
            code = _exit_code(job.get("exit_code"))
            state, reason = JobState.FAILED if code else JobState.DONE, ""
        elif word == "Error":
            state, reason = _cause(job)
        waits = state in (JobState.PENDING, JobState.HELD)
        if waits and job.get("dependencies"):
            reason = reason or "due to dependency"
        nodes = job.get("assigned_network_address")
        index = epoch_seconds(job.get("array_index")) or 1
        return JobStatus(
            id=id,
            state=state,
            mark=str(job.get("name") or ""),
            task=int(index) - 1,
            reason=reason,
            nodes=tuple(map(str, nodes)) if isinstance(nodes, list) and not waits else (),
            exit_code=code,
            started=None if waits else epoch_seconds(job.get("startTime")),
            ended=epoch_seconds(job.get("stopTime")) if word in ("Terminated", "Error") else None,
            expected_start=epoch_seconds(job.get("scheduledStart")) if waits else None,
        )

    def look_up(self, id: str) -> list[str] | None:
        return self.history([id])

    def denies(self, result: CommandResult, id: str) -> bool:
        return (
            False  # of an id that it does not know it prints nothing, as where its database fails
        )

    def history(self, ids: Sequence[str]) -> list[str] | None:
        return ["oarstat", "-J", "-f", *(word for id in ids for word in ("-j", id))]

    def parse_history(self, result: CommandResult) -> dict[str, JobStatus]:
        return self.parse_status(result)

    def find(self, marks: Sequence[str]) -> list[str] | None:
        names = ",".join(f"'{directive_value(mark, 'mark')}'" for mark in marks)
        return ["oarstat", "-J", "-f", "--sql", f"job_name IN ({names})"]

    def explain(self, status: JobStatus) -> str:
        by = f"It was cancelled by {status.reason or 'a user'}."
        if status.reason in ("root", "oar"):
            by = "It was ended by the site: its node may have failed."
        failed = "OAR ended it without a reason; see the job's log."
        if status.exit_code is not None:
            failed = ended_with(status.exit_code, ", as when memory runs out")
        sentences = {
            JobState.HELD: "Held: release it with `oarresume`, or stop the cluster.",
            JobState.CANCELLED: by,
            JobState.FAILED: failed,
        }
        return REASONS.explain(status, self.title, sentences, reason=status.reason)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["oardel", *ids]

    def enter(self, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
        tty = ["-t"] if terminal else []
        return ["env", f"OAR_JOB_ID={id}", "oarsh", *tty, node, shlex.join(words)]

    def allocation(self) -> AllocationQuery | None:
        return AllocationQuery(("oarstat",), _ask_about, _read_about, _job_of, _inside)

    def capacity(self) -> list[str] | None:
        return ["oarnodes", "-J", "--sql", "gpu IS NOT NULL"]

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        # A GPU may be several resources, one for each of its cores: taken when one of them is.
        taken: dict[tuple[str, str, str], bool] = {}
        for resource in answer_of(answered(self.title, result)).values():
            if isinstance(resource, dict) and resource.get("gpu") not in (None, "", 0):
                kind = str(resource.get("gpumodel") or resource.get("gpu_model") or "GPUs")
                key = (kind, str(resource.get("network_address")), str(resource["gpu"]))
                free = resource.get("state") == "Alive" and not resource.get("jobs")
                taken[key] = taken.get(key, False) or not free
        total = Counter(kind for kind, *_ in taken)
        free_now = Counter(kind for (kind, *_), busy in taken.items() if not busy)
        return [Capacity(kind, free_now[kind], total[kind]) for kind in total]

    def survey(self, user: str) -> dict[str, list[str]]:
        # Queues and limits of walltime lie in admission rules, which only administrators read.
        return {"resources": ["oarnodes", "-J"]}

    def parse_survey(self, answers: Mapping[str, CommandResult]) -> Site:
        text = answered(self.title, answers["resources"])
        kinds: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for each in answer_of(text).values():
            if isinstance(each, dict) and each.get("gpu") not in (None, "", 0):
                nodes = kinds.setdefault(str(each.get("gpu_model") or ""), {})
                nodes.setdefault(str(each.get("network_address")), []).append(each)
        queues = [_described(kind, nodes) for kind, nodes in kinds.items()]
        asks = {"queue": "Which queue, if not the usual one?", "account": "Which project, if any?"}
        return Site(tuple(queues), questions=asks)


def _described(kind: str, nodes: Mapping[str, Sequence[Mapping[str, Any]]]) -> GpuQueue:
    """Return nodes with one model of GPU, each a list of its resources."""
    counts = {name: len({each["gpu"] for each in rows}) for name, rows in nodes.items()}
    cores = {name: len({each.get("core") for each in rows}) for name, rows in nodes.items()}
    shares = [cores[name] // counts[name] for name in nodes]
    mebibytes = min(
        int(epoch_seconds(each.get(CORE_MEMORY)) or 0) for rows in nodes.values() for each in rows
    )
    return GpuQueue(
        "",
        max(counts.values()),
        kind,
        min(shares),
        mebibytes * min(shares) * 2**20,
        len(nodes),
        keys={"memory_request": CORE_MEMORY} if mebibytes else {},
        address=next(iter(nodes)),
    )


def _condition(text: str) -> str:
    """Take the quotes off a condition; one with alternatives gets parentheses."""
    quoted = (
        len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]
    )
    text = text[1:-1] if quoted else text
    return f"({text})" if re.search(r"\bor\b", text, re.IGNORECASE) else text


def answer_of(text: str) -> dict[str, Any]:
    """Read OAR's JSON; it prints nothing for an empty list."""
    answer = json_in(text, r"\{|\[\]")
    if text.strip() and answer is None:
        raise BackendUnavailable("OAR answered with JSON that cannot be read.", detail=text[-2000:])
    return answer if isinstance(answer, dict) else {}


def _cause(job: Mapping[str, Any]) -> tuple[JobState, str]:
    """Read why a job was ended from its events: the state tells nothing."""
    events = [event for event in job.get("events") or () if isinstance(event, dict)]
    happened = {str(event.get("type")): str(event.get("description")) for event in events}
    for _, rule in REASONS.rules("ended"):
        if rule.part in happened and rule.state is not None:
            by = re.match(r"User (\S+) requested", happened[rule.part])
            cancelled = rule.state is JobState.CANCELLED
            return rule.state, by[1] if by and cancelled else rule.part
    return JobState.FAILED, ""


def _exit_code(wait_status: Any) -> int | None:
    number = epoch_seconds(wait_status) if wait_status else 0
    return None if number is None else exit_code_of_wait(int(number))


def _ask_about(id: str, user: str) -> list[str]:
    """Return the command that describes a job and its resources."""
    return ["sh", "-c", DESCRIBE, "oarstat", id]


def _read_about(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's JSON and the lines of its resources behind it."""
    if result.exit_code == 0 and not result.stdout.strip():
        return None
    text, end, lines = result.stdout.rpartition("\n}")
    job: Any = answer_of(text + end).get(id) if end else None
    if not isinstance(job, dict):
        raise BackendUnavailable("OAR did not answer oarstat.", detail=result.stderr)
    status = Oar().listed(id, job)
    walltime = job.get("walltime")
    if status.started is not None and isinstance(walltime, (int, float)):
        status = replace(status, ends=status.started + walltime)
    resources = [dict(PROPERTY.findall(line)) for line in lines.splitlines()]
    return Allocation(
        status, str(job.get("owner") or ""), tuple(_share(host, resources) for host in status.nodes)
    )


def _inside(id: str, shares: Sequence[tuple[list[str], Share]]) -> dict[str, str]:
    """Return the variable by which oarsh joins the job."""
    return {"OAR_JOB_ID": id}


def _job_of(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in."""
    return environ.get("OAR_JOB_ID", "")


def _share(host: str, resources: list[dict[str, str]]) -> Share:
    """Return what the job has on a node; each of its resources there is a core, if it has one."""
    own = [each for each in resources if each.get("network_address") == host]
    cores = {each["core"] for each in own if each.get("core")}
    gpus = {each["gpu"] for each in own if each.get("gpu", "0") != "0"}
    told = any("gpu" in each for each in own)
    return Share(host, len(cores or own) or 1, len(gpus - {""}) if told else None)
