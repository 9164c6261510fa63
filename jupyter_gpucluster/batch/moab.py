"""Moab, which schedules Torque: http://docs.adaptivecomputing.com/9-1-3/MWM/moab.htm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from ..core.errors import BackendUnavailable, InvalidInput
from ..core.job import CommandResult, JobState, JobStatus, Submission
from .base import Backend
from .pbs import exit_code_of
from .reasons import pbs as reasons
from .refusal import Phrases, refusal
from .torque import Torque

PHRASES = Phrases(reasons.REFUSALS, own=reasons.OWN, general=reasons.GENERAL, noise=reasons.NOISE)
ID = re.compile(r"^((?:[A-Za-z][\w-]*\.)?\d+)(?:\.[A-Za-z][\w.-]*)?$", re.MULTILINE | re.ASCII)
SILENT = re.compile(
    r"connect|communication error|timed out|server.*(down|not responding)|end of file",
    re.IGNORECASE,
)
USER = re.compile(r"[\w.-]+")
STATES = {
    "Idle": JobState.PENDING,
    "Migrated": JobState.PENDING,
    "Staged": JobState.PENDING,
    "Staging": JobState.PENDING,
    "Blocked": JobState.PENDING,
    "Deferred": JobState.HELD,
    "Hold": JobState.HELD,
    "UserHold": JobState.HELD,
    "SystemHold": JobState.HELD,
    "BatchHold": JobState.HELD,
    "Starting": JobState.RUNNING,
    "Running": JobState.RUNNING,
    "Suspended": JobState.SUSPENDED,
    "Canceling": JobState.ENDING,
    "Removed": JobState.CANCELLED,
    "Vacated": JobState.PREEMPTED,
}
HELD = {
    "Deferred": "Moab could not start it and tries again later; `checkjob` tells why.",
    "UserHold": "Held by you: release it with `mjobctl -u`, or stop the cluster.",
    "SystemHold": "Held by an administrator: ask the site's support.",
    "BatchHold": "Moab has given up starting it: `checkjob` tells why; stop the cluster.",
}


class Moab(Torque):
    """Dialect of msub, showq and canceljob; what jobs ask for is written as for Torque."""

    name = "moab"
    title = "Moab"
    # What Moab's commands tell of a job that is not ours has not been seen.
    lacks = frozenset({"stdin", "routing", "enter", "look_up", "denies", "allocation"})
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
        found = set(ID.findall(result.stdout))
        if result.exit_code == 0 and len(found) == 1:
            return (found.pop(),)
        if result.exit_code and not found and not SILENT.search(result.stderr):
            raise refusal(self.title, result, PHRASES, submission.count)
        raise BackendUnavailable("Moab did not answer msub.", detail=result.stderr)

    def status(self, user: str, ids: Sequence[str]) -> list[str]:
        if not USER.fullmatch(user):
            raise InvalidInput(f"Moab cannot list the jobs of a user called {user!r}.")
        return ["showq", "--xml", "-w", f"user={user}"]

    def parse_status(self, result: CommandResult) -> dict[str, JobStatus]:
        text = result.stdout
        try:
            root = ElementTree.fromstring(text[max(0, text.find("<")) :])  # noqa: S314  # expat bounds entities
        except ElementTree.ParseError as error:
            raise BackendUnavailable("Moab did not answer showq.", detail=str(error)) from error
        if result.exit_code != 0 or root.tag != "Data":
            raise BackendUnavailable("Moab did not answer showq.", detail=result.stderr)
        found = (self.queued(dict(job.attrib)) for job in root.iter("job") if job.get("JobID"))
        return {status.id: status for status in found}

    def queued(self, job: dict[str, str]) -> JobStatus:
        """Read one job of showq, or of showq -c, whose jobs have a completion code."""
        word, code = job.get("State", ""), job.get("CompletionCode")
        state = STATES.get(word, JobState.UNKNOWN)
        number = int(code) if code and re.fullmatch(r"-?\d{1,9}", code) else None
        if code is not None:
            if number is None or state is JobState.CANCELLED:  # CNCLD, or removed
                state = JobState.CANCELLED
            elif state is not JobState.PREEMPTED:
                state = JobState.FAILED if number else JobState.DONE
        waits = state in (JobState.PENDING, JobState.HELD)
        return JobStatus(
            id=job["JobID"],
            state=state,
            mark=job.get("JobName", ""),
            reason=word if waits else "",
            nodes=(job["MasterHost"],) if job.get("MasterHost") and not waits else (),
            exit_code=exit_code_of(number),
            started=None if waits else _time(job.get("StartTime", "")),
            # Of the reservation that Moab has made for it; few of those that wait have one.
            expected_start=_time(job.get("RsvStartTime", "")) or None if waits else None,
        )

    def history(self, ids: Sequence[str]) -> list[str] | None:
        return ["showq", "-c", "--xml"]

    def find(self, marks: Sequence[str]) -> list[str] | None:
        return self.history(())

    def explain(self, status: JobStatus) -> str:
        if status.state is JobState.HELD:
            return HELD.get(status.reason, "Held: `checkjob` tells why.")
        if status.state is JobState.PENDING:
            return f"Waits in the queue; `checkjob {status.id}` tells for what."
        if status.state is JobState.CANCELLED:
            return "It was cancelled, or ended by Moab at its walltime."
        if status.state is JobState.PREEMPTED:
            return "A job of higher priority took its place."
        return super().explain(status)

    def cancel(self, ids: Sequence[str]) -> list[str]:
        return ["canceljob", *ids]


def _time(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}", text, re.ASCII) else None
