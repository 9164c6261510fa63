"""Checks of the batch system from this machine: its commands, its answer, its view of a script."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ..batch import elsewhere, find_backend, installed, missing_programs, submit_command
from ..batch.base import program_of
from ..batch.queue import ProcessRunner, for_user, run_aside, user_name
from ..batch.variables import inherited
from ..core.errors import BackendError
from ..core.job import FINAL, CommandResult, Submission
from ..profiles import Profile, load_profiles, load_site
from .findings import Finding, failed, ok, refused, warning
from .here import Subject

ANSWER_SECONDS = 20.0


def without_profile() -> list[str]:
    """Return the titles of installed systems that `setup` knows and no profile uses."""
    if load_site().settings.setup == "off":
        return []
    used = {each.profile.backend for each in load_profiles().profiles.values()}
    return [each.title for each in installed() if each.survey("") and each.name not in used]


def systems(subject: Subject) -> Finding:
    """Return the batch systems whose commands are on this host."""
    if not (there := [each.title for each in installed()]):
        return ok("No batch system has its commands here; the profile `local` needs none.")
    words = f"Found the commands of {' and '.join(there)}."
    if without := without_profile():
        fix = "Write profiles: jupyter gpucluster setup"
        return warning(f"{words} No profile uses {' or '.join(without)}.", fix)
    return ok(words)


def commands(subject: Subject) -> Finding | None:
    """Look for the commands of the profile's system; None if all are here."""
    backend = find_backend(subject.profile.backend)
    if not (missing := missing_programs(backend)):
        return None
    fix = "Log in to a host that has them, or load their module or set PATH before Jupyter starts."
    return failed(f"{backend.title}'s {', '.join(missing)} cannot be found on this host.", fix)


def answer(subject: Subject) -> Finding | None:
    """Ask the batch system for this user's jobs, by the command that heads list them with."""
    profile = subject.profile
    if missing_programs(backend := find_backend(profile.backend)):
        return None
    argv = backend.status(user_name(), [])
    there = {**inherited(os.environ), **elsewhere(profile.backend, profile.job)}
    began = time.monotonic()
    runner = ProcessRunner(there, seconds=ANSWER_SECONDS)
    result = run_aside(for_user(backend, runner, subject.root, there).run(argv))
    seconds = time.monotonic() - began
    try:
        jobs = backend.parse_status(result)
    except BackendError as error:
        words = result.stderr.strip() or result.stdout.strip() or error.detail
        fix = error.hint or "Try again later; if it still does not answer, contact the site."
        return failed(error.message, fix, f"$ {' '.join(argv)}\n{words}")
    count = sum(job.state not in FINAL for job in jobs.values())
    took = f"{backend.title} answers {program_of(argv)} in {seconds:.1f} s"
    return ok(f"{took}; jobs of yours: {count}.")


def submission(profile: Profile, script: str) -> Finding | None:
    """Let the submit command check the script of a start; None if it cannot do so."""
    backend = find_backend(profile.backend)
    if not backend.rehearsal:
        return None
    with tempfile.TemporaryDirectory(prefix="gpc-doctor-") as place:
        file = Path(place, "job.sh")
        file.write_text(script)
        arguments = (*backend.rehearsal, *profile.job.submit_args)
        job = Submission("gpc-doctor-1", str(file), text=script, arguments=arguments)
        program, *rest = submit_command(backend, job)
        result = answer_of([program, *rest], stdin=backend.stdin(job))
    if result.exit_code == 0:
        lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
        words = f": {lines[-1].removeprefix(f'{program}: ')}" if lines else ""
        return ok(f"{backend.title} would accept the job{words}")
    try:
        backend.parse_submit(job, result)
    except BackendError as error:
        return refused(error)
    return None


def answer_of(argv: Sequence[str], stdin: str = "") -> CommandResult:
    """Run a command of a batch system, without the variables of a job that this may be in."""
    runner = ProcessRunner(inherited(os.environ), seconds=ANSWER_SECONDS)
    return run_aside(runner.run(argv, stdin))
