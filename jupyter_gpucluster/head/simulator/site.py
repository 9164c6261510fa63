"""The simulated site: queues, limits, nodes and accidents of jobs that are real local processes.

All demo clusters of a user on one host share one site, kept in one locked file: what one of them
holds the others see as busy.  The rules are pure, and their clock can be pushed, so that nobody has
to wait for an hour to see a walltime end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...core.errors import UsageError
from ...core.serialize import from_json, to_json
from ...host.processes import start_time

NODES = ("demo01", "demo02", "demo03", "demo04")
GPUS_PER_NODE = 4
OTHERS = {"demo04": 2}
"""GPUs that other users hold for ever."""
FAILURE_SECONDS = 120.0
"""A node that failed is repaired after this long."""
KEPT = 300
"""Ended jobs of one cluster that are still listed."""
DIRECTIVE = "#DEMO --"


@dataclass(frozen=True)
class Queue:
    """Properties of one queue; times in seconds."""

    wait: float
    """A job waits at least this long."""
    walltime: int
    """The longest that a job may ask for; also what it gets that does not ask."""
    most_gpus: int
    """One user's at a time."""
    preempted_after: float | None = None
    """A job's first run ends so long after its start, and the job waits again."""


QUEUES = {
    "debug": Queue(wait=2, walltime=1800, most_gpus=8),
    "batch": Queue(wait=40, walltime=86400, most_gpus=14),
    "preempt": Queue(wait=3, walltime=86400, most_gpus=14, preempted_after=45),
}


class Refusal(UsageError):
    """Why the site does not take a job, in its own words."""


@dataclass(frozen=True)
class SiteJob:
    """One job; times are those of the site's clock."""

    mark: str
    number: int
    server: tuple[int, ...]
    """Process id and start time of the job server whose processes these are."""
    queue: str
    gpus: int
    nodes: int
    walltime: int
    submitted: float
    state: str = "pending"
    """`pending`, `running`, `ending` (its processes are being ended) or `over`."""
    reason: str = ""
    placed: tuple[str, ...] = ()
    """Its nodes."""
    started: float | None = None
    ended: float | None = None
    outcome: str = ""
    exit_code: int | None = None
    restarts: int = 0

    @property
    def id(self) -> str:
        """The job's name within the whole site."""
        return f"{self.mark}_{self.number}"


@dataclass(frozen=True)
class Site:
    """All that the site remembers."""

    pushed: float = 0.0
    """Seconds by which its clock is ahead."""
    down: Mapping[str, float] = field(default_factory=dict)
    """Nodes that failed, and when they are repaired."""
    jobs: tuple[SiteJob, ...] = ()

    def now(self) -> float:
        """Return the time on the site's clock."""
        return time.time() + self.pushed

    def find(self, id: str) -> SiteJob | None:
        """Return a job."""
        return next((job for job in self.jobs if job.id == id), None)


