"""End what a cluster without a head has left, and put its end on record; end heads that hang."""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import replace
from pathlib import Path

from ..batch import on_this_machine
from ..batch.cancel import cancel_jobs
from ..core.cluster import Phase, Record
from ..core.errors import BackendUnavailable, HeadUnreachable, StateError
from ..core.job import Job, JobState
from ..core.lease import LAPSED_SECONDS
from ..core.summary import Event
from ..host.cluster_directory import FORCED, ClusterDirectory, tail
from ..host.log_diagnosis import first_error
from ..host.processes import end_leftovers, is_alive, kill_group

BY_FORCE = "Stopped by force."
ASKED_TO_STOP = "asked-to-stop"
"""The same of a stop that the head may not have put on record before it died."""
WHILE_STOPPING = "Its scheduler process ended while the cluster stopped."
KILL_SECONDS = 5.0
"""A killed process is gone at once, unless it waits for a disk that does not answer."""


def end_head(directory: ClusterDirectory, record: Record, remark: str = "") -> Record:
    """Kill a head with its process group, however it hangs, and record its death.

    Parameters
    ----------
    remark
        What else there is to say about this end.

    Raises
    ------
    HeadUnreachable
        It runs on another host, or the kernel does not let go of it.
    """
    kill_head(directory, record)
    return record_death(directory, record, BY_FORCE, Phase.STOPPED, remark)


def kill_head(directory: ClusterDirectory, record: Record) -> None:
    """Kill a head with its process group; raises as `end_head` does."""
    with contextlib.suppress(OSError):
        (directory.path / FORCED).touch(mode=0o600)
    head = record.head or directory.read_process()
    # A head in a job goes with the job, which `record_death` cancels.
    if head is not None and not record.spec.in_job:
        if has_lapsed(directory, record):
            return
        if is_alive(head) is None:
            (directory.path / FORCED).unlink(missing_ok=True)
            raise HeadUnreachable(
                f"The scheduler process of {record.name} runs on {head.host}.",
                hint=f"End it there: ssh {head.host} jupyter gpucluster stop --force {record.id}",
            )
        kill_group(head.pid, head.start_time)
        deadline = time.monotonic() + KILL_SECONDS
        while is_alive(head):
            if time.monotonic() > deadline:
                (directory.path / FORCED).unlink(missing_ok=True)
                raise HeadUnreachable(
                    f"The scheduler of {record.name} (PID {head.pid}) did not exit after SIGKILL.",
                    hint="It probably waits for a file system that does not answer.",
                )
            time.sleep(0.02)


def has_lapsed(directory: ClusterDirectory, record: Record) -> bool:
    """Return whether a head on another host has not renewed its lease; its jobs can be ended here.

    If it lives after all, it finds the file `FORCED` and ends.
    """
    head = record.head or directory.read_process()
    if head is None or is_alive(head) is not None or on_this_machine(record.spec.backend):
        return False
    age = directory.lease_age()
    return age is not None and age >= LAPSED_SECONDS


def end_waiting(directory: ClusterDirectory, record: Record) -> Record:
    """Cancel the job of a head that has not come, and end the cluster.

    Raises
    ------
    BackendUnavailable
        The batch system does not say that the job is gone.
    """
    record, told = cancel_jobs(record, directory)
    if any(job.ended is None for job in record.jobs):
        raise BackendUnavailable(
            f"Cluster {record.name} still waits for its scheduler's job. {told}",
            hint="Stop it again when the batch system answers.",
        )
    reason = "Stopped before its scheduler's job had begun."
    return record_death(directory, record, reason, Phase.STOPPED)


def record_death(
    directory: ClusterDirectory,
    record: Record,
    reason: str = "",
    outcome: Phase = Phase.FAILED,
    remark: str = "",
) -> Record:
    """Put on record that a head is dead, end what it left, and remove what it cannot remove.

    Parameters
    ----------
    reason
        Why it is dead; where it is not given, what can be seen of that.
    remark
        What else there is to say about this end.
    """
    if (directory.path / FORCED).exists():
        reason, outcome = BY_FORCE, Phase.STOPPED
    elif stopped := directory.noted_stop():
        reason, outcome = stopped, Phase.STOPPED
    elif stopping(directory, record):
        # What was asked for has come about, though not in order; a cluster that failed says so.
        outcome = record.outcome
        reason = " ".join(part for part in (record.reason, reason or WHILE_STOPPING) if part)
    for job in record.jobs:
        if len(job.process) == 2 and not job.is_over:
            kill_group(*job.process)
    now = time.time()
    if on_this_machine(record.spec.backend):
        end_leftovers(directory.path)
        record = replace(record, jobs=tuple(over(job, now) for job in record.jobs))
    record, jobs = cancel_jobs(record, directory)
    told = (reason or cause(directory, record), remark, jobs)
    buried = replace(
        record,
        phase=outcome,
        phase_since=now,
        ended=now,
        reason=" ".join(part for part in told if part),
        revision=record.revision + 1,
    )
    # Nothing that does not bear the cluster's name, whatever became of the record.
    if Path(record.spec.scratch).name.startswith(f"gpc-{directory.id}-"):
        shutil.rmtree(record.spec.scratch, ignore_errors=True)
    # The note in the lease is needed until the record is written.
    directory.remove_private(buried, keep_lease=True)
    # On a full disk it is told, and the next look tries to write it again.
    with contextlib.suppress(StateError):
        directory.write_end(buried, Event(now, "phase", f"{outcome.value}: {buried.reason}"))
        directory.remove_private(buried)
    return buried


def stopping(directory: ClusterDirectory, record: Record) -> bool:
    """Return whether a stop was under way when the head died."""
    return record.stop_requested is not None or (directory.path / ASKED_TO_STOP).exists()


def over(job: Job, now: float) -> Job:
    """Return a job that has ended, now if not before."""
    if job.is_over:
        return job
    return replace(job, state=JobState.CANCELLED, ended=now, cause="Ended with its scheduler.")


def cause(directory: ClusterDirectory, record: Record) -> str:
    """Return the visible cause of a head's death."""
    if record.head is not None:
        seen = "Its scheduler is gone: it was killed, or the machine was restarted."
    elif directory.process_file.exists():
        seen = "Its scheduler ended before it was up."
    else:
        seen = "Its scheduler never started: the process that started the cluster was ended."
    return f"{seen} {first_error(tail(directory.logs / 'head.log', 50).splitlines())}".strip()
