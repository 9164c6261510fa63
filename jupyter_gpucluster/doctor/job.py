"""Submit a small job that looks around on its nodes, wait for what it says, and take it away."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..batch import cancel, keeps_ended
from ..core.cluster import Record
from ..core.errors import GpuClusterError, WaitTimeout
from ..core.job import WAITING, Job
from ..host.cluster_directory import LEASE_SECONDS, ClusterDirectory, tail
from ..launch.plan import Plan
from ..node import probe
from ..state import head_job
from .findings import Finding, Report, failed, ok, refused, warning
from .nodes import SHARED_DIRECTORY, judge
from .prepare import WALLTIME, job_files, prepare
from .reach import Expected, hosts, look_at_logins, look_at_way_in

ANSWER_SECONDS = WALLTIME + 60.0
"""After so long without an answer a job that runs is given up."""
LATE_SECONDS = 5.0
"""What a job wrote may be seen so long after its end, on file systems that nodes share."""
LOOK_SECONDS = 0.5
MOST_LOGINS = 8
LOG_LINES = 8


@dataclass
class Probe:
    """One probe job: its files, what it is told, and what has been heard of it."""

    directory: ClusterDirectory
    record: Record
    expected: Expected
    listener: probe.Listener
    ssh: tuple[str, ...] = ()
    """The launcher's command, where it is ssh."""
    submitted: float = 0.0
    began: float = 0.0
    """When the first rank said hello; 0 = none has."""
    job: Job | None = None
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: dict[str, dict[str, str]] = field(default_factory=dict)
    logins: dict[str, str] | None = None


def probe_by_job(
    root: Path,
    plan: Plan,
    report: Report,
    *,
    wait: float | None,
    note: Callable[[str], None],
) -> Report:
    """Add to a report what a job finds on its nodes; see `examine_profile`."""
    with job_files(root) as directory, _listening() as listener:
        try:
            made = prepare(directory, plan, listener)
            one = Probe(directory, made.record, made.expected, listener, made.ssh)
            _submit(one, note)
        except GpuClusterError as error:
            return replace(report, findings=(*report.findings, refused("probe job", error)))
        late: WaitTimeout | None = None
        try:
            note(f"submitted a job of {WALLTIME // 60} min at most as {_mark(one)}")
            _watch(one, wait, note)
        except WaitTimeout as error:
            late = error
        except BaseException:
            _tell_what_is_left(one, note)
            raise
        left = _take_away(one)
        told = [] if late else _findings(one)
        findings = (*report.findings, *told, *left)
        return replace(report, findings=findings, job=_facts(one), late=late)


@contextlib.contextmanager
def _listening() -> Iterator[probe.Listener]:
    listener = probe.Listener(secrets.token_hex(16))
    try:
        yield listener
    finally:
        listener.close()


def _submit(one: Probe, note: Callable[[str], None]) -> None:
    one.submitted = time.monotonic()
    try:
        head_job.submit(one.directory, one.record)
    except KeyboardInterrupt:
        _tell_what_is_left(one, note)
        raise


def _tell_what_is_left(one: Probe, note: Callable[[str], None]) -> None:
    """Take the job away where no report follows."""
    for finding in _take_away(one):
        note(finding.found)


# While it waits and runs.


def _watch(one: Probe, wait: float | None, note: Callable[[str], None]) -> None:
    """Wait until all ranks have answered, or none will any more.

    Raises
    ------
    WaitTimeout
        The job did not start in time.
    """
    said, renewed, over = "", time.monotonic(), 0.0
    while True:
        now = time.monotonic()
        if now - renewed > LEASE_SECONDS:
            one.directory.renew_lease()
            renewed = now
        one.job = head_job.watch(one.directory, one.record)
        _listen_to(one, now)
        if len(one.answers) >= one.expected.ranks:
            return
        if one.job.is_over:
            over = over or now
            if now - over > LATE_SECONDS:
                return
        elif one.began and now - one.began > ANSWER_SECONDS:
            return
        words = _words(one)
        if words != said:
            note(words)
            said = words
        late = not one.began and wait is not None and now - one.submitted > wait
        if late and _still_waits(one):
            raise WaitTimeout(
                f"The probe job did not start within {wait:.0f} s and was cancelled."
                f" {one.job.reason or 'The queueing system does not say why.'}",
                hint="Wait longer with --wait SECONDS, or try when the queue is shorter.",
            )
        time.sleep(LOOK_SECONDS)


