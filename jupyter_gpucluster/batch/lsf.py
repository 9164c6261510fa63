"""IBM Spectrum LSF: the manual's pages bsub, bjobs, bkill, bhosts and lsf.conf."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
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
from .base import UNREAD, AllocationQuery, Backend, answered, by_word, json_in, local_time
from .directives import Syntax
from .job_classes import head, named, without
from .quoting import directive_value, gpu_kind, gpu_way, memory_of
from .reasons import Reasons
from .refusal import unsubmitted

REASONS = Reasons("lsf")
FIELDS = (
    "jobid jobindex stat exit_code exit_reason pend_reason exec_host start_time finish_time"
    " estimated_start_time job_name"
)
ID = re.compile(
    r"^Job <(\d+)> is submitted(?: to (?:default )?queue <[^<>]+>)?\.\s*$", re.MULTILINE
)
"""An esub may speak before, even of other jobs; a line of this form is bsub's own."""
NAME = re.compile(r"(.*?)(?:\[(\d+)\])?", re.DOTALL)
EASY = re.compile(r"-nnodes\b")
SUBMITTED = {"file": "# bsub takes this script by its path.", "stdin": "# bsub reads this script."}
"""Remarks in a script's head, by which `Lsf.submit` knows the profile's choice."""
BY_FILE = re.compile(rf"^(?:#BSUB +-nnodes\b|{re.escape(SUBMITTED['file'])}$)", re.MULTILINE)
ON_STDIN = re.compile(rf"^{re.escape(SUBMITTED['stdin'])}$", re.MULTILINE)
SILENT = re.compile(
    r"please wait|LSF is down|daemon not responding|cannot connect|connection refused"
    r"|communication time|bad host name|lsf library|LIM is down|unable to (?:contact|reach)",
    re.IGNORECASE,
)
"""No answer, as opposed to a refusal."""
NOTHING = re.compile(r"No (?:unfinished |matching )?jobs? (?:is |was )?found", re.IGNORECASE)
UNKNOWN = re.compile(r"Job <([^<>]+)> is not found")
TIME = re.compile(r"(?:\w{3} )?(\w{3}) +(\d{1,2}) (\d{2}):(\d{2})(?::(\d{2}))? (\d{4})\b", re.ASCII)
"""With LSB_DISPLAY_YEAR; a time without its year is none."""
STATES = by_word(
    pending="PEND PROV WAIT",
    held="PSUSP",
    running="RUN",
    suspended="USUSP SSUSP",
    done="DONE",
    failed="EXIT",
)
"""UNKWN and ZOMBI are left out: LSF itself does not know, its host does not answer."""
GPU_LINE = re.compile(
    r"\s(\d+)\s+\S+\s+\S+\s+\S+\s+(\d+)\s+\d+\s+\d+\s+\d+(?:\s+[A-Za-z]\S*)?\s*$", re.ASCII
)
"""The vendor comes last since Fix Pack 11."""
DESCRIBED = (
    "jobid jobindex stat user exit_reason pend_reason exec_host start_time finish_time job_name"
)
HOST = re.compile(r"(?:(\d+)\*)?([\w.-]+)")
NO_SUCH_JOB = re.compile(r"is not found|No matching job found", re.IGNORECASE)


SECTIONS = re.compile(r"\b(select|order|rusage|span|same|cu|affinity)\[")


class LsfSyntax(Syntax):
    """Directives of bsub, of which ``-R`` asks for many things."""

    def requests_of(self, line: str) -> tuple[str, ...]:
        option, value = self.option_of(line)
        if option != "-R":
            return super().requests_of(line)
        if re.search(r"\brusage\[[^]]*\bngpus", value):
            return ("GPUs",)
        # LSF puts several together; only where tasks go can be said once.
        return ("-R span",) if SECTIONS.findall(value) == ["span"] else (f"-R {value}",)


SYNTAX = LsfSyntax(
    "#BSUB",
    keys={
        "-q": ("queue",), "-P": ("account",), "-W": ("walltime",), "-n": ("cpus",),
        "-M": ("memory",), "-nnodes": ("nodes",), "-R span": ("nodes",),
        "-gpu": ("gpus", "gpu_type"), "-R ngpus*": ("gpus",),
    },
    name="-J",
    arrays=(),
    waits=("-K", "-I", "-Ip", "-Is", "-IS", "-ISp", "-ISs"),
    others=("-app ", "-sla "),
    alike={"-gpu": "GPUs"},
    clock={1: (60,), 2: (3600, 60)},
)  # fmt: skip


