"""The cluster directory on disk: atomic, versioned, private to its owner."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ..core.cluster import RECORD_VERSION, CopiedBackend, Phase, Process, Record
from ..core.errors import NewerRecord, RecordError, StateError
from ..core.job import Job
from ..core.lease import LAPSED_SECONDS, LATE_SECONDS
from ..core.serialize import from_json, to_json
from ..core.summary import Event, Summary
from .private_files import DAMAGE, check_private, trouble, write_private
from .processes import is_alive

R = TypeVar("R")

FORCED = "stopped-by-force"
"""A file: the cluster was ended without its head, which ends, too, if it lives after all."""
PRIVATE = (
    *("tls", "token", "scheduler.json", "exit", "process.json", "headjob.json", "asked-to-stop"),
    *("relay", "relay.json", ".relay.lock", "lease"),
)
"""Files that a cluster needs only while it lives; the others are kept as its history."""

KEPT_SCRIPTS = 100
"""Number of the newest scripts that are kept; a cluster that adapts submits for weeks."""

NOTE_BYTES = 512
"""Room in the lease for the reason of a stop that cannot be saved elsewhere."""


Files = tuple[tuple[int, int, int], ...]
"""Inode, size and time of record and summary."""


class Part:
    """A path in a cluster directory, made when it is needed: listings need most of them never."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, directory: ClusterDirectory, kind: type) -> Path:
        """Return the path."""
        return directory.path / self.name