def _still_waits(one: Probe) -> bool:
    """Ask once more, since what was last heard of the job may be old."""
    job = one.job or one.record.jobs[0]
    one.job = head_job.run_apart(lambda: head_job.ask(one.directory, one.record, job))
    return one.job.state in WAITING


def _listen_to(one: Probe, now: float) -> None:
    """Read what the ranks have written, and call those that listen."""
    here = one.directory.path
    hello = probe.answers(here, ".hello")
    if not one.began and (hello or (one.job and one.job.state not in WAITING)):
        one.began = now
    if one.expected.in_job:
        for name, told in hello.items():
            if told["host"] not in one.calls:
                secret = one.listener.secret
                one.calls[told["host"]] = {
                    address: probe.call(address, told["port"], secret, name)["trouble"]
                    for address in told["interfaces"].values()
                    if not address.startswith("127.") or address == told["usual"]
                }
    if one.logins is None and (there := _logins_there(one)) is not None:
        one.logins = probe.log_in([*one.ssh], there["hosts"][:MOST_LOGINS])
    one.answers = probe.answers(here, ".json")


def _logins_there(one: Probe) -> dict[str, Any] | None:
    return probe.read(one.directory.path / "answers" / "ssh.json")


def _words(one: Probe) -> str:
    job = one.job
    if job is None or (job.state in WAITING and not one.began):
        return f"in the queue: {job.reason}" if job and job.reason else "in the queue"
    heard = f"{len(one.answers)} of {one.expected.ranks} answered"
    where = f" on {', '.join(job.nodes)}" if job.nodes else ""
    return f"it runs{where}: {heard}"


def _take_away(one: Probe) -> list[Finding]:
    """Cancel the job where it is still there; what could not be done is told."""
    job = one.job or one.record.jobs[0]
    if job.is_over and not keeps_ended(one.record.spec.backend):
        return []
    record = replace(one.record, jobs=(job,))
    record, words = cancel.cancel_jobs(record, one.directory)
    if all(each.ended for each in record.jobs) or not words:
        return []
    return [warning("clean-up", words)]


# What is told in the end.


def _findings(one: Probe) -> list[Finding]:
    expected, job = one.expected, one.job
    found = look_at_logins(_logins_there(one), one.logins)
    told = list(one.answers.values())
    if len(told) < expected.ranks:
        found.append(_silence(one))
    else:
        words = f"{len(told)} of {expected.ranks} ranks answered, on {hosts(told)}"
        waited = one.began - one.submitted
        found.append(ok("probe job", f"{words}; the job waited {waited:.0f} s."))
    if len(told) == expected.ranks and len({a["host"] for a in told}) < expected.nodes:
        found.append(
            warning(
                "nodes",
                f"The job has {expected.nodes} nodes, and all ranks ran on {hosts(told)}.",
                "See launcher and job.nodes: other nodes would hold no worker.",
            )
        )
    found += judge(expected, one.answers)
    way_in = look_at_way_in(one.calls)
    if job is not None and way_in is not None:
        found.append(way_in)
    return found


def _silence(one: Probe) -> Finding:
    """Say what is known of a job of which not all ranks answered."""
    job = one.job or one.record.jobs[0]
    key = job.key
    names = (f"{key}.log", f"{job.mark}.{job.task}.out", f"{job.mark}.out")
    logs = [tail(one.directory.logs / name, LOG_LINES).strip() for name in names]
    log = next(filter(None, logs), "")
    heard, ranks = len(one.answers), one.expected.ranks
    number = f" {job.id}" if job.id else ""
    told = f"{heard} of {ranks} ranks answered" if heard else f"The job{number} did not answer"
    where = f" ({', '.join(job.nodes)})" if job.nodes else ""
    why = job.cause or job.reason if job.is_over else f"It was {job.state.value}."
    if log or heard:
        cure = head_job.last_words(one.directory, job) or "Its log may say more."
        said = ""
    else:
        cure = SHARED_DIRECTORY
        said = f"It wrote nothing, so its node may not see {one.directory.path.parent}."
    parts = (f"{told}{where}.", why, said)
    return failed("probe job", " ".join(filter(None, parts)), cure, log)


def _facts(one: Probe) -> dict[str, Any]:
    job = one.job or one.record.jobs[0]
    return {
        "id": job.id,
        "mark": _mark(one),
        "nodes": list(job.nodes),
        "state": job.state.value,
        "waited_seconds": round(one.began - one.submitted, 1) if one.began else None,
        "answers": list(one.answers.values()),
    }


def _mark(one: Probe) -> str:
    return one.record.jobs[0].mark
