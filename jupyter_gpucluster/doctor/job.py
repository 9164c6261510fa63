"""Submit a small job that looks around on its nodes, wait for its answers, and take it away."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from ..batch import cancel, keeps_ended
from ..batch.queue import run_aside
from ..core.errors import GpuClusterError, WaitTimeout
from ..core.job import WAITING
from ..core.lease import LEASE_SECONDS
from ..host.cluster_directory import tail
from ..host.log_diagnosis import first_error
from ..launch.plan import Plan
from ..node import probe
from ..state import head_job
from .findings import Finding, Report, collect, failed, ok, refused, warning
from .nodes import SHARED_DIRECTORY, judge
from .prepare import WALLTIME, Probe, job_files, prepare
from .reach import here_to_nodes, hosts, logins

ANSWER_SECONDS = WALLTIME + 60.0
"""After so long without an answer a job that runs is given up."""
LATE_SECONDS = 5.0
"""Delay after which a job's output may become visible on file systems that nodes share."""
LOOK_SECONDS = 0.5
MOST_LOGINS = 8
LOG_LINES = 8


def probe_by_job(
    root: Path, plan: Plan, report: Report, *, wait: float, note: Callable[[str], None]
) -> Report:
    """Add to a report what a job finds on its nodes; see `examine_profile`."""
    with job_files(root) as directory, closing(probe.Listener(token_hex(16))) as listener:
        try:
            one = prepare(directory, plan, listener)
            _submit(one, note)
        except GpuClusterError as error:
            refusal = refused(error).named("probe job")
            return replace(report, findings=(*report.findings, refusal))
        late: WaitTimeout | None = None
        try:
            note(f"submitted a job of {WALLTIME // 60} min at most as {one.job.mark}")
            _watch(one, wait, note)
        except WaitTimeout as error:
            late = error
        except BaseException:
            _note_leftover(one, note)
            raise
        left = collect({"clean-up": _take_away(one)})
        findings = (*report.findings, *([] if late else _findings(one)), *left)
        return replace(report, findings=findings, job=_facts(one), late=late)


def _submit(one: Probe, note: Callable[[str], None]) -> None:
    one.submitted = time.monotonic()
    try:
        head_job.submit(one.directory, one.record)
    except KeyboardInterrupt:
        _note_leftover(one, note)
        raise


def _note_leftover(one: Probe, note: Callable[[str], None]) -> None:
    """Take the job away where no report follows."""
    if finding := _take_away(one):
        note(finding.found)


# While it waits and runs.


def _watch(one: Probe, wait: float, note: Callable[[str], None]) -> None:
    """Wait until all ranks have answered, or none will any more.

    Raises
    ------
    WaitTimeout
        The job did not start in time.
    """
    noted, renewed, over = "", time.monotonic(), 0.0
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
        if words != noted:
            note(words)
            noted = words
        late = not one.began and now - one.submitted > wait
        if late and _still_waits(one):
            raise WaitTimeout(
                f"The probe job did not start within {wait:.0f} s and was cancelled."
                f" {one.job.reason or 'The batch system gives no reason.'}",
                hint="Wait longer with --wait SECONDS, or try when the queue is shorter.",
            )
        time.sleep(LOOK_SECONDS)


def _still_waits(one: Probe) -> bool:
    """Ask once more, since what was last heard of the job may be old."""
    one.job = run_aside(head_job.ask(one.directory, one.record, one.job))
    return one.job.state in WAITING


def _listen_to(one: Probe, now: float) -> None:
    """Read what the ranks have written, and call those that listen."""
    here = one.directory.path
    hello = probe.answers(here, ".hello")
    if not one.began and (hello or one.job.state not in WAITING):
        one.began = now
    if one.expected.in_job:
        for name, rank in hello.items():
            if rank["host"] not in one.calls:
                secret = one.listener.secret
                one.calls[rank["host"]] = {
                    address: probe.call(address, rank["port"], secret, name)["trouble"]
                    for address in rank["interfaces"].values()
                    if not address.startswith("127.") or address == rank["usual"]
                }
    if one.logins is None and (there := _logins_there(one)) is not None:
        one.logins = probe.log_in([*one.ssh], there["hosts"][:MOST_LOGINS])
    one.answers = probe.answers(here, ".json")


