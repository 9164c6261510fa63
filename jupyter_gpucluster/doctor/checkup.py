"""Examine this machine, a profile, or a profile by a job: one report each."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.cluster import EXISTING
from ..core.errors import GpuClusterError, InvalidInput, ProfileError, StateError
from ..host.dask_settings import own_settings
from ..launch.allocation import is_spread
from ..launch.plan import Plan, make_plan, refuse_unbuilt
from ..launch.preview import preview
from ..launch.request import Request
from ..profiles import find_profile
from . import surroundings
from .findings import Finding, Report, Result, failed, ok, refused

if TYPE_CHECKING:
    from ..clusters import Clusters
    from ..profiles import Profile

WAIT_SECONDS = 600.0
"""For so long a probe job may wait in the queue, where nobody says otherwise."""


def examine_machine(clusters: Clusters) -> Report:
    """Return what can be told of this machine without a profile."""
    findings = [
        *surroundings.of_profiles(),
        surroundings.of_systems(),
        surroundings.of_gpus(),
        surroundings.of_network(None, batch=False),
        *surroundings.of_machine(clusters.root),
        *_settings(),
    ]
    return Report("this machine", socket.gethostname(), tuple(findings))


def examine_profile(
    clusters: Clusters,
    request: Request,
    *,
    job: bool = False,
    wait: float | None = WAIT_SECONDS,
    note: Callable[[str], None] = lambda text: None,
) -> Report:
    """Return what is found of a profile, here and, where a job is asked for, on its nodes.

    Parameters
    ----------
    request
        The profile, its options and the Python.
    job
        Whether to submit a small job that looks around on the nodes.
    wait
        Seconds that the job may wait to start; None = no limit.
    note
        Is told what goes on meanwhile.

    Raises
    ------
    ProfileNotFound
        There is none of that name.
    InvalidInput
        A job was asked for, and the profile's workers run in none.
    """
    host = socket.gethostname()
    subject = f"profile {request.profile}"
    try:
        loaded = find_profile(request.profile)
    except ProfileError as error:
        return Report(subject, host, (refused("profile", error),))
    profile = loaded.profile
    if job and not surroundings.is_batch(profile):
        raise InvalidInput(
            f"Profile {request.profile} submits no jobs to a queueing system.",
            hint="Leave --job out: what runs on this machine is looked at here.",
            detail="job",
        )
    plan, script, findings = _settled(clusters, request)
    if plan is not None:
        profile = plan.profile
    findings += surroundings.of_files(loaded.problems)
    findings += _surroundings(clusters, request, profile, plan, tried=job)
    asked = ("commands", "queueing system")
    silent = any(f.check in asked and f.result is Result.FAILED for f in findings)
    if surroundings.is_batch(profile) and script and not (job or silent):
        rehearsed = surroundings.of_submission(profile, script)
        findings += [rehearsed] if rehearsed else []
    report = Report(subject, host, tuple(findings))
    if not job:
        return report
    if plan is None or silent:
        skipped = failed("probe job", "Not submitted, because of what failed above.")
        return Report(subject, host, (*findings, skipped))
    from .job import probe_by_job

    return probe_by_job(clusters.root, plan, report, wait=wait, note=note)


def _settled(clusters: Clusters, request: Request) -> tuple[Plan | None, str, list[Finding]]:
    """Settle a request as a start does; return what a start would submit, too."""
    script = ""
    try:
        plan = make_plan(request)
    except GpuClusterError as error:
        check = "environment" if error.detail in ("python", "kernel") else "profile"
        return None, "", [refused(check, error)]
    try:
        refuse_unbuilt(plan.profile)
        if plan.profile.backend != EXISTING:
            script = preview(clusters.root, request).text.replace("<id>", "doctor")
    except GpuClusterError as error:
        return None, "", [refused("profile", error)]
    files = ", ".join(plan.loaded.files) or "built in"
    return plan, script, [ok("profile", f"It can be started ({plan.profile.backend}; {files}).")]


def _surroundings(
    clusters: Clusters, request: Request, profile: Profile, plan: Plan | None, *, tried: bool
) -> list[Finding]:
    """Look around here; what a job tries afterwards is not guessed at."""
    batch = surroundings.is_batch(profile)
    guess = batch and not tried
    live = 0
    with contextlib.suppress(StateError):  # which is told of the cluster directory
        live = sum(view.profile == request.profile for view in clusters.live())
    findings = [surroundings.of_limits(profile, live)]
    if plan is not None and profile.backend != EXISTING:
        findings += surroundings.of_environment(profile, plan.environment.python)
    if batch:
        findings += surroundings.of_queue(profile, clusters.root)
    if profile.backend == EXISTING:
        return [*findings, surroundings.of_existing(profile)]
    beside = profile.head.placement == "server"
    if (batch and beside) or is_spread(profile):  # else it listens elsewhere, or on loopback
        findings.append(surroundings.of_network(profile, batch=guess))
    workers = surroundings.most_workers(profile)
    findings += surroundings.of_machine(clusters.root, batch=guess, workers=workers)
    if batch and not beside:
        findings = [each for each in findings if each.check != "outlives Jupyter"]
    if profile.launcher.name == "ssh" and not tried:
        findings.append(surroundings.of_ssh())
    if not batch:
        findings.append(surroundings.of_gpus())
    return [*findings, *_settings()]


def _settings() -> list[Finding]:
    return [ok("Dask settings", words)] if (words := own_settings()) else []
