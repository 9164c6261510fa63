"""PBS Professional and OpenPBS: https://help.altair.com/2024.1.0/PBS%20Professional/PBSReferenceGuide2024.1.pdf."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import BackendUnavailable, InvalidInput
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
from .base import AllocationQuery, Amounts, Backend, answered, by_word, ended_with, local_time
from .directives import Syntax
from .job_classes import head, named
from .quoting import directive_value, gpu_kind, memory_of, resource_name
from .reasons import Reasons
from .refusal import unsubmitted

REASONS = Reasons("pbs")
ID = re.compile(r"^(\d+)(\[\])?(\.(?=[\w.-]*[A-Za-z])[\w.-]+)$", re.MULTILINE | re.ASCII)
FIND_EACH = (
    'set -f; ids=; for name do ids="$ids $(qselect -x -N "$name")"; done; set -- $ids;'
    ' [ $# = 0 ] || exec qstat -x -t -f -F json "$@"'
)
"""Only qselect finds by name, only qstat describes; the script is fixed, names are arguments."""
TASK = re.compile(r"\[(\d+)\]")
SILENT = re.compile(
    r"cannot connect to server|connection (refused|timed out|reset)|no route to host|pbs_iff"
    r"|communication failure|end of file|server shutting down|premature end of message",
    re.IGNORECASE,
)
"""No answer, as opposed to a refusal: the server is stopped or restarts."""
MISSET = re.compile(r"Unknown Host|pbs conf variables not found")
"""Ends in "cannot connect to server" too, and will not change by waiting."""
DEAD_OR_UNKNOWN = (35, 153)
"""Exit codes of qstat where some of the ids are over or unknown; it lists the others."""
UNKNOWN = re.compile(
    r"^qstat: (?:Unknown Job Id(?: Error)? (\S+).*|(\S+) Job has finished, .*)$", re.MULTILINE
)
"""qstat's messages about unknown ids and about ended jobs."""
STATES = by_word(pending="Q W T", held="H", running="R", suspended="S U", ending="E")
PREEMPTED, CANCELLED = 45, 91
"""Substates that tell why a job is suspended, and why it is over."""
CHUNK = re.compile(r"([\w.-]+)(?:\[\d+\])?((?::\w+=\w+)*)")
SLOTS = re.compile(r"([\w.-]+)/\d+(?:\*(\d+))?")
SIZE = re.compile(r"(\d+)([kmgt]?)b", re.IGNORECASE)


IN_CHUNK = re.compile(
    r"#PBS -l (ncpus|ngpus|mem|mpiprocs|ompthreads|vnode|host)=([\w.]*)", re.ASCII
)
"""Resources that PBS takes in a chunk, or once for the job and then without ``select``."""


class PbsSyntax(Syntax):
    """Directives of qsub: what is asked for once goes into the job's chunk, if it has one."""

    def arrange(self, lines: Sequence[str], own: int) -> list[str]:
        done = super().arrange(lines, own)
        one = re.compile(r"#PBS -l select=1(:.*)?")
        chunk = next((n for n, line in enumerate(done[:own]) if one.fullmatch(line)), None)
        if chunk is None:
            return done
        for line in lines[own:]:
            if (match := IN_CHUNK.fullmatch(line)) is None:
                continue
            set_there = re.search(rf":{match[1]}=([\w.]+)", done[chunk])
            if set_there is None:
                done[chunk] += f":{match[1]}={match[2]}"
            if set_there is None or set_there[1].lower() == match[2].lower():
                done.remove(line)
        return done

    def check(self, generated: Sequence[str], lines: Sequence[str]) -> None:
        """Refuse what could not be moved into the one chunk of a job.

        Raises
        ------
        InvalidInput
            PBS takes one of the lines only without the ``select`` that stands there, too.
        """
        if select := next((line for line in lines if line.startswith("#PBS -l select=")), ""):
            for line in filter(IN_CHUNK.match, lines):
                raise InvalidInput(
                    f"job.directives ask for {line!r}, which PBS refuses beside {select!r}.",
                    hint="Use the keys of job, or write a whole select into job.directives.",
                    detail="job.directives",
                )


