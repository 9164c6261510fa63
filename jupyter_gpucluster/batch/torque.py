"""Torque, PBS's other line, and Moab, which schedules it.

http://docs.adaptivecomputing.com/torque/6-1-2/adminGuide/torque.htm
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
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
from .base import UNREAD, AllocationQuery, Backend, by_word, epoch_seconds, xml_of
from .pbs import Pbs, exit_code_of, hosts_of, number_of, size
from .quoting import gpu_kind, memory_of
from .reasons import Reasons
from .refusal import unsubmitted

STATES = by_word(pending="Q W T", held="H", running="R", suspended="S", ending="E")
ENDED = {-10: JobState.OUT_OF_MEMORY, -11: JobState.TIMEOUT, -12: JobState.TIMEOUT}
"""Exit status that Torque itself gives for a job over a limit: memory, walltime, CPU time."""
TERMINATED, KILLED = 271, 265
"""Exit status after qdel; older versions give it at the walltime too."""
NO_SUCH_JOB = re.compile(r"Unknown Job Id", re.IGNORECASE)
SLOTS = re.compile(r"([\w.-]+)/(\d+)(?:-(\d+))?")
GPU_SLOTS = re.compile(r"([\w.-]+)-gpu/\d+")


class Torque(Pbs):
    """Dialect of Torque's qsub, qstat and qdel: other resources, arrays and listings."""

    name = "torque"
    title = "Torque"
    # qstat itself lists the ended until they are forgotten.
    lacks = Pbs.lacks | {"history", "find", "capacity", "parse_capacity"}
    history, find = Backend.history, Backend.find
    capacity, parse_capacity = Backend.capacity, Backend.parse_capacity
    usual_gpus = "gpus"
    task = "${PBS_ARRAYID:-0}"
    steering: tuple[str, ...] = ("PBSDEBUG", "PBSAPITIMEOUT")

    def resources(self, job: JobShape) -> list[str]:
        node = f"nodes={job.nodes}"
        if job.cpus is not None:
            node += f":ppn={-(-job.cpus // job.nodes)}"
        node += self.gpus_of_node(job)
        if job.gpus and job.gpu_type:
            node += f":{gpu_kind(job.gpu_type)}"
        # Unlike a chunk of PBS Pro, `mem` is that of all nodes together.
        memory = memory_of(job, self.title)
        return [node, *([f"mem={size(memory)}"] if memory is not None else [])]

    def submit(self, submission: Submission) -> list[str]:
        array = ["-t", f"0-{submission.count - 1}"] if submission.count > 1 else []
        return ["qsub", *array, submission.script]

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        whole = dict.fromkeys(re.sub(r"\[\d+\]", "[]", id) for id in ids if id)
        return ["qstat", "-t", "-f", "-x", *whole]

    def jobs(self, text: str) -> dict[str, JobStatus]:
        """Read qstat's XML; it prints nothing where there is no job."""
        if not text.strip():
            return {}
        root = xml_of(text, self.title)
        if root.tag != "Data":
            raise BackendUnavailable(f"{self.title}'s answer to qstat cannot be read.")
        jobs = ({field.tag: field.text or "" for field in job} for job in root.iter("Job"))
        # Arrays as a whole are left out, their tasks are jobs of their own.
        found = (self.described(job) for job in jobs if "[]" not in job.get("Job_Id", ""))
        return {status.id: status for status in found}

    def described(self, job: dict[str, str]) -> JobStatus:
        """Read one job; Torque keeps those that are over for some minutes, in state C."""
        id, letter = job.get("Job_Id", UNREAD.id), job.get("job_state", "")
        state, code = STATES.get(letter, JobState.UNKNOWN), number_of(job.get("exit_status"))
        task = re.search(r"\[(\d+)\]", id)
        status = JobStatus(
            id=id,
            state=state,
            # The name of a task ends in its number.
            mark=job.get("Job_Name", "").removesuffix(f"-{task[1]}" if task else ""),
            task=int(task[1]) if task else 0,
            reason=job.get("comment", ""),
            nodes=hosts_of(job.get("exec_host", "")),
            started=epoch_seconds(job.get("start_time")),
        )
        if letter == "H":
            return replace(status, reason=f"Hold_Types {job.get('Hold_Types', '')}")
        if letter != "C":
            return status
        if code in (TERMINATED, KILLED, None):
            state = JobState.CANCELLED
        else:
            state = ENDED.get(code, JobState.FAILED if code else JobState.DONE)
        return replace(
            status,
            state=state,
            exit_code=exit_code_of(code),
            ended=epoch_seconds(job.get("comp_time")),
        )

    def look_up(self, id: str) -> list[str] | None:
        return ["qstat", "-t", "-f", "-x", id]

    def sentences(self, status: JobStatus) -> dict[JobState, str]:
        cancelled = f"It was cancelled, or ended by {self.title} at its walltime."
        return {**super().sentences(status), JobState.CANCELLED: cancelled}

    def allocation(self) -> AllocationQuery | None:
        return AllocationQuery(("qstat", "pbsdsh", "qsig"), _ask_about, _read_about, _job_of)

    def survey(self, user: str) -> dict[str, list[str]]:
        return {}  # its answers have another form


def _ask_about(id: str, user: str) -> list[str]:
    """Return the command that describes a job."""
    return ["qstat", "-f", "-x", id]


