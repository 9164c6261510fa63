"""What all front ends share: start, list, find, scale and stop clusters."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .core.cluster import ENDED, EXISTING, Phase, Target
from .core.errors import (
    ClusterConflict,
    ClusterNotFound,
    GpuClusterError,
    HeadUnreachable,
    RecordError,
    StateError,
    WaitTimeout,
)
from .core.job import FINAL, Job
from .core.serialize import from_json, to_json
from .core.summary import Event, Summary
from .host.cluster_directory import DAMAGE, KEPT_SCRIPTS, ClusterDirectory, check_writable, tail
from .host.dask_settings import own_settings
from .host.processes import is_alive
from .launch.naming import check_name, check_target
from .state.control_client import Endpoint, ask
from .state.heads import endpoint_at
from .state.logs import find_logs, logs_of
from .state.orphans import find_orphans
from .state.paths import default_root
from .state.reader import Memory, damaged, directories, find, find_all, head_of, lives, look_at, see
from .state.snippets import client_code
from .state.view import ClusterView, JobScript, Look, Script, view_of

LONG = 120
"""Characters of a reason that `why` does not repeat for each job."""
POLL_SECONDS = 0.03
QUEUE_SECONDS = 0.5
LOOK_SECONDS = 10.0
ANSWER_SECONDS = 2.0
"""How long a look at one cluster waits for its head."""
UNSAVED_SECONDS = 10.0
"""A wait for workers ends when the cluster's state could not be saved for so long."""
Progress = Callable[[ClusterView], None]