class ClusterDirectory:
    """The files of one cluster.

    ``record.json`` (what must survive), ``summary.json`` (what is true now), ``events.jsonl`` (the
    timeline), ``scheduler.json`` (Dask's scheduler file), ``token``, ``tls/``, ``jobs/``,
    ``exit/``, ``logs/``.

    Parameters
    ----------
    entry
        Its entry in the state root, if that is a file (`cluster_at`).
    fault
        Why that file cannot be used.
    """

    logs = Part("logs")
    """Logs of head and jobs."""
    jobs = Part("jobs")
    """Job scripts."""
    tls = Part("tls")
    """Certificates and keys."""
    scheduler_file = Part("scheduler.json")
    """Dask's scheduler file."""
    lease = Part("lease")
    """Its time tells when the head was last alive."""
    process_file = Part("process.json")
    """The head before it is on record."""
    relay = Part("relay")
    """Commands of a head for the relay, and their answers."""
    relay_file = Part("relay.json")
    """Identity of the relay's process."""
    headjob_file = Part("headjob.json")
    """The head's job before the head is on record; its time tells when it was asked about."""

    def __init__(
        self, path: Path, entry: Path | None = None, fault: StateError | None = None
    ) -> None:
        self.path = path
        self.entry = entry
        self.fault = fault
        self._written = b""
        self._written_as = (0, 0, 0)

    def script(self, mark: str) -> Path:
        """Return the script of a submission."""
        return self.jobs / f"{mark}.sh"

    def command(self, mark: str) -> Path:
        """Return the file with the command of a submission."""
        return self.jobs / f"{mark}.command"

    def marks(self) -> list[str]:
        """Return the submissions whose scripts are there, the oldest first.

        The directory is listed: over NFS a file that was asked for too early stays missing.
        """
        pattern = re.compile(rf"gpc-{re.escape(self.id)}-([0-9]+)\.sh", re.ASCII)
        with contextlib.suppress(OSError):
            found = [pattern.fullmatch(path.name) for path in self.jobs.iterdir()]
            numbers = sorted(int(each[1]) for each in found if each)
            return [f"gpc-{self.id}-{number}" for number in numbers]
        return []

    def environment(self) -> Path:
        """Return the script that runs its arguments, or a shell, in the environment of the jobs."""
        return self.jobs / "environment.sh"

    def template(self, group: str = "") -> Path:
        """Return what scripts of jobs are made from: a worker group's, or the cluster's own."""
        return self.jobs / (f"template-{group}.sh" if group else "template.sh")

    @property
    def id(self) -> str:
        """The cluster's id is its directory's name."""
        return self.path.name

    @property
    def root(self) -> Path:
        """The state root; on a node that does not see it, the folder of this directory."""
        root = (self.entry or self.path).parent
        return root if root.is_dir() else self.path.parent

    def check(self) -> None:
        """Raise `StateError` if another user could have made or could change the directory."""
        if self.fault is not None:
            raise self.fault
        check_private(self.path)

    def create(self) -> None:
        """Make the directory; raises `StateError` where it exists or cannot be made."""
        try:
            self.path.mkdir(mode=0o700)
            for part in (self.logs, self.jobs, self.tls, self.path / "exit"):
                part.mkdir(mode=0o700)
        except OSError as error:
            raise trouble(error, self.path) from error

    def remove(self) -> None:
        """Delete the directory and all in it, and its entry."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.entry is not None and self.fault is None:
            with contextlib.suppress(OSError):
                self.entry.unlink()

    def remove_private(self, record: Record, *, keep_lease: bool = False) -> None:
        """Delete keys and whatever else only a live cluster needs; the scripts that ran stay.

        Parameters
        ----------
        record
            Its jobs whose end nothing proves may still leave exit files.
        keep_lease
            Whether the note in the lease (`note_stop`) is still needed.
        """
        self._remove_jobs()
        kept = {"lease": keep_lease, "exit": record.unaccounted is not None}
        for name in PRIVATE:
            if not kept.get(name):
                _remove(self.path / name)

    def _remove_jobs(self) -> None:
        """Delete what scripts were made from and what they ran; jobs that come late find nothing.

        A script holds no secret that the record does not hold: keys and token are files.
        """
        marks = self.marks()[-KEPT_SCRIPTS:]
        kept = {path(mark) for mark in marks for path in (self.script, self.command)}
        with contextlib.suppress(OSError):
            for path in self.jobs.iterdir():
                if path not in kept:
                    _remove(path)
            if not kept:
                self.jobs.rmdir()

    def write_record(self, record: Record) -> None:
        """Write the record durably."""
        path, data = self.path / "record.json", _dump(to_json(record))
        if path.is_dir():  # which a file cannot replace
            _put_aside(path)
        write_private(path, data, durable=True)
        self._written, self._written_as = data, self.files()[0]

    def record_is_lost(self) -> bool:
        """Tell whether the record on disk is not the one that was written last through this object.

        It was deleted, damaged or restored from an older copy.
        """
        now = self.files()[0]
        if not self._written or now == self._written_as:
            return False
        with contextlib.suppress(OSError):
            if (self.path / "record.json").read_bytes() == self._written:
                self._written_as = now
                return False
        return True

    def read_record(self, *, jobs: bool = True) -> Record:
        """Read the record, or all of it but its many jobs.

        Raises
        ------
        RecordError
            It was written by a newer version, or is damaged; a damaged one is set aside, unless
            the head may live, which writes it again.
        """
        path = self.path / "record.json"
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
                raise OSError(errno.EINVAL, "it is not a file")
            text = path.read_text("utf-8")
        except OSError as error:
            raise RecordError(f"Cannot read {path}: {error.strerror}.", hint=self.fix()) from error
        except UnicodeDecodeError as error:
            raise self._quarantine(path, error) from error
        try:
            data = json.loads(text)
            version = int(data["version"])
            if not jobs:
                data.pop("jobs", None)
            if version <= RECORD_VERSION:
                return self._completed(from_json(Record, data))
        except DAMAGE as error:
            raise self._quarantine(path, error) from error
        raise NewerRecord(
            f"The cluster in {self.path} was made by a newer jupyter-gpucluster "
            f"(record version {version}, this one reads up to {RECORD_VERSION}).",
            hint="Upgrade jupyter-gpucluster here, or use the environment that started it. "
            + self.fix(newer=True),
        )

    def _quarantine(self, path: Path, error: Exception) -> RecordError:
        if self.head_may_live():
            return RecordError(f"The record {path} is damaged ({error}).", hint=self.fix())
        aside = _put_aside(path)
        words = f"The record {path} is damaged ({error}); it was set aside as {aside.name}."
        return RecordError(words, hint=self.fix())

    def fix(self, *, newer: bool = False) -> str:
        """Return what to do about a record that cannot be read."""
        if not self.head_may_live():
            left = f"Delete {self.path} when all its processes and jobs are gone."
            return "" if newer else left
        stop = f"To stop the cluster: jupyter gpucluster stop {self.id}"
        return stop if newer else f"Its scheduler writes it again within a minute. {stop}"

    def head_may_live(self) -> bool:
        """Tell whether a head may still use this directory, whatever its record says."""
        process = self.read_process()
        if process is not None and (alive := is_alive(process)) is not None:
            return alive
        age = self.lease_age()
        return age is not None and age < LAPSED_SECONDS

    def _completed(self, record: Record) -> Record:
        """Return a record whose backend leads to the copy of its dialect, if there is one."""
        spec, copy = record.spec, record.spec.dialect
        if self.entry is None and spec.root:
            self.entry = Path(spec.root, self.id)
        if copy is None:
            return record
        name = CopiedBackend(spec.backend, self.path / Path(copy.file).name, copy)
        return replace(record, spec=replace(spec, backend=name))

    def lease_age(self) -> float | None:
        """Return for how long the head has not renewed its lease; None if that is unknown."""
        probe = self.path / ".clock"
        try:
            probe.touch(mode=0o600)
            # Both times are the file server's, so no two clocks are compared.
            age = probe.stat().st_mtime - self.lease.stat().st_mtime
            probe.unlink(missing_ok=True)
        except OSError:
            return None
        return age

    def lease_is_late(self) -> bool:
        """Tell whether a lease is older than it gets while its head is well; a list asks often."""
        try:
            age = time.time() - os.stat(f"{self.path}/lease").st_mtime  # noqa: PTH116  # a Path each costs more
        except OSError:
            return False  # not renewed yet, or no longer
        # This clock may differ from the file server's: where the two disagree, that one counts.
        if abs(age) <= LATE_SECONDS:
            return False
        exact = self.lease_age()
        return exact is None or exact > LATE_SECONDS

    def write_process(self, process: Process, http_address: str = "") -> None:
        """Write which process the head is, and where it listens once it does."""
        data = {**to_json(process), "http_address": http_address}
        write_private(self.process_file, _dump(data))

    def read_process(self) -> Process | None:
        """Read which process the head is; it says so before it is on record."""
        return _read(Process, self.process_file)

    def read_http_address(self) -> str:
        """Read where the head listens, as the record has it; empty where that is not known."""
        with contextlib.suppress(OSError, *DAMAGE):
            return str(json.loads(self.process_file.read_bytes()).get("http_address", ""))
        return ""

    def read_relay(self) -> Process | None:
        """Read which process the relay is, None where there has been none."""
        return _read(Process, self.relay_file)

    def write_headjob(self, job: Job) -> None:
        """Write what was last heard of the head's job while the head itself is not there."""
        write_private(self.headjob_file, _dump(to_json(job)))

    def read_headjob(self) -> Job | None:
        """Read what was last heard of the head's job, None if it was not asked for."""
        return _read(Job, self.headjob_file)

    def write_summary(self, summary: Summary) -> None:
        """Write what is true now."""
        write_private(self.path / "summary.json", _dump(to_json(summary)))

    def write_end(self, record: Record, event: Event) -> None:
        """Write the record of a cluster that has ended, its summary and a line of the timeline."""
        self.write_record(record)
        if (summary := self.read_summary()) is not None:
            changes: dict[str, Any] = {
                name: getattr(record, name) for name in ("phase", "phase_since", "reason")
            }
            left = record.unaccounted is not None
            self.write_summary(replace(summary, unaccounted=left, **changes))
        self.append_event(event)

    def read_summary(self) -> Summary | None:
        """Read the last summary, or None where there is none."""
        return _read(Summary, self.path / "summary.json")

    def files(self) -> Files:
        """Return what changes whenever record or summary are written anew."""
        return _sign(f"{self.path}/record.json"), _sign(f"{self.path}/summary.json")

    def read_phase(self) -> tuple[Phase | None, float, bool]:
        """Read phase, its time and `unaccounted` alone: lists read hundreds of ended clusters."""
        try:
            # Half the time of Path.read_bytes.
            with open(f"{self.path}/summary.json", "rb", buffering=0) as stream:  # noqa: PTH123
                data = json.loads(stream.read())
            since, unaccounted = float(data["phase_since"]), bool(data.get("unaccounted"))
            return Phase(data["phase"]), since, unaccounted
        except (OSError, ValueError, TypeError, KeyError):
            return None, 0.0, False

    def append_event(self, event: Event) -> None:
        """Add a line to the timeline."""
        line = _dump(to_json(event)) + b"\n"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        try:
            with os.fdopen(os.open(self.path / "events.jsonl", flags, 0o600), "r+b") as stream:
                size = stream.seek(0, os.SEEK_END)
                # A line that a crash or a full disk cut short must not swallow this one.
                if size and os.pread(stream.fileno(), 1, size - 1) != b"\n":
                    line = b"\n" + line
                stream.write(line)
        except OSError as error:
            raise trouble(error, self.path / "events.jsonl") from error

    def events(self) -> Iterator[Event]:
        """Yield the timeline; a line cut short by a crash is passed over."""
        try:
            lines = (self.path / "events.jsonl").read_text("utf-8", "replace").splitlines()
        except OSError:
            return
        for line in lines:
            with contextlib.suppress(*DAMAGE):
                yield from_json(Event, json.loads(line))

    def exit_codes(self) -> dict[str, int]:
        """Return the exit codes that job scripts left, by job.

        The directory is listed: over NFS a file that was asked for too early stays missing.
        """
        found = {}
        with contextlib.suppress(OSError):
            for path in (self.path / "exit").iterdir():
                with contextlib.suppress(OSError, ValueError):
                    found[path.name] = int(path.read_text())
        return found

    def renew_lease(self) -> None:
        """Touch the lease; its time is set by the file server, so no clocks are compared.

        Raises
        ------
        StateError
            It cannot be touched, or is missing and cannot be made.
        """
        try:
            # Needs no space: a full file system must not end the jobs of a healthy cluster.
            os.utime(self.lease, follow_symlinks=False)
        except FileNotFoundError:
            write_private(self.lease, b" " * NOTE_BYTES)
        except OSError as error:
            raise trouble(error, self.lease) from error

    def note_stop(self, reason: str) -> None:
        """Note in the lease that the cluster stops, where the record cannot be written.

        The bytes are there already, so a full disk takes them; no file is made or renamed.
        """
        note = reason.encode()[:NOTE_BYTES].ljust(NOTE_BYTES)
        with contextlib.suppress(OSError):
            descriptor = os.open(self.lease, os.O_WRONLY | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "wb", buffering=0) as stream:
                stream.write(note)
                os.fsync(descriptor)

    def noted_stop(self) -> str:
        """Return the reason of a stop that could not be saved elsewhere, empty if there is none."""
        with contextlib.suppress(OSError):
            return self.lease.read_bytes()[:NOTE_BYTES].decode("utf-8", "ignore").strip()
        return ""


def _sign(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116  # a Path each costs more
    except OSError:
        return 0, 0, 0
    return status.st_ino, status.st_size, status.st_mtime_ns


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # also of is_dir: a stale file handle
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def tail(path: Path, lines: int, *, most: int = 1 << 20) -> str:
    """Return the last lines of a log, at most ``most`` bytes of it; nothing where there is none."""
    try:
        if not path.is_file():  # a pipe would be waited for, a device never ends
            return ""
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - most))
            text = stream.read(most).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _put_aside(path: Path) -> Path:
    aside = path.with_name(f"{path.name}.damaged-{int(time.time())}")
    with contextlib.suppress(OSError):
        path.rename(aside)
    return aside


def _read(kind: type[R], path: Path) -> R | None:
    with contextlib.suppress(OSError, *DAMAGE):
        return from_json(kind, json.loads(path.read_bytes()))
    return None


def _dump(data: Any) -> bytes:
    # ASCII: names of files need not be UTF-8, and no character but our own ends a line.
    return json.dumps(data, separators=(",", ":")).encode()