class Lsf(Backend):
    """Dialect of bsub, bjobs, bkill and bhosts."""

    name = "lsf"
    title = "LSF"
    syntax: Syntax = SYNTAX
    # bjobs -a lists the ended of the last hour too.
    lacks = frozenset({"history", "parse_history", "find", "routing", "enter"})
    job_class = "lsf.LSFJob"
    most_tasks = 1000
    # LSB_JOBINDEX counts from 1 and is 0 in a job that is no array.
    task = "$((${LSB_JOBINDEX:-0} > 0 ? LSB_JOBINDEX - 1 : 0))"
    # LSF counts no restarts; the second of the start tells them apart as well.
    restarts = '$([ "${LSB_RESTART:-N}" = Y ] && date +%s || echo 0)'
    listing_proves = False
    keeps_ended = False
    launchers = frozenset({"none", "mpirun", "mpiexec", "ssh", "jsrun"})
    unasked: frozenset[str] = frozenset()
    job_variables = ("LSB_JOBID",)
    job_prefixes = ("LSB_",)
    node_lists = (
        ("pairs", "LSB_MCPU_HOSTS"), ("file", "LSB_DJOB_HOSTFILE"), ("words", "LSB_HOSTS"),
    )  # fmt: skip
    # BSUB_QUIET hides the number of a job, BSUB_BLOCK waits for its end.
    steering = (
        "BSUB_",
        "LSF_CMD_LOG",
        "LSF_DEBUG_CMD",
        "LSF_TIME_CMD",
        "LSF_NIOS_",
        "LSF_INTERACTIVE_STDERR",
    )
    locating = ("LSF_ENVDIR", "LSF_SERVERDIR", "LSF_LIBDIR", "LSF_BINDIR")
    selecting = ("LSF_ENVDIR", "LSF_CONFDIR")
    own_logs = ()
    needs_node = True
    rehearsal = ()
    interactive = (("bsub", "-Is"), ("bash",))
    batch_only = frozenset("-J -o -e -oo -eo -r".split())
    remarks: re.Pattern[str] | None = NOTHING
    gpu_requests = ("gpu", "ngpus_physical", "ngpus_excl_p", "nnodes", "none")

    def directives(self, job: JobShape, mark: str, output: str) -> list[str]:
        told, unasked, more = self.resources(job)
        told |= {"name": mark, **named(job, mark, "project")}
        if job.walltime is not None:
            minutes = -(-job.walltime // 60)
            told["walltime"] = f"{minutes // 60:02d}:{minutes % 60:02d}"
        written = without(head(self.job_class, told), *(f"#BSUB {each} " for each in unasked))
        lines = [f"-o {directive_value(output, 'output')}", *more]
        remark = [SUBMITTED[job.submit_by]] if job.submit_by in SUBMITTED else []
        return [*written, *(f"#BSUB {line}" for line in lines), *remark]

    def unused_keys(self, launcher: str) -> tuple[str, ...]:
        return ("existing",)

    def resources(self, job: JobShape) -> tuple[dict[str, object], list[str], list[str]]:
        """Return what the class is told of cores and memory, what it adds, and what it lacks."""
        request = gpu_way(job, self.title, self.gpu_requests)
        if request == "nnodes" or any(EASY.match(own) for own in job.directives):
            # Easy mode gives whole nodes with all they have; it refuses -n, -R and -M.
            return {}, ["-n", "-R", "-M"], [f"-nnodes {job.nodes}"]
        told: dict[str, object] = {}
        unasked, lines = [], self.gpus(job, request) if job.gpus else []
        if job.cpus is None and job.nodes == 1:
            unasked += ["-n", "-R"]
        else:
            each = -(-(job.cpus or job.nodes) // job.nodes)
            told["ncpus"] = each * job.nodes
            if job.nodes > 1:
                unasked.append("-R")
                lines.insert(0, f'-R "span[ptile={each}]"')
        if (memory := memory_of(job, self.title)) is None:
            unasked.append("-M")
        else:
            told |= {"mem": -(-memory // job.nodes), "lsf_units": limit_letter(os.environ)}
        return told, unasked, lines

    def gpus(self, job: JobShape, request: str) -> list[str]:
        each = -(-job.gpus // job.nodes)
        kind = gpu_kind(job.gpu_type) if job.gpu_type else ""
        if request == "gpu":
            model = f":gmodel={kind}" if kind else ""
            # Without j_exclusive other jobs may be put on the same GPUs.
            return [f'-gpu "num={each}{model}:j_exclusive=yes"']
        if kind:
            raise InvalidInput(
                f"LSF cannot ask for a GPU type by {request}.",
                hint="Use job.gpu_request: gpu, or a -R directive that selects the hosts.",
                detail="job.gpu_type",
            )
        return [] if request == "none" else [f'-R "rusage[{request}={each}]"']

    def submit(self, submission: Submission) -> list[str]:
        # One task is an array too, so that every task has an id and a log of the same form.
        argv = ["bsub", "-J", f"{submission.mark}[1-{submission.count}]"]
        return [*argv, submission.script] if _by_file(submission) else argv

    def stdin(self, submission: Submission) -> str:
        return "" if _by_file(submission) else submission.text

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        found = ID.findall(result.stdout)
        if result.exit_code == 0 and len(found) == 1:
            return tuple(f"{found[0]}[{task + 1}]" for task in range(submission.count))
        raise unsubmitted(self, submission, result, REASONS.phrases, SILENT.search(result.stderr))

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        # -a: also those that ended within CLEAN_PERIOD, an hour by default.
        bjobs = ["bjobs", "-json", "-a", "-u", user, "-o", FIELDS]
        return ["env", "LSB_DISPLAY_YEAR=Y", *bjobs]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        if result.exit_code is None or SILENT.search(result.stderr):
            raise BackendUnavailable("LSF did not answer bjobs.", detail=result.stderr)
        found = {}
        for record in records_of(result):
            status = self.listed({str(key): str(value) for key, value in record.items()})
            if status is not None:
                found[status.id] = status
        return found

    def listed(self, record: Mapping[str, str]) -> JobStatus | None:
        """Return a job, None for what is no task of an array or an id that LSF does not know.

        What may be a task of ours and has no readable id is `UNREAD`.
        """
        name = NAME.fullmatch(record.get("JOB_NAME", ""))
        id = re.fullmatch(r"(\d+)(?:\[(\d+)\])?", record.get("JOBID", ""), re.ASCII)
        if id is None or name is None:
            return None if "ERROR" in record else UNREAD
        index = id[2] or record.get("JOBINDEX", "") or name[2] or ""
        if not (index.isascii() and index.isdigit() and 0 < int(index) < 10**6):
            return UNREAD if name[1].startswith("gpc-") else None
        word = record.get("STAT", "").split(" ")[0]
        state = STATES.get(word, JobState.UNKNOWN)
        reason = record.get("PEND_REASON", "")
        if word in ("EXIT", "DONE"):
            reason = record.get("EXIT_REASON", "")
        if state is JobState.FAILED:
            state = REASONS.find("ended", reason.strip()).state or state
        over = word in ("EXIT", "DONE")
        code = record.get("EXIT_CODE", "")
        return JobStatus(
            id=f"{id[1]}[{int(index)}]",
            state=state,
            mark=name[1],
            task=int(index) - 1,
            reason=reason.strip().rstrip(";"),
            nodes=_hosts(record.get("EXEC_HOST", "")),
            exit_code=_code(code, word) if over else None,
            started=time_of(record.get("START_TIME", "")),
            ended=time_of(record.get("FINISH_TIME", "")) if over else None,
            expected_start=time_of(record.get("ESTIMATED_START_TIME", ""))
            if state is JobState.PENDING
            else None,
            unsatisfiable=state in (JobState.PENDING, JobState.HELD)
            and REASONS.find("waiting", reason).unsatisfiable,
        )

    def look_up(self, id: str) -> list[str] | None:
        return ["env", "LSB_DISPLAY_YEAR=Y", "bjobs", "-json", "-a", "-o", FIELDS, id]

    def denies(self, result: CommandResult, id: str) -> bool:
        found = UNKNOWN.findall(result.stdout + result.stderr)
        return id in found or id.partition("[")[0] in found

    def explain(self, status: JobStatus) -> str:
        held = "Held before it started: release it with `bresume`, or stop the cluster."
        sentences = {
            JobState.HELD: held,
            JobState.UNKNOWN: "LSF has lost contact with the job's host; it may still run there.",
            JobState.SUSPENDED: "Suspended by you, the site or the load of its host.",
        }
        return REASONS.explain(status, self.title, sentences)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["bkill", *ids]

    def allocation(self) -> AllocationQuery | None:
        return AllocationQuery(("bjobs",), _ask_about, _read_about, _job_of)

    def capacity(self) -> list[str] | None:
        return ["bhosts", "-gpu", "-w"]

    def parse_capacity(self, result: CommandResult) -> list[Capacity]:
        lines = answered(self.title, result).splitlines()
        jobs = [int(m[2]) for line in lines if (m := GPU_LINE.search(line))]
        return [Capacity("all hosts", jobs.count(0), len(jobs))] if jobs else []


def limit_letter(environment: Mapping[str, str]) -> str:
    """Return the first letter of the unit of ``-M``: LSF_UNIT_FOR_LIMITS, else kilobytes.

    LSF counts in powers of 1000 here, as dask-jobqueue does.
    """
    directory = environment.get("LSF_ENVDIR") or environment.get("LSF_CONFDIR") or "/etc"
    try:
        text = Path(directory, "lsf.conf").read_text("utf-8", "replace")
    except OSError:
        text = ""
    # The last line counts where there are several.
    units = re.findall(r"^\s*LSF_UNIT_FOR_LIMITS\s*=\s*\"?([kmgtpe])", text, re.I | re.M)
    return units[-1].lower() if units else "k"


def _by_file(submission: Submission) -> bool:
    """Return whether bsub takes the script's path: easy mode refuses standard input."""
    return bool(BY_FILE.search(submission.text) and not ON_STDIN.search(submission.text))


def records_of(result: CommandResult) -> list[Mapping[Any, Any]]:
    """Return the records of bjobs' JSON, which other lines may precede."""
    answer, output = json_in(result.stdout), result.stdout + result.stderr
    records = answer.get("RECORDS") if isinstance(answer, dict) else None
    if not re.search(r"^\s*\{", result.stdout, re.MULTILINE) and NOTHING.search(output):
        records = []
    if not isinstance(records, list):
        words = "LSF did not answer bjobs in a form that we can read."
        raise BackendUnavailable(words, detail=output[-2000:])
    return [record if isinstance(record, Mapping) else {} for record in records]


def _hosts(text: str) -> tuple[str, ...]:
    """Turn ``4*node1:node2:node2`` into the names of the hosts."""
    names = (part.rpartition("*")[2] for part in text.split(":"))
    return tuple(dict.fromkeys(name for name in names if name and name != "-"))


def _code(text: str, word: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) < 6:
        return int(text)
    return 0 if word == "DONE" else None


def time_of(text: str) -> float | None:
    """Read a local time; without a year, and for ``-``, it is None."""
    match = TIME.match(text)
    if match is None:
        return None
    month, day, hour, minute, second, year = match.groups()
    return local_time(f"Mon {month} {day} {hour}:{minute}:{second or '00'} {year}")


def _ask_about(id: str, user: str) -> list[str]:
    """Return the command that describes a job, of whatever user."""
    bjobs = ["bjobs", "-json", "-a", "-u", "all", "-o", DESCRIBED, id]
    return ["env", "LSB_DISPLAY_YEAR=Y", *bjobs]


def _read_about(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's record."""
    if result.exit_code is None or SILENT.search(result.stderr):
        raise BackendUnavailable("LSF did not answer bjobs.", detail=result.stderr)
    said = result.stderr + result.stdout
    if NO_SUCH_JOB.search(said) or NOTHING.search(said):
        return None
    records = [{str(key): str(value) for key, value in each.items()} for each in records_of(result)]
    record = next((each for each in records if "USER" in each), None)
    if record is None:
        return None  # records of ids that LSF does not know have an error and nothing else
    # The listing knows tasks of arrays only, since all jobs of ours are such.
    number = record.get("JOBID", "").partition("[")[0]
    status = Lsf().listed({**record, "JOBID": number, "JOBINDEX": "1"})
    if status is None:
        raise BackendUnavailable("LSF did not answer bjobs in a form that we can read.")
    running = status.state is JobState.RUNNING
    ends = time_of(record.get("FINISH_TIME", "")) if running else None
    return Allocation(
        replace(status, id=id, ends=ends),
        record["USER"],
        _shares(record.get("EXEC_HOST", "")) if status.nodes else (),
    )


def _job_of(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in, with that of its task in an array."""
    index = environ.get("LSB_JOBINDEX", "0")
    id = environ.get("LSB_JOBID", "")
    return f"{id}[{index}]" if id and index.isdecimal() and int(index) else id


def _shares(text: str) -> tuple[Share, ...]:
    """Read ``4*node1:4*node2``."""
    slots: Counter[str] = Counter()
    for count, host in HOST.findall(text):
        slots[host] += int(count or 1)
    return tuple(Share(host, count) for host, count in slots.items())
