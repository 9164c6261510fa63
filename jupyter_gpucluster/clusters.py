"""The façade of all front ends: start, list, find, scale and stop clusters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from .batch import uses_this_machine
from .core.cluster import ENDED, EXISTING, Target
from .core.errors import ClusterConflict, GpuClusterError
from .core.job import Job
from .core.serialize import to_json
from .core.summary import Event
from .host.private_files import check_writable
from .launch.naming import check_gpus, check_name, check_target
from .launch.request import Request
from .state.control import POLL_SECONDS, as_now, ask_started, endpoint_of, find_answered, stop
from .state.control_client import Endpoint, ask
from .state.logs import read_logs, read_scripts
from .state.paths import default_root
from .state.reader import Memory, find, find_all, lives
from .state.snippets import client_code
from .state.view import ClusterView, JobScript, Look, Script, view_of
from .state.waiting import LOOK_SECONDS, Progress, wait_ready, wait_stopped
from .state.why import explain


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
        found = as_now(self.memory.looks(self.root, ended=ended, troubles=troubles))
        return sorted(found, key=lambda view: view.created), troubles

    def live(self) -> Sequence[ClusterView]:
        """Return the clusters that have not ended."""
        return [view for view in self.list() if view.phase not in ENDED]

    def check_directory(self) -> None:
        """Raise `StateError` where no cluster could be put on disk."""
        check_writable(self.root)

    def orphans(self) -> Sequence[str]:
        """Return a line for each process and job left over from ended or unknown clusters."""
        # Needs pydantic, which `list` does without.
        from .launch.profile_catalog import systems
        from .state.orphans import all_orphans

        return all_orphans(self.root, systems())

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
        return view_of(find_answered(self.root, name, jobs=False))

    def jobs(self, name: str) -> Sequence[Job]:
        """Return the jobs of a cluster, also those that have ended."""
        return find_answered(self.root, name).record.jobs

    def workers(self, name: str) -> Sequence[dict[str, Any]]:
        """Return the connected workers of a live cluster; raises as `endpoint` does."""
        workers = ask(self.endpoint(name), "GET", "/gpucluster/workers")["workers"]
        return cast("Sequence[dict[str, Any]]", workers)

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
        return read_logs(find(self.root, name), job, lines)

    def scripts(self, name: str) -> Sequence[JobScript]:
        """Return the job scripts that a cluster submitted, as they ran, the newest first.

        There are at most 100.  A cluster that an older version has ended has none any more.
        """
        return read_scripts(find(self.root, name, jobs=False).directory)

    def why(self, name: str) -> str:
        """Return a few lines: why the cluster waits, or why it ended."""
        return explain(find_answered(self.root, name))

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
            The batch system did not answer.
        BackendError
            Its command cannot be run here.
        """
        # Needs pydantic, which most calls do without.
        from .launch.capacity import capacity_of

        local = [
            view for view in self.live() if uses_this_machine(view.backend) and view.unit == "GPUs"
        ]
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
        return endpoint_of(find(self.root, name, jobs=False))

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

    # Changing.

    def start(self, request: Request | str, /, **fields: Any) -> ClusterView:
        """Start a cluster and return at once; `wait_ready` waits for its workers.

        Parameters
        ----------
        request
            The request, or the name of its profile with its other fields as arguments.

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
        from .launch.create import start

        return view_of(start(self.root, self.memory, _request(request, fields)))

    def script(self, request: Request | str, /, **fields: Any) -> Script:
        """Return the script and the submit command that `start` would use; submits nothing."""
        from .launch.preview import preview

        return preview(self.root, _request(request, fields))

    def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        target: Target | None = None,
        drop: str = "",
        restart: str = "",
        keep: bool = False,
    ) -> ClusterView:
        """Rename, scale or keep a cluster, give a job of it back, or restart a worker.

        Parameters
        ----------
        drop
            A worker whose job ends; the target falls by the workers of that job.
        restart
            A worker that starts anew.
        keep
            Whether an idle cluster gets another hour, unless something else ends it earlier.

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
            if look.record.spec.job.gpus and target.maximum > look.record.target.maximum:
                others = [view for view in self.live() if view.id != look.record.id]
                check_gpus(look.record.spec.site, target.maximum, others)
        if look.record.phase in ENDED:
            words = f"Cluster {look.record.name} is {look.record.phase.value}."
            hint = "Start another one."
            raise ClusterConflict(words, hint=hint)
        given = {"name": new_name, "target": target, "drop": drop, "restart": restart, "keep": keep}
        body = {key: to_json(value) for key, value in given.items() if value}
        ask_started(look.directory, "PATCH", "/gpucluster/cluster", body)
        return self.get(look.record.id)

    def stop(self, name: str, *, force: bool = False, reason: str = "") -> ClusterView:
        """Ask a cluster to stop; it is over when its phase says so (`wait_stopped`).

        Parameters
        ----------
        force
            Kill the head instead, which need not answer, and end its jobs from here.
        reason
            The reason that the cluster shows in place of "Stopped by you."

        Raises
        ------
        HeadUnreachable
            The head lives on another host, or does not answer.
        """
        return stop(self.root, name, force=force, reason=reason)

    def forget(self, name: str, *, force: bool = False) -> str:
        """Delete what is left on disk of a cluster that has ended.

        Parameters
        ----------
        force
            Delete it also while nothing proves that its jobs have ended.

        Returns
        -------
        The jobs whose end nothing proves, and the command that cancels them; usually empty.

        Raises
        ------
        ClusterConflict
            It or one of its jobs has perhaps not ended, or the name is that of several.
        """
        look, *others = find_all(self.root, name)
        if others:
            raise _ambiguous(name, [look, *others])
        deadline = time.monotonic() + LOOK_SECONDS
        # A head that has told its last word is still closing for a moment.
        while look.record.phase in ENDED and lives(look.record) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if look.record.phase not in ENDED or lives(look.record):
            hint = "Stop it first."
            raise ClusterConflict(f"Cluster {look.record.name} has not ended.", hint=hint)
        left = look.record.unaccounted
        if left is not None and not force:
            from .state.unaccounted import refusal

            raise refusal(look.record)
        look.directory.remove()
        return left.words if left is not None else ""

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
        return wait_ready(self.root, name, timeout, progress)

    def wait_stopped(
        self, name: str, *, timeout: float | None = None, progress: Progress | None = None
    ) -> ClusterView:
        """Wait until a cluster has ended and its head is gone.

        Raises
        ------
        WaitTimeout
            It has not within ``timeout`` seconds.
        """
        return wait_stopped(self.root, name, timeout, progress)


def _request(request: Request | str, fields: dict[str, Any]) -> Request:
    return Request(request, **fields) if isinstance(request, str) else request


def _ambiguous(name: str, looks: Sequence[Look]) -> ClusterConflict:
    """Return the error of a name that is not enough to delete by."""
    ended = " ".join(look.record.id for look in looks if look.record.phase in ENDED)
    hint = f"Give ids instead; for all that have ended: jupyter gpucluster forget {ended}"
    return ClusterConflict(f"{len(looks)} clusters have the name {name}.", hint=hint)