def site_file(root: Path) -> Path:
    """Return where the site of this host is kept, beside the directory of all clusters."""
    return root.parent / f"demo-site.{os.uname().nodename}.json"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[list[Site]]:
    """Lock the site and bring it up to date; what then stands in the list is written back."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        try:
            site = from_json(Site, json.loads(stream.read()))
        except (ValueError, TypeError, KeyError):
            site = Site()  # new, or written by half when its writer was killed
        current = [advance(without_the_dead(site), site.now())]
        yield current
        if current[0] != site:
            stream.seek(0)
            stream.truncate()
            json.dump(to_json(current[0]), stream)


def without_the_dead(site: Site) -> Site:
    """Forget the jobs of job servers that are gone: their processes went with them."""
    alive = {server: start_time(server[0]) == server[1] for server in {j.server for j in site.jobs}}
    return replace(site, jobs=tuple(job for job in site.jobs if alive[job.server]))


# The rules.


def requested(script: str) -> dict[str, str]:
    """Return the directives of a script."""
    lines = (line for line in script.splitlines() if line.startswith(DIRECTIVE))
    pairs = (line.removeprefix(DIRECTIVE).partition("=") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs}


def submit(site: Site, mark: str, count: int, script: str, server: tuple[int, ...]) -> Site:
    """Take an array of jobs, or raise `Refusal`."""
    asked = requested(script)
    unknown = asked.keys() - {"job-name", "output", "queue", "account", "gpus", "nodes", "walltime"}
    if unknown:
        raise Refusal(f"demo: unrecognized option '--{min(unknown)}'")
    name = asked.get("queue", "debug")
    if name not in QUEUES:
        raise Refusal(f"demo: invalid queue specified: {name} (there are: {', '.join(QUEUES)})")
    if asked.get("account", "").startswith("expired"):
        raise Refusal(f"demo: account {asked['account']} has no hours left")
    queue = QUEUES[name]
    try:
        gpus, nodes = int(asked.get("gpus", 0)), int(asked.get("nodes", 1))
        hours, minutes, seconds = map(int, asked.get("walltime", "0:0:0").split(":"))
    except ValueError as error:
        raise Refusal(f"demo: invalid request: {error}") from None
    walltime = 3600 * hours + 60 * minutes + seconds or queue.walltime
    if walltime > queue.walltime:
        most = f"{queue.walltime // 3600:02d}:{queue.walltime // 60 % 60:02d}:00"
        raise Refusal(
            f"demo: requested walltime {asked['walltime']} exceeds the limit {most} of queue {name}"
        )
    if nodes > len(NODES) or gpus > min(nodes * GPUS_PER_NODE, queue.most_gpus):
        raise Refusal(f"demo: no {nodes} nodes of queue {name} have {gpus} GPUs")
    jobs = tuple(
        SiteJob(mark, number, server, name, gpus, nodes, walltime, site.now())
        for number in range(count)
    )
    return replace(site, jobs=(*site.jobs, *jobs))


def advance(site: Site, now: float) -> Site:
    """Return the site as it is now: ended, preempted and started jobs, repaired nodes."""
    down = {node: until for node, until in site.down.items() if until > now}
    jobs = [_run_on(job, down, now) for job in site.jobs]
    for place, job in enumerate(jobs):
        if job.state == "pending":
            jobs[place] = _try_to_start(job, jobs, down, now)
    return replace(site, down=down, jobs=tuple(jobs))


def _run_on(job: SiteJob, down: Mapping[str, float], now: float) -> SiteJob:
    """Return a job after what time and nodes did to it."""
    if job.state != "running" or job.started is None:
        return job
    preempted_after = QUEUES[job.queue].preempted_after
    if any(node in down for node in job.placed):
        return replace(job, state="ending", outcome="node_fail")
    if now >= job.started + job.walltime:
        return replace(job, state="ending", outcome="timeout")
    if preempted_after and not job.restarts and now >= job.started + preempted_after:
        return replace(job, state="ending", outcome="preempted")
    return job


def _try_to_start(
    job: SiteJob, jobs: list[SiteJob], down: Mapping[str, float], now: float
) -> SiteJob:
    """Return a waiting job, started where its turn has come, else with the reason."""
    queue, waited = QUEUES[job.queue], now - job.submitted
    if waited < queue.wait:
        first = "preempted" if job.restarts else "priority"
        return replace(job, reason=first if waited < queue.wait * 0.6 else "resources")
    held = sum(j.gpus for j in jobs if j.queue == job.queue and j.state in ("running", "ending"))
    if held + job.gpus > queue.most_gpus:
        return replace(job, reason="limit")
    free = free_gpus(jobs)
    each = -(-job.gpus // job.nodes)
    fitting = [node for node in NODES if free[node] >= each]
    able = [node for node in fitting if node not in down]
    if len(able) < job.nodes:
        return replace(job, reason="resources" if len(fitting) < job.nodes else "down")
    placed = tuple(able[: job.nodes])
    return replace(job, state="running", reason="", placed=placed, started=now, ended=None)


def free_gpus(jobs: list[SiteJob] | tuple[SiteJob, ...]) -> Counter[str]:
    """Return the number of free GPUs, by node."""
    free = Counter({node: GPUS_PER_NODE - OTHERS.get(node, 0) for node in NODES})
    for job in jobs:
        if job.state in ("running", "ending"):
            for node in job.placed:
                free[node] -= -(-job.gpus // job.nodes)
    return free


def capacity(path: Path) -> tuple[int, int]:
    """Return how many GPUs of the site in a file are free, and how many it has."""
    site = Site()
    if path.exists():
        with opened(path) as current:
            site = current[0]
    free = free_gpus(site.jobs)
    usable = sum(free[node] for node in NODES if node not in site.down)
    return usable, len(NODES) * GPUS_PER_NODE


def cancel(site: Site, ids: list[str]) -> Site:
    """End jobs as their user asks; what runs is over when its processes are gone."""
    jobs = {job.id: job for job in site.jobs}
    for job in (jobs[id] for id in ids if id in jobs):
        if job.state == "pending":
            over = replace(job, state="over", outcome="cancelled", reason="", ended=site.now())
            jobs[job.id] = over
        elif job.state != "over":
            jobs[job.id] = replace(job, state="ending", outcome="cancelled")
    return replace(site, jobs=tuple(jobs.values()))


def finish(site: Site, id: str, exit_code: int | None) -> Site:
    """Note that the processes of a job are gone: it is over, or waits again where preempted."""
    job = site.find(id)
    if job is None or job.state == "over":
        return site
    now, outcome = site.now(), job.outcome or ("done" if exit_code == 0 else "failed")
    if outcome == "preempted":
        newer = replace(job, state="pending", reason=outcome, outcome="", placed=(), started=None)
        newer = replace(newer, submitted=now, restarts=job.restarts + 1)
    else:
        newer = replace(job, state="over", outcome=outcome, exit_code=exit_code, ended=now)
    return replace(site, jobs=tuple(newer if each is job else each for each in site.jobs))


def fail_node(site: Site, node: str, seconds: float = FAILURE_SECONDS) -> Site:
    """Let a node fail with all that runs on it."""
    return replace(site, down={**site.down, node: site.now() + seconds})


def forget(site: Site, server: tuple[int, ...], *, kept: int = 0) -> Site:
    """Drop a job server's jobs, or all but the last of those that are over."""
    ours = [job for job in site.jobs if job.server == server]
    over = [job for job in ours if job.state == "over"]
    gone = {job.id for job in (over[:-kept] if kept else ours)}
    return replace(site, jobs=tuple(job for job in site.jobs if job.id not in gone))
