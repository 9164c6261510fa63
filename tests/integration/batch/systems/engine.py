"""The jobs of a simulated batch system: one locked file, and processes that really run.

Nothing runs between two commands: each of them first looks what has become of the jobs, as a
scheduler would in the meantime.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

CAPTURED = Path(__file__).resolve().parents[3] / "captured"
GRACE_SECONDS = 5.0
"""Between the signal that asks a job to end and the one that ends it."""
RECORDING = re.compile(rb"\$ .*\n--- exit (\d+)\n--- stdout\n(.*?)--- stderr\n(.*)", re.DOTALL)
RUN = 'trap : TERM INT; "$@"; echo $? >"$0.new"; mv "$0.new" "$0"'
"""A job's process, which notes the exit code; killed without a chance, it leaves none."""
NOISE = b"*** Mardi: arr\xeat \xe0 8 h de 42 n\x9cuds ***\n"
"""Other output of a site, in no encoding of ours."""


class Answer(NamedTuple):
    """The output of a command, and its exit code."""

    out: str | bytes = ""
    err: str | bytes = ""
    code: int = 0


@dataclass
class Job:
    """One job, or one task of an array."""

    number: int
    task: int
    count: int
    name: str
    script: str
    arguments: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    output: str = "/dev/null"
    walltime: float | None = None
    on_restart: dict[str, str] = field(default_factory=dict)
    """Variables that it has besides when it runs again."""
    ready: bool = True
    """True if its system has found a place for it; until then it does not start."""
    given: dict[str, Any] = field(default_factory=dict)
    """Its system's own knowledge of it."""
    state: str = "waiting"  # held, running, suspended, ended
    pid: int = 0
    submitted: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    code: int = 0
    """Exit code, or the negative number of a signal."""
    asked: float = 0.0
    """Time of the request for its end."""
    by: str = ""
    """The user, or `walltime` or `memory`."""
    again: bool = False
    """True if it goes back into the queue at its end."""
    restarts: int = 0