SYNTAX = PbsSyntax(
    "#PBS",
    keys={
        "-q": ("queue",), "-A": ("account",), "-l walltime": ("walltime",),
        "-l select": ("nodes", "cpus", "memory", "gpus"),
        "-l nodes": ("nodes", "cpus", "gpus", "gpu_type"),
        "-l ncpus": ("cpus",), "-l mem": ("memory",), "-l gpu_type": ("gpu_type",),
        "-l gpu": ("gpus",), "-l gpus": ("gpus",), "-l ngpus": ("gpus",), "-l {gpu}": ("gpus",),
    },
    name="-N",
    arrays=("-J", "-t"),
    waits=("-I", "-X", "-W block"),
    others=("-l place=", "-W group_list="),
    alike={"-l nodes": "-l select"},
    repeated=("-l", "-W"),
    glued=True,
    listed=True,
)  # fmt: skip


ACLS = {"user": "acl_users", "group": "acl_groups"}
AMOUNTS_OF_A_CHUNK = ("ncpus", "ngpus", "mem", "mpiprocs", "ompthreads", "vmem")
"""Resources that nodes have amounts of; others in a default chunk choose nodes."""


class Pbs(Backend):
    """Dialect of qsub, qstat, qdel and pbsnodes."""

    name = "pbs"
    title = "PBS"
    syntax: Syntax = SYNTAX
    lacks: frozenset[str] = frozenset({"stdin", "routing", "enter"})
    job_class = "pbs.PBSJob"
    most_tasks = 1000
    task = "${PBS_ARRAY_INDEX:-0}"
    restarts = "0"  # run_count is on the server, not in the job's environment
    listing_proves = False
    keeps_ended = False
    launchers = frozenset({"none", "mpirun", "mpiexec", "ssh", "aprun"})
    unasked: frozenset[str] = frozenset()
    job_variables = ("PBS_JOBID",)
    job_words = "PBS job {}"  # of Torque and Moab, too: their jobs have the same variable
    job_prefixes = ("PBS_",)
    node_lists = (("file", "PBS_NODEFILE"),)
    # The file counts the MPI processes of a node: one, unless the job asks for more.
    amounts = Amounts(cores="NCPUS")
    steering: tuple[str, ...] = ()
    locating = ("PBS_CONF_FILE", "PBS_DEFAULT", "PBS_EXEC", "PBS_SERVER")
    selecting: tuple[str, ...] = ("PBS_CONF_FILE", "PBS_SERVER", "PBS_DEFAULT")
    submit_host: re.Pattern[str] | None = re.compile(r'PBS_O_HOST"?[=:]\s*"?([\w.-]+)')
    own_logs = (r"{mark}\.[oe]{number}{task}",)
    needs_node = True
    rehearsal = ()
    interactive = (("qsub", "-I"), ())
    batch_only = frozenset("-N -o -e -j -r -J".split())
    remarks: re.Pattern[str] | None = UNKNOWN
    usual_gpus = "ngpus"

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        first, *more = self.resources(job)
        written = head(self.job_class, {**named(job, mark), "resource_spec": first})
        lines = [*(f"-l {each}" for each in more), "-j oe"]
        lines.append(f"-o {directive_value(output, 'output')}")
        return [*written, *(f"#PBS {line}" for line in lines)]

    def resources(self, job: JobShape) -> list[str]:
        """Return what asks for nodes and for what each gives, and what else is asked for."""
        chunk = f"select={job.nodes}"
        if job.cpus is not None:
            chunk += f":ncpus={-(-job.cpus // job.nodes)}"
        if job.ranks > 1:
            chunk += f":mpiprocs={job.ranks}"
        if (memory := memory_of(job, self.title)) is not None:
            chunk += f":mem={size(-(-memory // job.nodes))}"
        lines = [chunk + self.gpus_of_node(job)]
        if job.nodes > 1:
            lines.append("place=scatter")
        if job.gpus and job.gpu_type:
            lines.append(f"gpu_type={gpu_kind(job.gpu_type)}")
        return lines

    def gpus_of_node(self, job: JobShape) -> str:
        """Return the request for a node's GPUs, as a part of that for the node."""
        request = job.gpu_request or self.usual_gpus
        if not job.gpus or request == "none":
            return ""
        return f":{resource_name(request, 'job.gpu_request')}={-(-job.gpus // job.nodes)}"

    def submit(self, submission: Submission) -> list[str]:
        # An array of one is refused ("illegal -J value").
        array = ["-J", f"0-{submission.count - 1}"] if submission.count > 1 else []
        return ["qsub", *array, submission.script]

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        found = set(ID.findall(result.stdout))
        if result.exit_code == 0 and len(found) == 1:
            number, array, server = found.pop()
            if bool(array) == (submission.count > 1):
                tasks = [f"[{task}]" for task in range(submission.count)] if array else [""]
                return tuple(f"{number}{task}{server}" for task in tasks)
        lost = SILENT.search(result.stderr) and not MISSET.search(result.stderr)
        raise unsubmitted(self, submission, result, REASONS.phrases, found or lost)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        # Without -x, which is an error for living jobs too where the site keeps no history.
        # Never an empty id: it would list every job of the site.
        return ["qstat", "-t", "-f", "-F", "json", *_whole(ids)]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        return self.jobs(answered(self.title, result, (0, *DEAD_OR_UNKNOWN)))

    def jobs(self, text: str) -> dict[str, JobStatus]:
        """Read qstat's JSON; arrays as a whole are left out, their tasks are jobs of their own."""
        jobs = section_of(text, "Jobs")
        return {
            id: self.listed(id, job if isinstance(job, dict) else {})
            for id, job in jobs.items()
            if "[]" not in id
        }

    def listed(self, id: str, job: Mapping[str, Any]) -> JobStatus:
        letter, substate = str(job.get("job_state", "")), number_of(job.get("substate"))
        comment = str(job.get("comment", ""))
        state, reason = STATES.get(letter, JobState.UNKNOWN), comment
        code = None
        if letter in ("F", "X"):
            code = number_of(job.get("Exit_status"))
            state = _outcome(code, substate, started="stime" in job)
            reason = str(code) if REASONS.say("ended", str(code)) else comment
        elif letter == "H":
            reason = f"Hold_Types {job.get('Hold_Types', '')}"
        elif letter == "W":
            reason = f"Execution_Time {job.get('Execution_Time', '')}"
        elif letter == "S" and substate == PREEMPTED:
            reason = "preempted"
        task = TASK.search(id)
        estimated = job.get("estimated")
        return JobStatus(
            id=id,
            state=state,
            mark=str(job.get("Job_Name", "")),
            task=int(task[1]) if task else 0,
            reason=reason,
            nodes=hosts_of(str(job.get("exec_host", ""))) if state is not JobState.PENDING else (),
            exit_code=exit_code_of(code),
            started=local_time(job.get("stime")) if state is not JobState.PENDING else None,
            ended=local_time(job.get("obittime") or job.get("mtime"))
            if letter in ("F", "X")
            else None,
            expected_start=local_time(estimated.get("start_time"))
            if state is JobState.PENDING and isinstance(estimated, dict)
            else None,
            ends=_end(job) if state is JobState.RUNNING else None,
        )

    def look_up(self, id: str) -> list[str] | None:
        return ["qstat", "-t", "-f", "-F", "json", id]

    def denies(self, result: CommandResult, id: str) -> bool:
        found = {unknown or over for unknown, over in UNKNOWN.findall(result.stderr)}
        return id in found or TASK.sub("[]", id) in found

    def history(self, ids: Sequence[str]) -> list[str] | None:
        return ["qstat", "-x", "-t", "-f", "-F", "json", *_whole(ids)]

    def parse_history(self, result: CommandResult) -> dict[str, JobStatus]:
        return self.parse_status(result)

    def find(self, marks: Sequence[str]) -> list[str] | None:
        return ["sh", "-c", FIND_EACH, "qselect", *marks]

    def explain(self, status: JobStatus) -> str:
        last = status.reason.rpartition(": ")[2]
        return REASONS.explain(status, self.title, self.sentences(status), reason=last)

    def sentences(self, status: JobStatus) -> dict[JobState, str]:
        """Return those about states whose reason no rule knows."""
        reason, code = status.reason, status.exit_code
        kinds = (REASONS.say("holds", kind) for kind in reason.rpartition(" ")[2])
        preempted = "Suspended for a job of higher priority; it continues after that one."
        _, said, by = reason.rpartition(" and terminated by ")
        failed = "It ended without having run; a job that it depends on may have failed."
        if code is not None:
            signal = f" (signal {code - 128})" if code > 128 else ""
            failed = ended_with(code).removesuffix(".") + f"{signal}."
        return {
            JobState.HELD: next(filter(None, kinds), "Held."),
            JobState.SUSPENDED: preempted if reason == "preempted" else "",
            JobState.CANCELLED: f"It was cancelled by {by if said else 'a user'}.",
            JobState.FAILED: failed,
        }

    def cancel(self, ids: Sequence[str]) -> list[str]:
        # Task by task: deleting a whole array overwrites the exit codes of those that are over.
        return ["qdel", *ids]

    def allocation(self) -> AllocationQuery | None:
        return AllocationQuery(("qstat", "pbs_rstat"), _ask_about, _read_about, _job_of)

    def capacity(self) -> list[str] | None:
        return ["pbsnodes", "-a", "-F", "json"]

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        free, total = Counter[str](), Counter[str]()
        for node in section_of(answered(self.title, result), "nodes").values():
            if not isinstance(node, dict):
                continue
            has, used = (
                number_of(node[part].get("ngpus")) or 0 if isinstance(node.get(part), dict) else 0
                for part in ("resources_available", "resources_assigned")
            )
            partition = str(node.get("queue", "all nodes"))
            total[partition] += has
            if str(node.get("state")) in ("free", "job-busy"):
                free[partition] += max(0, has - used)
        return [Capacity(name, free[name], total[name]) for name in total if total[name]]

    def survey(self, user: str) -> dict[str, list[str]]:
        return {
            "nodes": ["pbsnodes", "-a", "-F", "json"],
            "queues": ["qstat", "-Q", "-f", "-F", "json"],
            "user": ["id", "-un"],
            "groups": ["id", "-Gn", user],
        }

    def parse_survey(self, answers: Mapping[str, CommandResult]) -> Site:
        listed, queues = (answered(self.title, answers[name]) for name in ("nodes", "queues"))
        nodes = [
            {**node["resources_available"], "queue": str(node.get("queue", ""))}
            for node in section_of(listed, "nodes").values()
            if isinstance(node, dict) and isinstance(node.get("resources_available"), dict)
        ]
        user, groups = answers["user"].stdout.strip(), answers["groups"].stdout.split()
        found = []
        for name, queue in section_of(queues, "Queue").items():
            chunk = queue.get("default_chunk") or {}
            kinds: dict[str, list[dict[str, Any]]] = {}
            for node in nodes:
                if number_of(node.get("ngpus")) and _leads_to(name, chunk, node):
                    kinds.setdefault(str(node.get("gpu_type", "")), []).append(node)
            if queue.get("queue_type") == "Execution":
                closed = _closed(queue, user, groups)
                found += [_described(kind, at, name, queue, closed) for kind, at in kinds.items()]
        return Site(tuple(found), questions={"account": "Which project, if the site charges one?"})