def _read_about(id: str, result: CommandResult) -> Allocation | None:
    """Read a job's XML."""
    if NO_SUCH_JOB.search(result.stderr):
        return None
    job = xml_of(result.stdout, Torque.title).find("Job")
    if result.exit_code != 0 or job is None or job.find("Job_Id") is None:
        raise BackendUnavailable("Torque did not answer qstat.", detail=result.stderr)
    fields = {field.tag: field.text or "" for field in job}
    status = Torque().described(fields)
    walltime = Torque.syntax.seconds(job.findtext("Resource_List/walltime") or "")
    if status.started is not None and walltime:
        status = replace(status, ends=status.started + walltime)
    slots: Counter[str] = Counter()
    for host, first, last in SLOTS.findall(fields.get("exec_host", "")):
        slots[host] += int(last or first) - int(first) + 1
    gpus = Counter(GPU_SLOTS.findall(fields.get("exec_gpus", "")))
    shares = tuple(Share(host, count, gpus[host]) for host, count in slots.items())
    return Allocation(status, fields.get("Job_Owner", "").partition("@")[0], shares)


def _job_of(environ: Mapping[str, str]) -> str:
    """Return the number of the job that a process is in."""
    return environ.get("PBS_JOBID", "") if "TORQUE" in environ.get("PBS_VERSION", "") else ""


# Moab: http://docs.adaptivecomputing.com/9-1-3/MWM/moab.htm

REASONS = Reasons("pbs")
MOAB_ID = re.compile(r"^((?:[A-Za-z][\w-]*\.)?\d+)(?:\.[A-Za-z][\w.-]*)?$", re.MULTILINE | re.ASCII)
MOAB_SILENT = re.compile(
    r"connect|communication error|timed out|server.*(down|not responding)|end of file",
    re.IGNORECASE,
)
USER = re.compile(r"[\w.-]+")
MOAB_STATES = by_word(
    pending="Idle Migrated Staged Staging Blocked",
    held="Deferred Hold UserHold SystemHold BatchHold",
    running="Starting Running",
    suspended="Suspended",
    ending="Canceling",
    cancelled="Removed",
    preempted="Vacated",
)
MOAB_HELD = {
    "Deferred": "Moab could not start it and tries again later; `checkjob` shows why.",
    "UserHold": "Held by you: release it with `mjobctl -u`, or stop the cluster.",
    "SystemHold": "Held by an administrator: ask the site's support.",
    "BatchHold": "Moab has given up starting it: `checkjob` shows why; stop the cluster.",
}


class Moab(Torque):
    """Dialect of msub, showq and canceljob; what jobs ask for is written as for Torque."""

    name = "moab"
    title = "Moab"
    # What Moab's commands tell of a job that is not ours has not been seen.
    lacks = (Torque.lacks - {"history", "find"}) | {"look_up", "denies", "allocation"}
    look_up, denies, allocation = Backend.look_up, Backend.denies, Backend.allocation
    job_class = "moab.MoabJob"
    most_tasks = 1  # Torque and Moab disagree about the ids of an array's tasks
    task = "0"
    remarks = None
    steering = (*Torque.steering, "MSUBQUERYINTERVAL")
    selecting = (*Torque.selecting, "MOABHOMEDIR")
    interactive = (("msub", "-I"), ())

    def submit(self, submission: Submission) -> list[str]:
        return ["msub", submission.script]

    def parse_submit(self, submission: Submission, result: CommandResult) -> tuple[str, ...]:
        found = set(MOAB_ID.findall(result.stdout))
        if result.exit_code == 0 and len(found) == 1:
            return (found.pop(),)
        unclear = found or MOAB_SILENT.search(result.stderr)
        raise unsubmitted(self, submission, result, REASONS.phrases, unclear)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        if not USER.fullmatch(user):
            raise InvalidInput(f"Moab cannot list the jobs of a user called {user!r}.")
        return ["showq", "--xml", "-w", f"user={user}"]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        root = xml_of(result.stdout, self.title)
        if result.exit_code != 0 or root.tag != "Data":
            raise BackendUnavailable("Moab did not answer showq.", detail=result.stderr)
        found = (self.queued(dict(job.attrib)) for job in root.iter("job"))
        return {status.id: status for status in found}

    def queued(self, job: dict[str, str]) -> JobStatus:
        """Read one job of showq, or of showq -c, whose jobs have a completion code."""
        word, code = job.get("State", ""), job.get("CompletionCode")
        state = MOAB_STATES.get(word, JobState.UNKNOWN)
        number = int(code) if code and re.fullmatch(r"-?\d{1,9}", code) else None
        if code is not None:
            if number is None or state is JobState.CANCELLED:  # CNCLD, or removed
                state = JobState.CANCELLED
            elif state is not JobState.PREEMPTED:
                state = JobState.FAILED if number else JobState.DONE
        waits = state in (JobState.PENDING, JobState.HELD)
        return JobStatus(
            id=job.get("JobID", UNREAD.id),
            state=state,
            mark=job.get("JobName", ""),
            reason=word if waits else "",
            nodes=(job["MasterHost"],) if job.get("MasterHost") and not waits else (),
            exit_code=exit_code_of(number),
            started=None if waits else epoch_seconds(job.get("StartTime")),
            # Of the reservation that Moab has made for it; few of those that wait have one.
            expected_start=epoch_seconds(job.get("RsvStartTime")) if waits else None,
        )

    def history(self, ids: Sequence[str]) -> list[str] | None:
        return ["showq", "-c", "--xml"]

    def find(self, marks: Sequence[str]) -> list[str] | None:
        return self.history(())

    def sentences(self, status: JobStatus) -> dict[JobState, str]:
        pending = f"Waits in the queue; `checkjob {status.id}` shows the reason."
        held = MOAB_HELD.get(status.reason, "Held: `checkjob` shows why.")
        return {**super().sentences(status), JobState.PENDING: pending, JobState.HELD: held}

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["canceljob", *ids]