@dataclass
class Site:
    """All there is to know; `opened` reads and writes it."""

    base: str
    next: int = 41
    slots: int = 0
    """Maximum number of running jobs."""
    silent: bool = False
    deaf: bool = False
    """True if requests to end jobs exit with code 0 and end no job."""
    lies: str = ""
    """Jobs that a listing omits with exit code 0: `others` than the first id, or `all`."""
    calls: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)

    def add(self, count: int = 1, **fields: object) -> list[Job]:
        """Queue ``count`` jobs under the next number."""
        number, self.next = self.next, self.next + 1
        now = time.time()
        added = [
            Job(number=number, task=task, count=count, submitted=now, **fields)  # type: ignore[arg-type]  # fields of Job
            for task in range(count)
        ]
        self.jobs += added
        return added

    def living(self) -> list[Job]:
        """Return the jobs that have not ended."""
        return [job for job in self.jobs if job.state != "ended"]

    def end(self, jobs: Iterable[Job], by: str = "root") -> None:
        """Ask jobs to end, as a cancel command does."""
        for job in () if self.deaf else jobs:
            if job.state in ("waiting", "held"):
                job.state, job.ended, job.by = "ended", time.time(), by
            elif job.state in ("running", "suspended") and not job.asked:
                job.asked, job.by = time.time(), by
                signal_session(job.pid, signal.SIGTERM)
                self.resume([job])

    def suspend(self, jobs: Iterable[Job]) -> None:
        """Stop the processes of jobs, which stay where they are."""
        for job in jobs:
            job.state = "suspended"
            signal_session(job.pid, signal.SIGSTOP)

    def resume(self, jobs: Iterable[Job]) -> None:
        """Let suspended jobs go on."""
        for job in jobs:
            if job.state == "suspended":
                job.state = "running"
                signal_session(job.pid, signal.SIGCONT)

    def requeue(self, jobs: Iterable[Job]) -> None:
        """End jobs that run, and put them back into the queue."""
        for job in jobs:
            self.end([job])
            job.again = True

    def starve(self, jobs: Iterable[Job]) -> None:
        """End jobs as a system does that finds them over their memory."""
        for job in jobs:
            job.by = "memory"
            signal_session(job.pid, signal.SIGKILL)

    def advance(self) -> None:
        """Look what has ended, end what is over its time, start what there is room for."""
        now = time.time()
        for job in self.jobs:
            if job.state in ("running", "suspended"):
                if has_ended(job.pid):
                    self.note_end(job, now)
                elif job.asked and now - job.asked > GRACE_SECONDS:
                    signal_session(job.pid, signal.SIGKILL)
                elif job.walltime is not None and now - job.started > job.walltime:
                    self.end([job], by="walltime")
        running = sum(job.state in ("running", "suspended") for job in self.jobs)
        waiting = [job for job in self.jobs if job.state == "waiting" and job.ready]
        for job in waiting[: max(0, self.slots - running)]:
            self.start(job)

    def note_end(self, job: Job, now: float) -> None:
        """Put an end on record, or a job back into the queue."""
        if job.again:
            job.state, job.again, job.restarts = "waiting", False, job.restarts + 1
            job.started = job.asked = 0.0
            job.by = ""
        else:
            job.state, job.ended, job.code = "ended", now, self.exit_code(job)

    def exit_file(self, job: Job) -> Path:
        return Path(self.base, "exit", f"{job.number}.{job.task}")

    def exit_code(self, job: Job) -> int:
        """Return how a job has ended."""
        try:
            return int(self.exit_file(job).read_text())
        except (OSError, ValueError):
            return -signal.SIGKILL

    def start(self, job: Job) -> None:
        """Run a job in a session of its own, with next to nothing of our environment."""
        kept = ("HOME", "USER", "LOGNAME", "TMPDIR")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {"PATH": "/usr/bin:/bin", **job.variables}
        if job.restarts:
            environment |= job.on_restart
        self.exit_file(job).unlink(missing_ok=True)
        argv = ["sh", "-c", RUN, str(self.exit_file(job)), job.script, *job.arguments]
        with Path(job.output).open("ab") as output:
            process = subprocess.Popen(
                argv,
                cwd=environment.get("HOME", "/"),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        process.returncode = 0  # nobody waits for it here, and we are gone before it
        job.state, job.pid, job.started = "running", process.pid, time.time()


@contextlib.contextmanager
def opened(base: Path) -> Iterator[Site]:
    """Lock the site, look what has become of its jobs, and keep what is changed."""
    file = base / "site.json"
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        site = Site(str(base))
        if file.exists():
            data = json.loads(file.read_text())
            site = Site(**{**data, "jobs": [Job(**job) for job in data["jobs"]]})
        site.advance()
        yield site
        site.advance()
        new = base / "site.new"
        new.write_text(json.dumps(asdict(site)))
        new.rename(file)


def signal_session(pid: int, number: signal.Signals) -> None:
    """Send a signal to all that is left of a job, whatever groups its processes have made."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(fields_of(entry)[3]) == pid:
                os.kill(int(entry.name), number)


def fields_of(entry: Path) -> list[str]:
    """Return what the kernel tells of a process, from its state on."""
    return (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()


def has_ended(pid: int) -> bool:
    """Tell whether nothing of a job's session is left but what nobody has waited for."""
    try:
        return fields_of(Path(f"/proc/{pid}"))[0] == "Z"
    except OSError:
        return True


def replay(file: str) -> Answer:
    """Say again, to the byte, what a real system was recorded to say."""
    match = RECORDING.fullmatch((CAPTURED / file).read_bytes())
    assert match, file
    return Answer(match[2], match[3], int(match[1]))


def directives(text: str, prefix: str) -> dict[str, str]:
    """Return a script's directives of the form ``-x value``, those with ``-l`` by resource."""
    found = {}
    for line in text.splitlines():
        words = line.split(maxsplit=2)
        if len(words) == 3 and words[0] == prefix:
            key = words[1] if words[1] != "-l" else f"-l {words[2].partition('=')[0]}"
            found[key] = words[2].rpartition("=")[2] if words[1] == "-l" else words[2]
    return found


def seconds(text: str) -> float:
    """Read ``HH:MM:SS`` or ``HH:MM``."""
    parts = [int(part) for part in text.split(":")]
    hours, minutes, rest = (*parts, 0)[:3]
    return hours * 3600.0 + minutes * 60 + rest


def run(base: str, system: str, program: str) -> None:
    """Be one of the system's commands: answer, and exit."""
    commands = importlib.import_module(f"{__package__}.{system}")
    with opened(Path(base)) as site:
        site.calls.append(program)
        if site.silent:
            answer: Answer = commands.silence(program)
        else:
            answer = commands.answer(site, program, sys.argv[1:])
    submits = program in commands.SUBMITS
    for stream, said, noise in (
        (sys.stdout.buffer, answer.out, NOISE if submits else b""),
        (sys.stderr.buffer, answer.err, NOISE),
    ):
        stream.write(noise + (said.encode() if isinstance(said, str) else said))
        stream.flush()
    sys.exit(answer.code)


def install(base: Path, system: str, programs: Iterable[str]) -> Path:
    """Put a system's commands into a folder of their own; return it."""
    folder = base / "bin"
    for part in (folder, base / "exit", base / "spool"):
        part.mkdir(parents=True, exist_ok=True)
    checkout = str(Path(__file__).resolve().parents[4])
    for program in programs:
        file = folder / program
        file.write_text(
            f"#!{os.path.realpath(sys.executable)} -IS\nimport sys\n"
            f"sys.path.insert(0, {checkout!r})\n"
            f"from {__name__} import run\n"
            f"run({str(base)!r}, {system!r}, {program!r})\n"
        )
        file.chmod(0o755)
    return folder