def _described(
    kind: str, nodes: Sequence[Mapping[str, Any]], name: str, queue: Mapping[str, Any], closed: str
) -> GpuQueue:
    """Return a queue and its nodes with one type of GPU."""
    amounts = [(number_of(node["ngpus"]) or 1, node) for node in nodes]
    limits, defaults = (queue.get(f"resources_{each}") or {} for each in ("max", "default"))
    users = [f"{what}s {queue[key]}" for what, key in ACLS.items() if queue.get(key)]
    return GpuQueue(
        name,
        max(gpus for gpus, _ in amounts),
        kind,
        min((number_of(node.get("ncpus")) or 0) // gpus for gpus, node in amounts),
        min(_bytes(str(node.get("mem"))) // gpus // 2**20 * 2**20 for gpus, node in amounts),
        len(nodes),
        walltime=SYNTAX.seconds(str(limits.get("walltime"))) or 0,
        default_walltime=SYNTAX.seconds(str(defaults.get("walltime"))) or 0,
        most_gpus=number_of(limits.get("ngpus")) or 0,
        open_to=", ".join(users) or "all users",
        closed=closed,
        address=str(nodes[0].get("host", "")),
    )


def _closed(queue: Mapping[str, Any], user: str, groups: Sequence[str]) -> str:
    """Return why a queue takes no jobs of the user."""
    if queue.get("enabled") != "True" or queue.get("started") != "True":
        return "it is disabled or stopped"
    mine = {"user": {user}, "group": {*groups}}
    for what, key in ACLS.items():
        listed = [name.partition("@")[0] for name in str(queue.get(key) or "").split(",")]
        if queue.get(f"acl_{what}_enable") == "True" and not mine[what] & {*listed}:
            return f"it is for the {what}s {queue.get(key)}"
    return ""


def _leads_to(queue: str, chunk: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return whether a queue's jobs may run on a node: by its queue, or by what chunks request."""
    bound = node["queue"] in ("", queue)
    wanted = {key: str(value) for key, value in chunk.items() if key not in AMOUNTS_OF_A_CHUNK}
    return bound and all(
        value in str(node.get(key, "")).split(",") for key, value in wanted.items()
    )


def size(count: int) -> str:
    """Write bytes, rounded up, in the largest unit that keeps two digits; PBS counts in 1024s."""
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if count >= 10 * factor:
            return f"{-(-count // factor)}{unit}"
    return f"{count}B"


def _whole(ids: Sequence[str]) -> list[str]:
    """Name each array once."""
    return list(dict.fromkeys(TASK.sub("[]", id) for id in ids if id))


def section_of(text: str, name: str) -> dict[str, Any]:
    """Read one mapping of PBS's JSON.

    Variables of a job make it invalid: numbers such as ``005`` and ``.5`` stand without quotes
    (https://github.com/openpbs/openpbs/issues/1255, pull/2603), and a backslash may precede
    anything (pull/2049).
    """
    text = text[max(0, text.find("{")) :]
    for attempt in (text, _mended(text)):
        try:
            answer = json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
        # Without jobs it still says who answers.
        if isinstance(answer, dict) and (name in answer or "pbs_version" in answer):
            section = answer.get(name, {})
            return section if isinstance(section, dict) else {}
    raise BackendUnavailable("PBS answered with JSON that cannot be read.", detail=text[:1000])


def _mended(text: str) -> str:
    bare = re.sub(r'^(\s*"[^"\n]*":\s*)([-+.\w]+)(,?)\s*$', r'\1"\2"\3', text, flags=re.MULTILINE)
    return re.sub(r'\\(\\|["/bfnrt]|u[0-9a-fA-F]{4})?', lambda m: m[0] if m[1] else "", bare)


def _outcome(code: int | None, substate: int | None, *, started: bool) -> JobState:
    if (state := REASONS.find("ended", str(code)).state) is not None:
        return state
    if substate == CANCELLED:
        return JobState.CANCELLED
    if code is None:
        return JobState.UNKNOWN if started else JobState.FAILED
    return JobState.FAILED if code else JobState.DONE


def exit_code_of(code: int | None) -> int | None:
    """Turn an Exit_status into an exit code, negative for a signal; PBS's own codes are none."""
    if code is None or code < 0:
        return None
    return 256 - code if code > 256 else code


def hosts_of(text: str) -> tuple[str, ...]:
    """Return the hosts of ``gpu01/0*4+gpu02/1``."""
    return tuple(dict.fromkeys(part.partition("/")[0] for part in text.split("+") if part))


def number_of(value: Any) -> int | None:
    """Return a whole number, or None where there is none."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _end(job: Mapping[str, Any]) -> float | None:
    """Return when a running job reaches its walltime, which the site may have set."""
    asked, started = job.get("Resource_List"), local_time(job.get("stime"))
    seconds = SYNTAX.seconds(str(asked.get("walltime"))) if isinstance(asked, dict) else None
    return None if seconds is None or started is None else started + seconds


def _ask_about(id: str, user: str) -> list[str]:
    """Return the command that describes a job."""
    return ["qstat", "-f", "-F", "json", id]


def _read_about(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's JSON."""
    if result.exit_code in DEAD_OR_UNKNOWN:
        return None
    jobs = section_of(answered(Pbs.title, result), "Jobs")
    if not jobs:
        return None
    name, job = next(iter(jobs.items()))
    status = Pbs().listed(name, job)
    owner = str(job.get("Job_Owner", "")).partition("@")[0]
    return Allocation(status, owner, _shares(job) if status.nodes else ())


def _job_of(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in; Torque has the same variable."""
    return "" if "TORQUE" in environ.get("PBS_VERSION", "") else environ.get("PBS_JOBID", "")


def _shares(job: Mapping[str, Any]) -> tuple[Share, ...]:
    """Return what a job has on each host, from ``(n1:ncpus=4:ngpus=1:mem=9gb)+(n2:ncpus=4)``."""
    cpus: Counter[str] = Counter()
    for host, count in SLOTS.findall(str(job.get("exec_host", ""))):
        cpus[host] += int(count or 1)
    totals: dict[str, Counter[str]] = {host: Counter() for host in cpus}
    for vnode, amounts in CHUNK.findall(str(job.get("exec_vnode", ""))):
        # A host may be several vnodes: ``n1[0]``, ``n1[1]``.
        total = totals.get(vnode)
        for name, value in re.findall(r":(\w+)=(\w+)", amounts):
            if total is not None:
                total[name] += _bytes(value) if name == "mem" else number_of(value) or 0
    return tuple(
        Share(host, cpus[host], total["ngpus"], total["mem"] or None)
        for host, total in totals.items()
    )


def _bytes(text: str) -> int:
    match = SIZE.fullmatch(text)
    return int(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " ") if match else 0
