"""Jobs that a cluster did not submit: the one its head runs in, the one whose nodes it uses.

The workers of the head's own job are ended; the job ends with the head.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..batch import find_backend
from ..batch.queue import ProcessRunner, user_name
from ..batch.status_cache import StatusCache
from ..core.cluster import HeldJob, Record, heads_job
from ..core.errors import BackendError
from ..core.job import FINAL, Allocation, Job, JobState, JobStatus
from ..core.serialize import copied
from ..host.cluster_directory import ClusterDirectory
from ..host.processes import signal_group, start_time
from .reconcile.model import Reported

PATIENCE = 15.0
"""Seconds from the polite end of the job's workers to the other one."""


class OwnJob:
    """The workers of the head's own job, which its script starts beside the head.

    Parameters
    ----------
    group
        The process group of the workers, or of what launches them; 0 = the head runs in no job.
    """

    def __init__(self, directory: ClusterDirectory, group: int) -> None:
        self.directory = directory
        self.group = group
        self.began = start_time(group) if group else None
        self.started = time.time()
        self.asked: float | None = None

    def enter(self, record: Record) -> Record:
        """Put on record that the head's job runs, and under which id its starter submitted it."""
        job = heads_job(record)
        if job is None:
            return record
        known = self.directory.read_headjob() or job
        own = replace(
            job,
            # A starter whose answer was lost does not know the id; nothing here depends on it.
            id=known.id or job.mark,
            state=JobState.RUNNING,
            started=known.started or self.started,
            ends=known.ends,
            # The head may be up before anybody has asked where its job runs.
            nodes=known.nodes or ((socket.gethostname(),) if record.spec.job.nodes == 1 else ()),
        )
        return replace(record, jobs=tuple(own if j is job else j for j in record.jobs))

    def others(self, record: Record) -> Record:
        """Return the record without the head's job: about that the head knows best."""
        own = heads_job(record)
        return replace(record, jobs=tuple(job for job in record.jobs if job is not own))

    def add_to(self, reported: Reported, record: Record) -> Reported:
        """Add the head's job to a listing, or make one where the cluster has no other job.

        The system lists it until the head goes; for us it is over when its workers are.
        """
        own = heads_job(record)
        unasked = all(job.is_over for job in self.others(record).jobs)
        if own is None or (reported.listing is None and (own.ended is not None or not unasked)):
            return reported
        listing = {id: job for id, job in (reported.listing or {}).items() if id != own.id}
        mine = {own.id: self.status(own)} if own.ended is None else {}
        return replace(reported, listing=listing | mine)

    def status(self, job: Job) -> JobStatus:
        """Return the state of the job's workers."""
        if self.runs():
            return copied(JobStatus, job, state=JobState.RUNNING)
        code = self.directory.exit_codes().get(job.key)
        state = JobState.DONE if code == 0 else JobState.FAILED
        if job.retiring_since is not None:
            state = JobState.CANCELLED
        return copied(JobStatus, job, state=state, exit_code=code, ended=time.time())

    def cancel(self, record: Record, ids: Sequence[str]) -> list[str]:
        """End the workers of the head's job if it is among these, and return the other ids."""
        own = heads_job(record)
        if own is not None and own.id in ids:
            self.end_workers()
        return [id for id in ids if own is None or id != own.id]

    def end_workers(self) -> None:
        """End the job's workers, and not the job; asked again in vain, for good."""
        now = time.time()
        self.asked = self.asked or now
        if self.runs():
            signal_group(self.group, 9 if now - self.asked > PATIENCE else 15)

    def runs(self) -> bool:
        """Return whether the workers are there."""
        return self.began is not None and start_time(self.group) == self.began


PERIOD = 120.0
"""Seconds between two looks, since its end may be moved."""
FIRST = 10.0
"""Seconds until the first look: a cluster that starts does not wait for it."""
SECONDS = 15.0
"""An answer that takes longer is not waited for: nothing changes then."""
OVER = FINAL | {JobState.ENDING}


class HeldJobWatch:
    """Asks the batch system about the allocation now and then, and when workers were lost.

    Parameters
    ----------
    held
        The allocation; None if the cluster uses none, or its system cannot be asked about it.
    root
        The directory of cluster directories, where commands are counted.
    """

    def __init__(self, held: HeldJob | None, root: Path) -> None:
        self.held = held
        self.root = root
        self.ends = None if held is None else held.ends
        self.ended: set[str] = set()
        self.asked: float | None = None

    async def look(self, listing: Mapping[str, JobStatus] | None, now: float) -> str:
        """Return the message that the allocation is over, empty if it is not.

        Parameters
        ----------
        listing
            The cluster's own jobs: where one has ended the system is asked at once, before another
            is started in its place.
        """
        if self.held is None:
            return ""
        ended = {id for id, status in (listing or {}).items() if status.state in FINAL}
        lost, self.ended = ended - self.ended, self.ended | ended
        if self.asked is None:
            self.asked = now - (PERIOD - FIRST)
        if not lost and now - self.asked < PERIOD:
            return ""
        shared = StatusCache(self.root, find_backend(self.held.system), user_name(), "")
        if shared.take("reads") > 0:
            return ""
        self.asked = now
        try:
            found = await self.ask(self.held)
        except BackendError:
            return ""
        if found is not None and found.job.state not in OVER:
            self.ends = found.job.ends or self.ends
            return ""
        why = "" if found is None else find_backend(self.held.system).explain(found.job)
        return f"{self.held.name}, whose nodes it used, has ended. {why}".strip()

    async def ask(self, held: HeldJob) -> Allocation | None:
        """Return what the system says of the allocation; None where it knows no such job."""
        query = find_backend(held.system).allocation()
        if query is None:
            raise BackendError(f"{held.name} cannot be asked about.")
        runner = ProcessRunner(os.environ, seconds=SECONDS)
        return query.read(held.id, await runner.run(query.ask(held.id, user_name())))