class Clusters:
    """The clusters of one user.

    Every method looks at the disk and at the heads anew, so any number of processes may use it.

    Parameters
    ----------
    root
        The directory of cluster directories; by default under Jupyter's data directory.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_root()
        self.memory = Memory()

    # Looking.

    def list(self, *, ended: bool = False) -> list[ClusterView]:
        """Return the live clusters and those that failed within a day, oldest first.

        With ``ended`` also all others that are over.
        """
        return [*self.survey(ended=ended)[0]]

    def survey(
        self, *, ended: bool = False
    ) -> tuple[Sequence[ClusterView], Sequence[GpuClusterError]]:
        """Return what `list` does, and why others cannot be read, in one look at the disk."""
        troubles: list[GpuClusterError] = []
        found = self.memory.survey(self.root, ended=ended, troubles=troubles)
        return sorted(found, key=lambda view: view.created), troubles

    def live(self) -> Sequence[ClusterView]:
        """Return the clusters that have not ended."""
        return [view for view in self.list() if view.phase not in ENDED]

    def damaged(self, *, ended: bool = True) -> Sequence[GpuClusterError]:
        """Return what cannot be read, each with its way out; `ended` as in `list`."""
        return damaged(self.root, ended=ended)

    def check_directory(self) -> None:
        """Raise `StateError` where no cluster could be put on disk."""
        check_writable(self.root)

    def orphans(self) -> Sequence[str]:
        """Return what runs in the name of clusters that are over or unknown, a line for each."""
        from .batch.cancel import left_jobs

        every = list(directories(self.root))
        looks = [look for d in every if (look := see(d, ended=True))]
        live = {look.record.id for look in looks if look.record.phase not in ENDED}
        # Of these the record may be damaged.
        read = {look.record.id for look in looks}
        live |= {d.id for d in every if d.id not in read and d.head_may_live()}
        over = [look.record for look in looks if look.record.phase in ENDED]
        return [*find_orphans(self.root, live), *left_jobs(over, self.root)]

    def left_jobs(self, name: str) -> Sequence[str]:
        """Return a line for each batch job that a cluster which has ended may still have."""
        from .batch.cancel import left_jobs

        record = find(self.root, name).record
        return left_jobs([record], self.root) if record.phase in ENDED else ()

    def get(self, name: str) -> ClusterView:
        """Return a cluster by name or id; of several with one name the live one, else the newest.

        Raises
        ------
        ClusterNotFound
            There is none.
        """
        return view_of(self._find(name, jobs=False))

    def jobs(self, name: str) -> Sequence[Job]:
        """Return the jobs of a cluster, also those that have ended."""
        return self._find(name).record.jobs

    def events(self, name: str) -> Sequence[Event]:
        """Return the timeline of a cluster."""
        return tuple(find(self.root, name).directory.events())

    def logs(self, name: str, job: str = "", *, lines: int = 500) -> str:
        """Return the last lines of every log, or of one job's, each under its name.

        Raises
        ------
        ClusterNotFound
            The cluster has no such job.
        """
        look = find(self.root, name)
        paths = find_logs(look)
        if job:
            known = ", ".join(path.stem for path in paths)
            paths = logs_of(job, paths, look.record.jobs)
            if not paths:
                raise ClusterNotFound(
                    f"Cluster {name} has no log of job {job!r}.", hint=f"There are: {known}."
                )
        return "\n".join(f"==> {path.name} <==\n{tail(path, lines)}" for path in paths)

    def scripts(self, name: str) -> Sequence[JobScript]:
        """Return the job scripts that a cluster submitted, as they ran, the newest first.

        There are at most 100.  A cluster that an older version has ended has none any more.
        """
        directory = find(self.root, name, jobs=False).directory
        marks = reversed(directory.marks()[-KEPT_SCRIPTS:])
        return tuple(found for mark in marks if (found := _script(directory, mark)))

    def why(self, name: str) -> str:
        """Say in a few lines what the cluster waits for, or why it ended."""
        look = self._find(name)
        view = view_of(look)
        words = f": {view.words}" if view.words != view.phase.value else ""
        told = [f"{view.name} is {view.phase.value}{words}."]
        if view.reason:
            told.append(view.reason)
        for job in look.record.jobs:
            text = job.cause or job.reason
            telling = text not in ("", job.state.value)
            if telling and (job.state not in FINAL or view.phase in ENDED or job.leaving is None):
                # A refusal is long, and is the cause of all jobs of its submission.
                rest = (
                    "see above."
                    if len(text) > LONG and any(text in line for line in told)
                    else text
                )
                told.append(f"{job.mark}_{job.task} ({job.state.value}): {rest}")
        if view.phase not in ENDED:
            late = {job.key for job in look.record.jobs if not job.connected}
            late -= {job for job in late if view.reason.startswith(f"{job} ")}
            leaving = {job.key for job in look.record.jobs if job.leaving and job.ended is None}
            news = {
                # Of a slow start only the last word is true.
                (event.job if event.kind == "slow" else event.message): event.message
                for event in look.directory.events()
                if event.kind in ("gpu", "cores")
                or (event.kind == "slow" and event.job in late)
                or (event.kind == "cancel" and event.job in leaving)
            }
            told += [*news.values()][-5:]
        told += [
            f"It ends by itself: {clock.name}."
            for clock in view.clocks
            if clock.ends and not clock.job
        ]
        if view.phase is Phase.FAILED and not any(job.connected for job in look.record.jobs):
            told.append("" if "Dask settings" in view.reason else own_settings())
        return "\n".join(dict.fromkeys(part for part in told if part))

    def capacity(self, profile: str) -> dict[str, Any]:
        """Return what is free now where the profile's jobs would run; takes up to ten seconds.

        Returns
        -------
        dict
            ``partitions``, each with ``name``, ``free``, ``total`` and ``unit``, and ``words``.

        Raises
        ------
        ProfileNotFound, ProfileError
            There is no such profile, or it cannot be read.
        BackendUnavailable
            The queueing system did not answer.
        BackendError
            Its command cannot be run here.
        """
        # Needs pydantic, which most calls do without.
        from .launch.capacity import capacity_of

        local = [view for view in self.live() if view.backend == "local" and view.unit == "GPUs"]
        held = sum(view.workers.ready + view.workers.starting for view in local)
        return capacity_of(profile, self.root, held)

    def client_code(self, name: str) -> dict[str, str]:
        """Return code that connects to a cluster, without any secret in it.

        Returns
        -------
        dict
            ``connect`` (needs this package), ``magic`` (likewise) and ``dask`` (Dask alone).
        """
        return client_code(find(self.root, name))

    def endpoint(self, name: str) -> Endpoint:
        """Return where a live head listens.

        Raises
        ------
        ClusterNotFound
            There is no such cluster.
        ClusterConflict
            It is not up yet, or has ended.
        HeadUnreachable
            Its head runs on another host.
        """
        return self._endpoint(find(self.root, name, jobs=False))

    def entry(
        self, name: str, words: Sequence[str], *, job: str = "", worker: str = "", terminal: bool
    ) -> Sequence[str]:
        """Return the command that runs words, or a shell, on the node of a job that runs.

        Parameters
        ----------
        words
            What to run in the environment of the jobs; a shell where there are none.
        job, worker
            Which job, by its name or number or by one of its workers; by default the first.
        terminal
            Whether to ask for a terminal there.

        Raises
        ------
        ClusterConflict, ClusterNotFound, HeadUnreachable
            Nothing of this cluster can be entered from here.
        """
        from .launch.exec import entry_of

        return entry_of(
            find(self.root, name), job=job, worker=worker, words=words, terminal=terminal
        )

    def find_directory(self, name: str) -> ClusterDirectory:
        """Return the files of a cluster."""
        return find(self.root, name).directory

    # Changing.

    def start(
        self,
        profile: str,
        *,
        name: str | None = None,
        target: Target | None = None,
        options: Mapping[str, Any] | None = None,
        python: str = "",
        kernel: str = "",
        request_id: str = "",
        owned: bool = False,
        allocation: str = "",
    ) -> ClusterView:
        """Start a cluster and return at once; `wait_ready` waits for its workers.

        Parameters
        ----------
        profile
            Name of the profile.
        name
            Name of the cluster; by default the profile's and a number.
        target
            How many workers; by default what the profile and the machine suggest.
        options
            Values for the profile's options.
        python, kernel
            The environment: the path of a Python, or the name of a kernel; by default the
            profile's, else the Python that runs this.
        request_id
            Of two starts with the same one the second returns the first's cluster.
        owned
            Whether the cluster ends with this process, also where that is killed.
        allocation
            Number of a batch job of this user's that runs: the workers are put onto its nodes.

        Raises
        ------
        InvalidInput
            Something in the request cannot be used; ``detail`` names the field.
        ClusterConflict
            A live cluster has the name.
        StateError
            The state directory cannot be used; nothing is left behind.
        """
        # Needs pydantic and cryptography, which `list` and the others do without.
        from .launch.starting import Request, start

        given = dict(options or {})
        request = Request(
            profile, name, target, given, python, kernel, request_id, owned, allocation
        )
        return view_of(start(self.root, self.memory, request))

    def script(
        self,
        profile: str,
        *,
        target: Target | None = None,
        options: Mapping[str, Any] | None = None,
        python: str = "",
        kernel: str = "",
        allocation: str = "",
    ) -> Script:
        """Return the script and the submit command that `start` would use; submits nothing."""
        from .launch.starting import Request, preview

        given = dict(options or {})
        request = Request(profile, None, target, given, python, kernel, "", allocation=allocation)
        return preview(self.root, request)

    def update(
        self, name: str, *, new_name: str | None = None, target: Target | None = None
    ) -> ClusterView:
        """Rename or scale a cluster.

        Raises
        ------
        ClusterConflict
            It is stopping or has ended, or the new name is taken.
        LimitReached
            The profile allows fewer workers.
        """
        look = find(self.root, name)
        if look.record.spec.backend == EXISTING and look.record.phase not in ENDED:
            from .state.external import not_ours

            raise not_ours(look.record)
        if new_name is not None and new_name != look.record.name:
            check_name(new_name, self.live())
        if target is not None:
            check_target(target, least=0)
        if look.record.phase in ENDED:
            raise ClusterConflict(
                f"Cluster {look.record.name} is {look.record.phase.value}.",
                hint="Start another one.",
            )
        body: dict[str, Any] = {}
        if new_name is not None:
            body["name"] = new_name
        if target is not None:
            body["target"] = to_json(target)
        self._ask_started(look.directory, "PATCH", "/gpucluster/cluster", body)
        return self.get(look.record.id)

    def stop(self, name: str, *, force: bool = False) -> ClusterView:
        """Ask a cluster to stop; it is over when its phase says so (`wait_stopped`).

        Parameters
        ----------
        force
            Kill the head instead, which need not answer, and end its jobs from here.

        Raises
        ------
        HeadUnreachable
            The head lives on another host, or does not answer.
        """
        try:
            look = find(self.root, name)
        except (RecordError, ClusterNotFound) as error:
            from .state.unread import stop_unread

            return stop_unread(self.root, name, error, force=force)
        if look.record.phase in ENDED:
            return view_of(look)
        if look.record.spec.backend == EXISTING:
            from .state.external import detach

            detach(look.directory, look.record)
            return self.get(look.record.id)
        if force:
            from .state.reaper import end_head

            end_head(look.directory, look.record)
            return self.get(look.record.id)
        if look.record.spec.in_job and head_of(look.directory, look.record) is None:
            from .state.reaper import end_waiting

            end_waiting(look.directory, look.record)
            return self.get(look.record.id)
        from .state.reaper import ASKED_TO_STOP

        asked = look.directory.path / ASKED_TO_STOP
        with contextlib.suppress(OSError):
            asked.touch(mode=0o600)
        try:
            self._ask_started(look.directory, "POST", "/gpucluster/stop", {"reason": ""})
        except BaseException as error:
            asked.unlink(missing_ok=True)  # the head lives on, and may not have heard of it
            if isinstance(error, (HeadUnreachable, ClusterConflict)):
                error.hint = by_force(look) or error.hint
            raise
        return self.get(look.record.id)

    def forget(self, name: str) -> None:
        """Delete what is left on disk of a cluster that has ended.

        Raises
        ------
        ClusterConflict
            It has not ended, or the name is that of several.
        """
        look, *others = find_all(self.root, name)
        if others:
            raise _ambiguous(name, [look, *others])
        deadline = time.monotonic() + LOOK_SECONDS
        # A head that has told its last word is still closing for a moment.
        while look.record.phase in ENDED and lives(look.record) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if look.record.phase not in ENDED or lives(look.record):
            raise ClusterConflict(
                f"Cluster {look.record.name} has not ended.", hint="Stop it first."
            )
        look.directory.remove()

    # Waiting.

    def wait_ready(
        self, name: str, *, timeout: float | None = None, progress: Progress | None = None
    ) -> ClusterView:
        """Wait until all workers that are asked for are there.

        Raises
        ------
        WaitTimeout
            They are not within ``timeout`` seconds; the cluster goes on.
        GpuClusterError
            The cluster ended meanwhile; the message says why.
        """
        unsaved: list[float] = []

        def ready(view: ClusterView) -> bool:
            if view.phase in ENDED or view.phase is Phase.STOPPING:
                raise GpuClusterError(
                    f"Cluster {view.name} {view.phase.value}: {view.reason or 'it was stopped'}",
                    hint=f"See: jupyter gpucluster why {view.name}, and logs {view.name}.",
                )
            if is_ready(view):
                return True
            if view.unsaved_since is None:
                unsaved.clear()
                return False
            # Until there is room no job is submitted, which may take for ever.
            unsaved.append(time.monotonic())
            if unsaved[-1] - unsaved[0] > UNSAVED_SECONDS:
                raise StateError(
                    f"Cluster {view.name} is not ready: {view.words}.",
                    hint=view.reason,
                )
            return False

        return self._wait(name, ready, timeout, progress, "ready")

    def wait_stopped(
        self, name: str, *, timeout: float | None = None, progress: Progress | None = None
    ) -> ClusterView:
        """Wait until a cluster has ended and its head is gone.

        Raises
        ------
        WaitTimeout
            It has not within ``timeout`` seconds.
        """

        def gone(view: ClusterView) -> bool:
            return view.phase in ENDED and not lives(find(self.root, view.id).record)

        relay = find(self.root, name).directory.read_relay()
        view = self._wait(name, gone, timeout, progress, "stopped")
        deadline = time.monotonic() + LOOK_SECONDS
        while relay is not None and is_alive(relay) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)  # it ends when it sees that the cluster has
        record = find(self.root, view.id).record
        if record.spec.in_job:
            from .state.head_job import wait_gone

            wait_gone(record, LOOK_SECONDS)
        return view

    def _wait(
        self,
        name: str,
        reached: Callable[[ClusterView], bool],
        timeout: float | None,
        progress: Progress | None,
        word: str,
    ) -> ClusterView:
        deadline = None if timeout is None else time.monotonic() + timeout
        view = self.get(name)
        while not reached(view):
            if progress is not None:
                progress(view)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise WaitTimeout(
                    f"Cluster {view.name} is not {word} after {timeout:g} s: {view.words}.",
                    hint=(by_force(find(self.root, view.id)) if word == "stopped" else "")
                    or f"It goes on by itself; see why with: jupyter gpucluster why {view.name}",
                )
            self._await_news(view, LOOK_SECONDS if left is None else min(left, LOOK_SECONDS))
            view = self.get(view.id)
        if progress is not None:
            progress(view)
        return view

    def _await_news(self, view: ClusterView, seconds: float) -> None:
        """Return when the head has news, at the latest after some seconds."""
        if view.phase not in ENDED | {Phase.UNREACHABLE} and view.backend != EXISTING:
            with contextlib.suppress(GpuClusterError):
                endpoint = self.endpoint(view.id)
                path = f"/gpucluster/summary?after={view.revision}&timeout={seconds:.2f}"
                ask(endpoint, "GET", path, seconds=seconds + LOOK_SECONDS)
                return
        # A head that waits in a queue has no news within milliseconds.
        slow = view.phase in (Phase.PENDING, Phase.UNREACHABLE) or view.backend == EXISTING
        time.sleep(QUEUE_SECONDS if slow else POLL_SECONDS)

    # Inside.

    def _find(self, name: str, *, jobs: bool = True) -> Look:
        """Find a cluster, with what its head answers: the disk may be full, and is for dead heads.

        A head that does not answer in time is shown as the disk has it.
        """
        look = find(self.root, name, jobs=jobs)
        record = look.record
        asked = record.phase not in ENDED and record.spec.backend != EXISTING
        if not asked or not record.http_address:
            return look
        try:
            answer = ask(self._endpoint(look), "GET", "/gpucluster/summary", seconds=ANSWER_SECONDS)
            return as_answered(look, answer)
        except (GpuClusterError, *DAMAGE):
            # It may have ended while it was asked.
            return find(self.root, record.id, jobs=jobs)

    def _endpoint(self, look: Look) -> Endpoint:
        record = look.record
        if record.phase in ENDED:
            raise ClusterConflict(f"Cluster {record.name} is {record.phase.value}.")
        if record.spec.backend == EXISTING:
            from .state.external import dashboard_of

            return dashboard_of(look.directory, record)
        if not record.http_address:
            waits = record.spec.in_job and head_of(look.directory, record) is None
            raise ClusterConflict(
                f"Cluster {record.name} "
                + ("waits in the queue for its head's job." if waits else "is still starting."),
                hint="Scaling and renaming work from then on." if waits else "Try again soon.",
            )
        # A head that is to be asked from other hosts speaks HTTPS; any other listens on loopback.
        https = record.http_address.startswith("https://")
        if not https and record.head is not None and is_alive(record.head) is None:
            raise HeadUnreachable(
                f"The head of {record.name} runs on {record.head.host}.",
                hint=f"Use it from there: ssh {record.head.host}",
            )
        try:
            return endpoint_at(look.directory, record.http_address)
        except OSError as error:
            raise ClusterConflict(f"Cluster {record.name} is ending.") from error

    def _ask_started(
        self, directory: ClusterDirectory, method: str, path: str, body: object
    ) -> None:
        """Ask a head, and wait for one that is only just starting; one that has ended is done."""
        deadline = time.monotonic() + LOOK_SECONDS
        while True:
            look = look_at(directory)
            if look.record.phase in ENDED:
                return
            if look.record.http_address or time.monotonic() > deadline:
                break
            if look.record.phase is Phase.PENDING and look.record.spec.in_job:
                break  # that may take hours
            time.sleep(POLL_SECONDS)
        try:
            ask(self._endpoint(look), method, path, body)
        except (HeadUnreachable, ClusterConflict):
            # It may have ended while it was asked.
            if look_at(directory).record.phase not in ENDED:
                raise


def as_answered(look: Look, answer: Mapping[str, Any]) -> Look:
    """Return a look with what the head answered, unless the disk is newer."""
    summary = from_json(Summary, answer["summary"])
    if summary.revision < look.record.revision:
        return look
    ended = summary.phase in ENDED
    record = replace(
        look.record,
        name=summary.name,
        target=summary.target,
        phase=summary.phase,
        phase_since=summary.phase_since,
        ended=summary.phase_since if ended else None,
        reason=summary.reason if ended else look.record.reason,
        jobs=tuple(from_json(Job, job) for job in answer["jobs"]),
        revision=summary.revision,
    )
    return Look(look.directory, record, summary)


def is_ready(view: ClusterView) -> bool:
    """Tell whether all workers that are asked for are there."""
    counted = view.revision > 0 and view.workers.asked >= view.target.minimum
    there = view.phase is not Phase.UNREACHABLE
    return counted and there and view.workers.ready >= view.workers.asked


def _ambiguous(name: str, looks: Sequence[Look]) -> ClusterConflict:
    """Return the error of a name that is not enough to delete by."""
    ended = " ".join(look.record.id for look in looks if look.record.phase in ENDED)
    return ClusterConflict(
        f"{len(looks)} clusters have the name {name}.",
        hint=f"Give ids instead; for all that have ended: jupyter gpucluster forget {ended}",
    )


def by_force(look: Look) -> str:
    """Return how to end a cluster whose head does not; empty where it has none on this host."""
    head = look.record.head or look.directory.read_process()
    if head is None or not is_alive(head):
        return ""
    return (
        f"If its head (process {head.pid}) hangs, kill it and end the cluster: "
        f"jupyter gpucluster stop --force {look.record.name}"
    )


def _script(directory: ClusterDirectory, mark: str) -> JobScript | None:
    """Read the script of a submission and its command; None where it is gone by now."""
    path, command = directory.script(mark), ""
    try:
        text, written = path.read_text("utf-8", "replace"), path.stat().st_mtime
    except OSError:
        return None
    with contextlib.suppress(OSError):
        command = directory.command(mark).read_text("utf-8", "replace")
    return JobScript(mark, text, command, written)