def _logins_there(one: Probe) -> dict[str, Any] | None:
    return probe.read(one.directory.path / "answers" / "ssh.json")


def _words(one: Probe) -> str:
    job = one.job
    if job.state in WAITING and not one.began:
        return f"in the queue: {job.reason}" if job.reason else "in the queue"
    heard = f"{len(one.answers)} of {one.expected.ranks} answered"
    where = f" on {', '.join(job.nodes)}" if job.nodes else ""
    return f"it runs{where}: {heard}"


def _take_away(one: Probe) -> Finding | None:
    """Cancel the job if it is still there; return a warning if that failed."""
    if one.job.is_over and not keeps_ended(one.record.spec.backend):
        return None
    record = replace(one.record, jobs=(one.job,))
    record, words = cancel.cancel_jobs(record, one.directory)
    if all(each.ended for each in record.jobs) or not words:
        return None
    return warning(words)


# Findings in the end.


def _findings(one: Probe) -> list[Finding]:
    ssh = _logins_there(one) or {"hosts": [], "troubles": {}}
    before = {
        "ssh in the job": logins(ssh["hosts"], ssh["troubles"], failed),
        "ssh from here": logins(ssh["hosts"], one.logins or {}, warning),
        "probe job": _heard(one),
        "nodes": _spread(one),
    }
    after = {"here to nodes": here_to_nodes(one.calls)}
    return [*collect(before), *judge(one.expected, one.answers), *collect(after)]


def _heard(one: Probe) -> Finding:
    """Return how many ranks answered."""
    heard, ranks = len(one.answers), one.expected.ranks
    if heard < ranks:
        return _silence(one)
    words = f"{heard} of {ranks} ranks answered, on {hosts(one.answers.values())}"
    return ok(f"{words}; the job waited {one.began - one.submitted:.0f} s.")


def _spread(one: Probe) -> Finding | None:
    """Return a warning if ranks that all answered ran on too few nodes."""
    ranks, expected = list(one.answers.values()), one.expected
    if len(ranks) < expected.ranks or len({a["host"] for a in ranks}) >= expected.nodes:
        return None
    fix = "Check launcher and job.nodes: the other nodes would have no worker."
    return warning(f"The job has {expected.nodes} nodes, and all ranks ran on {hosts(ranks)}.", fix)


def _silence(one: Probe) -> Finding:
    """Return the state and the log of a job of which not all ranks answered."""
    job = one.job
    names = (f"{job.key}.log", f"{job.mark}.{job.task}.out", f"{job.mark}.out")
    logs = [tail(one.directory.logs / name, LOG_LINES).strip() for name in names]
    log = next(filter(None, logs), "")
    heard, ranks = len(one.answers), one.expected.ranks
    number = f" {job.id}" if job.id else ""
    answered = f"{heard} of {ranks} ranks answered" if heard else f"The job{number} did not answer"
    where = f" ({', '.join(job.nodes)})" if job.nodes else ""
    why = job.cause or job.reason if job.is_over else f"It was {job.state.value}."
    if log or heard:
        fix = first_error(head_job.log_lines(one.directory, job)) or "Its log may say more."
        silence = ""
    else:
        fix = SHARED_DIRECTORY
        silence = f"It wrote nothing, so its node may not see {one.directory.path.parent}."
    parts = (f"{answered}{where}.", why, silence)
    return failed(" ".join(filter(None, parts)), fix, log)


def _facts(one: Probe) -> dict[str, Any]:
    job = one.job
    return {
        "id": job.id,
        "mark": job.mark,
        "nodes": list(job.nodes),
        "state": job.state.value,
        "waited_seconds": round(one.began - one.submitted, 1) if one.began else None,
        "answers": list(one.answers.values()),
    }
