"""What all front ends share: start, list, find, scale and stop clusters."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .errors import (
    ClusterConflict,
    ClusterNotFound,
    GpuClusterError,
    HeadUnreachable,
    InvalidInput,
    RecordError,
    StateError,
    WaitTimeout,
)
from .headclient import Endpoint, ask
from .processes import is_alive, kill_group
from .records import ENDED, FINAL, Event, Job, Phase, Process, Record, Target, from_json, to_json
from .store import ClusterDirectory, check_private
from .views import ClusterView, Look, Script, view_of

START_SECONDS = 90.0
"""A head that is not on record this long after its start never will be."""
LAPSED_SECONDS = 120.0
"""Lease period, its renewal once missed, and a minute of attribute cache."""
POLL_SECONDS = 0.03
LOOK_SECONDS = 10.0
Progress = Callable[[ClusterView], None]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
ID = re.compile(r"[a-z0-9]{6}", re.ASCII)


def default_root() -> Path:
    """Return the directory that holds all cluster directories of this user."""
    from jupyter_core.paths import jupyter_data_dir

    return Path(jupyter_data_dir()) / "gpucluster" / "clusters"


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

    # Looking.

    def list(self, *, ended: bool = False) -> list[ClusterView]:
        """Return the live clusters, oldest first; with ``ended`` also those that are over."""
        looks = [look for directory in self._directories() if (look := self._see(directory, ended))]
        return sorted((view_of(look) for look in looks), key=lambda view: view.created)

    def damaged(self) -> list[RecordError]:
        """Return what cannot be read, each with its way out."""
        found = []
        for directory in self._directories():
            try:
                directory.read_record()
            except RecordError as error:
                found.append(error)
        return found

    def get(self, name: str) -> ClusterView:
        """Return a cluster by name or id; of several with one name the live one, else the newest.

        Raises
        ------
        ClusterNotFound
            There is none.
        """
        return view_of(self._find(name))

    def jobs(self, name: str) -> Sequence[Job]:
        """Return the jobs of a cluster, also those that have ended."""
        return self._find(name).record.jobs

    def events(self, name: str) -> Sequence[Event]:
        """Return the timeline of a cluster."""
        return tuple(self._find(name).directory.events())

    def logs(self, name: str, job: str = "", *, lines: int = 500) -> str:
        """Return the last lines of every log, or of one job's, each under its name.

        Raises
        ------
        ClusterNotFound
            The cluster has no such job.
        """
        directory = self._find(name).directory
        paths = sorted(directory.logs.glob("*.log"), key=lambda path: (path.name != "head.log", path))
        if job:
            paths = [path for path in paths if path.stem == job]
            if not paths:
                known = ", ".join(path.stem for path in sorted(directory.logs.glob("*.log")))
                raise ClusterNotFound(
                    f"Cluster {name} has no log of job {job!r}.", hint=f"There are: {known}."
                )
        return "\n".join(f"==> {path.name} <==\n{_tail(path, lines)}" for path in paths)

    def why(self, name: str) -> str:
        """Say in a few lines what the cluster waits for, or why it ended."""
        look = self._find(name)
        view = view_of(look)
        told = [f"{view.name} is {view.phase.value}: {view.words}."]
        if view.reason:
            told.append(view.reason)
        for job in look.record.jobs:
            text = job.cause or job.reason
            if text and (job.state not in FINAL or view.phase in ENDED or job.leaving is None):
                told.append(f"{job.mark}_{job.task} ({job.state.value}): {text}")
        told += [f"It ends by itself: {clock.name}." for clock in view.clocks if clock.ends]
        return "\n".join(dict.fromkeys(told))

    def client_code(self, name: str) -> dict[str, str]:
        """Return code that connects to a cluster, without any secret in it.

        Returns
        -------
        dict
            ``connect`` (needs this package), ``magic`` (likewise) and ``dask`` (Dask alone).
        """
        look = self._find(name)
        if look.record.phase in ENDED:
            raise ClusterConflict(f"Cluster {name} has ended.", hint="Start another one.")
        connect = f'from jupyter_gpucluster import connect\n\nclient = connect("{look.record.name}")\nclient'
        magic = f"%load_ext jupyter_gpucluster\n%gpucluster connect {look.record.name}\nclient"
        scheduler_file = str(look.directory.scheduler_file)
        lines = ["from distributed import Client"]
        if look.record.spec.encrypted:
            tls = look.directory.tls
            lines += [
                "from distributed.security import Security",
                "",
                "security = Security(",
                "    require_encryption=True,",
                f"    tls_ca_file={str(tls / 'ca.pem')!r},",
                f"    tls_client_cert={str(tls / 'client-cert.pem')!r},",
                f"    tls_client_key={str(tls / 'client-key.pem')!r},",
                ")",
                f"client = Client(scheduler_file={scheduler_file!r}, security=security)",
            ]
        else:
            lines += ["", f"client = Client(scheduler_file={scheduler_file!r})"]
        return {"connect": connect, "magic": magic, "dask": "\n".join([*lines, "client"])}

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
        return self._endpoint(self._find(name))

    def find_directory(self, name: str) -> ClusterDirectory:
        """Return the files of a cluster."""
        return self._find(name).directory

    # Changing.

    def start(
        self,
        profile: str,
        *,
        name: str = "",
        target: Target | None = None,
        options: Mapping[str, Any] | None = None,
        python: str = "",
        kernel: str = "",
        request_id: str = "",
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
        from .starting import Request, start

        request = Request(profile, name, target, dict(options or {}), python, kernel, request_id)
        return view_of(start(self, request))

    def script(
        self,
        profile: str,
        *,
        target: Target | None = None,
        options: Mapping[str, Any] | None = None,
        python: str = "",
        kernel: str = "",
    ) -> Script:
        """Return the script and the submit command that `start` would use; submits nothing."""
        from .starting import Request, preview

        return preview(self, Request(profile, "", target, dict(options or {}), python, kernel, ""))

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
        look = self._find(name)
        if new_name is not None and new_name != look.record.name:
            self.check_name(new_name)
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

    def stop(self, name: str) -> ClusterView:
        """Ask a cluster to stop; it is over when its phase says so (`wait_stopped`).

        Raises
        ------
        HeadUnreachable
            The head lives on another host.
        """
        look = self._find(name)
        if look.record.phase not in ENDED:
            self._ask_started(look.directory, "POST", "/gpucluster/stop", {"reason": ""})
        return self.get(look.record.id)

    def forget(self, name: str) -> None:
        """Delete what is left on disk of a cluster that has ended.

        Raises
        ------
        ClusterConflict
            It has not ended.
        """
        look = self._find(name)
        if look.record.phase not in ENDED or _lives(look.record):
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

        def ready(view: ClusterView) -> bool:
            if view.phase in ENDED or view.phase is Phase.STOPPING:
                raise GpuClusterError(
                    f"Cluster {view.name} {view.phase.value}: {view.reason or 'it was stopped'}",
                    hint=f"See: jupyter gpucluster logs {view.name}",
                )
            counted = view.revision > 0 and view.workers.asked >= view.target.minimum
            return counted and view.workers.ready >= view.workers.asked

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
            return view.phase in ENDED and not _lives(self._find(view.id).record)

        return self._wait(name, gone, timeout, progress, "stopped")

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
                    hint="It goes on by itself; see why with: jupyter gpucluster why " + view.name,
                )
            self._await_news(view, LOOK_SECONDS if left is None else min(left, LOOK_SECONDS))
            view = self.get(view.id)
        if progress is not None:
            progress(view)
        return view

    def _await_news(self, view: ClusterView, seconds: float) -> None:
        """Return when the head has news, at the latest after some seconds."""
        if view.phase not in ENDED:
            with contextlib.suppress(GpuClusterError):
                endpoint = self.endpoint(view.id)
                path = f"/gpucluster/summary?after={view.revision}&timeout={seconds:.2f}"
                ask(endpoint, "GET", path, seconds=seconds + LOOK_SECONDS)
                return
        time.sleep(POLL_SECONDS)

    # Inside.

    def check_name(self, name: str) -> None:
        """Raise where a cluster cannot have this name."""
        if not NAME.fullmatch(name):
            shown = ascii(name[:40]) + ("..." if len(name) > 40 else "")
            raise InvalidInput(
                f"{shown} cannot be a cluster's name.",
                hint="Use up to 63 letters, digits, dots, dashes and underscores, "
                "beginning with a letter or digit.",
                detail="name",
            )
        if any(view.name == name or view.id == name for view in self.list()):
            raise ClusterConflict(
                f"A cluster named {name} exists already.",
                hint="Choose another name, or stop that one first.",
                detail="name",
            )

    def _directories(self) -> Iterator[ClusterDirectory]:
        try:
            found = sorted(path for path in self.root.iterdir() if ID.fullmatch(path.name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise StateError(
                f"Cannot read {self.root}: {error.strerror}.",
                hint="Check its permissions, or point JUPYTER_DATA_DIR at another directory.",
            ) from error
        check_private(self.root)
        for path in found:
            yield ClusterDirectory(path)

    def _see(self, directory: ClusterDirectory, ended: bool) -> Look | None:
        """Look at one directory; None where it is over and nobody asks, or cannot be read."""
        summary = directory.read_summary()
        if not ended and summary is not None and summary.phase in ENDED:
            return None
        try:
            look = self._look(directory)
        except RecordError:
            return None
        return look if ended or look.record.phase not in ENDED else None

    def _find(self, name: str) -> Look:
        directory = ClusterDirectory(self.root / name)
        if ID.fullmatch(name) and directory.path.is_dir():
            check_private(self.root)
            return self._look(directory)
        looks = [look for d in self._directories() if (look := self._see(d, True))]
        named = [look for look in looks if look.record.name == name]
        if not named:
            known = ", ".join(
                look.record.name for look in looks if look.record.phase not in ENDED
            )
            raise ClusterNotFound(
                f"There is no cluster named {ascii(name)[1:-1][:80]}.",
                hint=f"Running: {known}." if known else "No cluster is running.",
            )
        return max(named, key=lambda look: (look.record.phase not in ENDED, look.record.created))

    def _look(self, directory: ClusterDirectory) -> Look:
        """Read a cluster; where its head is dead, say so on record and clean up."""
        check_private(directory.path)
        record = directory.read_record()
        summary = directory.read_summary()
        if record.phase in ENDED:
            return Look(directory, record, summary)
        alive = _head_lives(directory, record)
        if alive is False:
            # The head may have written its last word between our two reads.
            record = directory.read_record()
            if record.phase not in ENDED:
                record = bury(directory, record)
        return Look(directory, record, summary, alive)

    def _endpoint(self, look: Look) -> Endpoint:
        record = look.record
        if record.phase in ENDED:
            raise ClusterConflict(f"Cluster {record.name} is {record.phase.value}.")
        if not record.http_address:
            raise ClusterConflict(f"Cluster {record.name} is still starting.", hint="Try again soon.")
        if record.head is not None and is_alive(record.head) is None:
            raise HeadUnreachable(
                f"The head of {record.name} runs on {record.head.host}.",
                hint=f"Use it from there: ssh {record.head.host}",
            )
        host, _, port = record.http_address.rpartition(":")
        try:
            token = (look.directory.path / "token").read_text().strip()
        except OSError as error:
            raise ClusterConflict(f"Cluster {record.name} is ending.") from error
        return Endpoint(host, int(port), token)

    def _ask_started(
        self, directory: ClusterDirectory, method: str, path: str, body: object
    ) -> None:
        """Ask a head, and wait for one that is only just starting; one that has ended is done."""
        deadline = time.monotonic() + LOOK_SECONDS
        while True:
            look = self._look(directory)
            if look.record.phase in ENDED:
                return
            if look.record.http_address or time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        try:
            ask(self._endpoint(look), method, path, body)
        except (HeadUnreachable, ClusterConflict):
            # It may have ended while it was asked.
            if self._look(directory).record.phase not in ENDED:
                raise


def check_target(target: Target, *, least: int) -> None:
    """Raise `InvalidInput` where a number of workers makes no sense."""
    for value in (target.minimum, target.maximum):
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InvalidInput(
                f"{value!r} is not a number of workers.", hint="Use a whole number.", detail="target"
            )
    if target.maximum < max(least, 1) and target.maximum < least:
        raise InvalidInput(
            "A cluster starts with at least one worker.",
            hint="Ask for 1 or more; scale to 0 later.",
            detail="target",
        )
    if target.minimum > target.maximum:
        raise InvalidInput(
            f"The minimum {target.minimum} is above the maximum {target.maximum}.", detail="target"
        )


def _lives(record: Record) -> bool:
    return record.head is not None and is_alive(record.head) is True


def _head_lives(directory: ClusterDirectory, record: Record) -> bool | None:
    """Tell whether the head lives: by its process here, by its lease elsewhere."""
    head = record.head
    if head is None:
        try:
            head = from_json(Process, json.loads(directory.process_file.read_bytes()))
        except (OSError, ValueError, TypeError):
            # Not even begun: the starter has only just spawned it, or died before it could.
            return time.time() - record.created < START_SECONDS
    alive = is_alive(head)
    if alive is not None:
        return alive
    probe = directory.path / ".clock"
    try:
        probe.touch(mode=0o600)
        # Both times are the file server's, so no two clocks are compared.
        age = probe.stat().st_mtime - directory.lease.stat().st_mtime
        probe.unlink(missing_ok=True)
    except OSError:
        return None
    return True if age < LAPSED_SECONDS else None


def bury(directory: ClusterDirectory, record: Record) -> Record:
    """Put on record that a head is dead, end what it left, and remove what it cannot remove."""
    for job in record.jobs:
        if len(job.process) == 2 and job.state not in FINAL:
            kill_group(job.process[0], job.process[1])
    now = time.time()
    began = record.head is not None or directory.process_file.exists()
    if began:
        reason = "Its head is gone: it was killed, or the machine was restarted."
    else:
        reason = "Its head never started."
    last = _last_error(directory.logs / "head.log")
    buried = replace(
        record,
        phase=Phase.FAILED,
        phase_since=now,
        ended=now,
        reason=f"{reason} {last}".strip(),
        revision=record.revision + 1,
    )
    directory.write_record(buried)
    summary = directory.read_summary()
    if summary is not None:
        directory.write_summary(
            replace(summary, phase=Phase.FAILED, phase_since=now, reason=buried.reason)
        )
    directory.append_event(Event(now, "phase", f"failed: {buried.reason}"))
    if record.spec.scratch:
        shutil.rmtree(record.spec.scratch, ignore_errors=True)
    directory.remove_private()
    return buried


def _last_error(path: Path) -> str:
    """Return the last line of a log that names an exception."""
    lines = [line for line in _tail(path, 50).splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return lines[-1][:200] if lines else ""


def _tail(path: Path, lines: int, *, most: int = 1 << 20) -> str:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - most))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


class AsyncClusters:
    """`Clusters` for event loops: the same verbs, each in a thread."""

    def __init__(self, root: Path | None = None) -> None:
        self.sync = Clusters(root)

    async def list(self, *, ended: bool = False) -> list[ClusterView]:
        """See `Clusters.list`."""
        return await asyncio.to_thread(self.sync.list, ended=ended)

    async def get(self, name: str) -> ClusterView:
        """See `Clusters.get`."""
        return await asyncio.to_thread(self.sync.get, name)

    async def jobs(self, name: str) -> Sequence[Job]:
        """See `Clusters.jobs`."""
        return await asyncio.to_thread(self.sync.jobs, name)

    async def events(self, name: str) -> Sequence[Event]:
        """See `Clusters.events`."""
        return await asyncio.to_thread(self.sync.events, name)

    async def logs(self, name: str, job: str = "", *, lines: int = 500) -> str:
        """See `Clusters.logs`."""
        return await asyncio.to_thread(self.sync.logs, name, job, lines=lines)

    async def why(self, name: str) -> str:
        """See `Clusters.why`."""
        return await asyncio.to_thread(self.sync.why, name)

    async def client_code(self, name: str) -> dict[str, str]:
        """See `Clusters.client_code`."""
        return await asyncio.to_thread(self.sync.client_code, name)

    async def endpoint(self, name: str) -> Endpoint:
        """See `Clusters.endpoint`."""
        return await asyncio.to_thread(self.sync.endpoint, name)

    async def start(self, profile: str, **request: Any) -> ClusterView:
        """See `Clusters.start`."""
        return await asyncio.to_thread(self.sync.start, profile, **request)

    async def script(self, profile: str, **request: Any) -> Script:
        """See `Clusters.script`."""
        return await asyncio.to_thread(self.sync.script, profile, **request)

    async def update(
        self, name: str, *, new_name: str | None = None, target: Target | None = None
    ) -> ClusterView:
        """See `Clusters.update`."""
        return await asyncio.to_thread(self.sync.update, name, new_name=new_name, target=target)

    async def stop(self, name: str) -> ClusterView:
        """See `Clusters.stop`."""
        return await asyncio.to_thread(self.sync.stop, name)

    async def forget(self, name: str) -> None:
        """See `Clusters.forget`."""
        await asyncio.to_thread(self.sync.forget, name)

    async def wait_ready(
        self, name: str, *, timeout: float | None = None, progress: Progress | None = None
    ) -> ClusterView:
        """See `Clusters.wait_ready`."""
        return await asyncio.to_thread(
            self.sync.wait_ready, name, timeout=timeout, progress=progress
        )

    async def wait_stopped(
        self, name: str, *, timeout: float | None = None, progress: Progress | None = None
    ) -> ClusterView:
        """See `Clusters.wait_stopped`."""
        return await asyncio.to_thread(
            self.sync.wait_stopped, name, timeout=timeout, progress=progress
        )
