"""Examine this machine, a profile, or a profile by a job: one report each."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.cluster import EXISTING
from ..core.errors import BackendError, GpuClusterError, InvalidInput, ProfileError
from ..launch.plan import Plan, make_plan
from ..launch.preview import preview
from ..launch.request import Request
from ..profiles import Profile, find_profile, load_profiles
from ..profiles.options import placeholders, targets
from . import batch_system, here
from .findings import Finding, Report, Result, collect, failed, ok, refused, warning
from .here import Kind, Subject

if TYPE_CHECKING:
    from ..clusters import Clusters

WAIT_SECONDS = 600.0
"""Default time that a probe job may wait in the queue."""

CHECKS: Mapping[str, tuple[Callable[[Subject], Finding | None], set[Kind]]] = {
    "batch systems": (batch_system.systems, {Kind.MACHINE}),
    "versions": (here.versions, {Kind.LOCAL, Kind.BATCH}),
    "imports here": (here.imports, {Kind.LOCAL, Kind.BATCH}),
    "commands": (batch_system.commands, {Kind.BATCH}),
    "batch system": (batch_system.answer, {Kind.BATCH}),
    "scheduler": (here.scheduler, {Kind.EXISTING}),
    "network here": (here.network, {Kind.MACHINE, Kind.LOCAL, Kind.BATCH}),
    "cluster directory": (here.cluster_directory, {Kind.MACHINE, Kind.LOCAL, Kind.BATCH}),
    "open files": (here.open_files, {Kind.MACHINE, Kind.LOCAL, Kind.BATCH}),
    "outlives Jupyter": (here.outlives_jupyter, {Kind.MACHINE, Kind.LOCAL, Kind.BATCH}),
    "ssh": (here.ssh, {Kind.LOCAL, Kind.BATCH}),
    "GPUs here": (here.gpus, {Kind.MACHINE, Kind.LOCAL}),
    "Dask settings": (here.dask_settings, {Kind.MACHINE, Kind.LOCAL, Kind.BATCH}),
}
"""Checks by name, and the kinds of subject that they are for."""


def examine_machine(clusters: Clusters) -> Report:
    """Return what can be found out about this machine without a profile."""
    loaded = load_profiles()
    usable = ok(f"{len(loaded.profiles)} can be used here.")
    files = here.profile_files(loaded.problems) or [usable]
    machine = Profile.model_validate({"title": "This machine", "backend": "local"})
    subject = Subject(clusters.root, Kind.MACHINE, machine)
    findings = [*(each.named("profiles") for each in files), *_run(subject)]
    return Report("this machine", socket.gethostname(), tuple(findings))


def examine_profile(
    clusters: Clusters,
    request: Request,
    *,
    job: bool = False,
    wait: float = WAIT_SECONDS,
    note: Callable[[str], None] = lambda text: None,
    agrees: Callable[[str], bool] = lambda text: True,
) -> Report:
    """Return the findings about a profile, here and, if requested, on its nodes by a job.

    Parameters
    ----------
    request
        The profile, its options and the Python.
    job
        Whether to submit a small job that looks around on the nodes.
    wait
        Seconds that the job may wait to start.
    note
        Called with each change of the job's state.
    agrees
        Called with what the job costs, before it is submitted; it returns False to forbid it.

    Raises
    ------
    ProfileNotFound
        There is none of that name.
    InvalidInput
        `job` is set, and the profile's workers run in no job.
    """
    report = Report(f"profile {request.profile}", socket.gethostname())
    try:
        loaded = find_profile(request.profile)
    except ProfileError as error:
        return replace(report, findings=(refused(error).named("profile"),))
    if job and here.kind_of(loaded.profile) is not Kind.BATCH:
        words = f"Profile {request.profile} submits no jobs to a batch system."
        hint = "Leave --job out: the checks of this machine need no job."
        raise InvalidInput(words, hint=hint, detail="job")
    if job:
        request = _smallest(clusters, request, loaded.profile)
    plan, script, startable = _planned(clusters, request)
    profile = loaded.profile if plan is None else plan.profile
    kind = here.kind_of(profile)
    findings = [
        startable,
        *(each.named("profile files") for each in here.profile_files(loaded.problems)),
        *_run(Subject(clusters.root, kind, profile, plan, tried=job)),
    ]
    asked = ("commands", "batch system")
    silent = any(each.check in asked and each.result is Result.FAILED for each in findings)
    if not job:
        checkable = kind is Kind.BATCH and script and not silent
        if checkable and (rehearsed := batch_system.submission(profile, script)):
            findings.append(rehearsed.named("submission"))
    elif plan is None or silent:
        skipped = failed("Not submitted, because of what failed above.")
        findings.append(skipped.named("probe job"))
    elif not agrees(_cost(plan)):
        findings.append(warning("Not submitted.").named("probe job"))
    else:
        from .job import probe_by_job

        report = replace(report, findings=tuple(findings))
        return probe_by_job(clusters.root, plan, report, wait=wait, note=note)
    return replace(report, findings=tuple(findings))


def _smallest(clusters: Clusters, request: Request, profile: Profile) -> Request:
    """Return the request with the fewest GPUs and the freest queue that the options allow."""
    options = dict(request.options)
    for name, option in profile.options.items():
        keys = targets(profile, name, option) or placeholders(profile).get(name, [])
        if ("job", "gpus") in keys and option.minimum is not None:
            options.setdefault(name, option.minimum)
        elif ("job", "queue") in keys and option.choices and name not in options:
            with contextlib.suppress(BackendError):
                partitions = clusters.capacity(request.profile)["partitions"]
                free = {each["name"]: each["free"] for each in partitions}
                options[name] = max(option.choices, key=lambda queue: free.get(queue, 0))
    return replace(request, options=options)


def _cost(plan: Plan) -> str:
    from .prepare import WALLTIME  # with the renderer of scripts

    job = plan.profile.job
    named = {"queue": job.queue, "account": job.account}
    where = [f"{what} {name}" for what, name in named.items() if name]
    gpus = "1 GPU" if job.gpus == 1 else f"{job.gpus} GPUs"
    return ", ".join([f"a job of {gpus} for {WALLTIME // 60} min at most", *where])


def _run(subject: Subject) -> list[Finding]:
    return collect(
        {name: check(subject) for name, (check, kinds) in CHECKS.items() if subject.kind in kinds}
    )


def _planned(clusters: Clusters, request: Request) -> tuple[Plan | None, str, Finding]:
    """Plan a start; return also the script that it would submit, and whether it can be made."""
    script = ""
    try:
        plan = make_plan(request)
    except GpuClusterError as error:
        check = "environment" if error.detail in ("python", "kernel") else "profile"
        return None, "", refused(error).named(check)
    try:
        if plan.profile.backend != EXISTING:
            script = preview(clusters.root, request, plan).text.replace("<id>", "doctor")
    except GpuClusterError as error:
        return None, "", refused(error).named("profile")
    files = ", ".join(plan.loaded.files) or "built in"
    startable = ok(f"It can be started ({plan.profile.backend}; {files}).")
    return plan, script, startable.named("profile")
