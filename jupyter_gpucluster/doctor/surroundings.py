"""Ask this machine what it is like: files, networks, commands, the chosen Python."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..batch import elsewhere, find_backend, on_this_machine, submit_command
from ..batch.base import Backend
from ..batch.queue import ProcessRunner, run_aside, user_name
from ..batch.status_cache import StatusCache
from ..batch.variables import inherited, surrounding_job
from ..core.cluster import EXISTING
from ..core.errors import BackendError, GpuClusterError
from ..core.job import FINAL, CommandResult, Submission
from ..host.detach import find_survival
from ..host.hardware import look_around
from ..host.private_files import check_private
from ..launch.interpreters import ask_python, shown
from ..launch.spec import maximum_workers, uses_gpus, workers_per_job
from ..node import probe
from ..state.external import read_address, read_scheduler_file
from ..state.paths import check_place
from . import here
from .findings import Finding, failed, ok, refused, warning

if TYPE_CHECKING:
    from ..profiles import Profile, ProfileProblem

ANSWER_SECONDS = 20.0
KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")


def of_machine(root: Path, *, batch: bool = False, workers: int = 0) -> list[Finding]:
    """Return what is found of this machine whatever the profile.

    Parameters
    ----------
    root
        The directory of cluster directories.
    batch
        Whether the workers run on other machines.
    workers
        How many a scheduler here may have.
    """
    return [
        of_root(root, batch=batch),
        here.look_at_open_files(probe.open_files(), workers),
        here.look_at_survival(find_survival(job=surrounding_job())),
    ]


def of_root(root: Path, *, batch: bool) -> Finding:
    """Look at the directory of cluster directories; nothing is made."""
    private = ""
    try:
        check_place(root, "JUPYTER_DATA_DIR")
        if root.exists() or root.is_symlink():
            check_private(root)
    except GpuClusterError as error:
        private = error.message
    except OSError as error:  # a folder above it that nobody else enters
        private = error.strerror or str(error)
    return here.look_at_directory(probe.directory(str(root)), private, batch=batch)


def of_network(profile: Profile | None, *, batch: bool) -> Finding:
    """Look at where a scheduler would listen; `batch` as in `of_machine`."""
    own = profile.head.interface if profile else None
    named = own or (profile.network.interface if profile else "") or ""
    key = "head.interface" if own else "network.interface"
    return here.look_at_network(probe.interfaces(), probe.usual_address(), named, key, batch=batch)


def is_batch(profile: Profile) -> bool:
    """Tell whether the profile's workers run in jobs of a queueing system."""
    return profile.backend != EXISTING and not on_this_machine(profile.backend)


def most_workers(profile: Profile) -> int:
    """Return how many workers a cluster of the profile may have, as far as it says."""
    machine = look_around()
    return maximum_workers(profile, machine) or workers_per_job(profile, machine)


def of_queue(profile: Profile, root: Path) -> list[Finding]:
    """Ask the queueing system for this user's jobs, by the command that heads list them with."""
    backend = find_backend(profile.backend)
    if finding := here.look_at_commands(backend.title, missing_commands(backend)):
        return [finding]
    if os.access(root, os.W_OK | os.X_OK):
        StatusCache(root, backend, user_name(), "doctor").take_room(always=True)
    argv = backend.status(user_name(), [])
    began = time.monotonic()
    result = answer_of(argv, _elsewhere(profile))
    seconds = time.monotonic() - began
    try:
        jobs = backend.parse_status(result)
    except BackendError as error:
        words = result.stderr.strip() or result.stdout.strip() or error.detail
        return [
            failed(
                "queueing system",
                error.message,
                error.hint or "Ask again later; where it stays silent, ask the site.",
                f"$ {' '.join(argv)}\n{words}",
            )
        ]
    count = sum(job.state not in FINAL for job in jobs.values())
    told = f"{backend.title} answers {_program(argv)} in {seconds:.1f} s; jobs of yours: {count}."
    return [ok("queueing system", told)]


def of_submission(profile: Profile, script: str) -> Finding | None:
    """Let the submit command say what it would do with a script; None where it has no such word.

    Parameters
    ----------
    script
        The text that a start would submit.
    """
    backend = find_backend(profile.backend)
    if not backend.rehearsal:
        return None
    with tempfile.TemporaryDirectory(prefix="gpc-doctor-") as place:
        file = Path(place, "job.sh")
        file.write_text(script)
        arguments = (*backend.rehearsal, *profile.job.submit_args)
        submission = Submission("gpc-doctor-1", str(file), text=script, arguments=arguments)
        program, *rest = submit_command(backend, submission)
        result = answer_of([program, *rest], stdin=backend.stdin(submission))
    if result.exit_code == 0:
        said = (result.stderr.strip() or result.stdout.strip()).splitlines()
        words = f": {said[-1].removeprefix(f'{program}: ')}" if said else ""
        return ok("submission", f"{backend.title} would take the job{words}")
    try:
        backend.parse_submit(submission, result)
    except BackendError as error:
        return refused("submission", error)
    return None


def answer_of(
    argv: Sequence[str], where: Mapping[str, str] | None = None, stdin: str = ""
) -> CommandResult:
    """Run a command of a queueing system's, without the variables of a job that this may be in."""
    variables = {**inherited(os.environ), **(where or {})}
    runner = ProcessRunner(variables, seconds=ANSWER_SECONDS)
    return run_aside(runner.run(argv, stdin))


def _elsewhere(profile: Profile) -> dict[str, str]:
    return elsewhere(profile.backend, profile.job)


def missing_commands(backend: Backend) -> list[str]:
    """Return the programs that submit, list and cancel, and that cannot be found."""
    return [name for name in programs_of(backend) if shutil.which(name) is None]


def programs_of(backend: Backend) -> list[str]:
    """Return the programs that submit, list and cancel."""
    asked = Submission("gpc-abc123-1", "/gpc-abc123-1.sh", text="#!/bin/sh\n")
    commands = (backend.submit(asked), backend.status("somebody", ["1"]), backend.cancel(["1"]))
    return list(dict.fromkeys(map(_program, commands)))


def _program(argv: Sequence[str]) -> str:
    """Return the program of a command; a fixed script is called as the one that it runs first."""
    return argv[3] if argv[0] == "sh" else argv[0]


def of_environment(profile: Profile, python: str) -> list[Finding]:
    """Look at the Python of head and workers, as it is on this machine."""
    versions, own = ask_python(python).versions, ask_python(sys.executable).versions
    modules = ["distributed"]
    if profile.environment.container is None and uses_gpus(profile, look_around()):
        modules.append("dask_cuda")
    facts = probe.first_import(python, modules)
    return [
        here.look_at_versions(shown(python), versions, own, shown(sys.executable)),
        here.look_at_imports(facts, shown(python)),
    ]


def of_ssh() -> Finding:
    """Look for what logs in to nodes without a password."""
    folder = Path.home() / ".ssh"
    keys = [name for name in KEYS if (folder / name).is_file()]
    return here.look_at_ssh(
        shutil.which("ssh") is not None, bool(os.environ.get("SSH_AUTH_SOCK")), keys
    )


def of_gpus() -> Finding:
    """Look at the GPUs of this machine."""
    machine = look_around()
    if machine.gpu_trouble:
        return failed("GPUs here", machine.gpu_trouble, "Without GPUs, workers use cores alone.")
    if not machine.gpus:
        return ok("GPUs here", f"None; workers of this machine use its {machine.cpus} cores.")
    return ok("GPUs here", f"{len(machine.gpus)}: {', '.join(machine.gpus)}.")


def of_existing(profile: Profile) -> Finding:
    """Call the scheduler that somebody else started."""
    existing = profile.existing
    try:
        file = Path(existing.scheduler_file).expanduser()
        address = existing.address or str(read_scheduler_file(file)["address"])
        _, host, port = read_address(address)
    except GpuClusterError as error:
        return refused("scheduler", error)
    try:
        with socket.create_connection((host, port), probe.CALL_SECONDS):
            return ok("scheduler", f"Somebody listens at {address}.")
    except OSError as error:
        return failed(
            "scheduler",
            f"{address} is not reached: {error.strerror or error}.",
            "See that the scheduler runs, and that a network leads there from this host.",
        )


def of_profiles() -> list[Finding]:
    """Look for profile files that cannot be read."""
    from ..profiles import load_profiles

    found = load_profiles()
    problems = of_files(found.problems, "profiles")
    return problems or [ok("profiles", f"{len(found.profiles)} can be used here.")]


def of_files(problems: Iterable[ProfileProblem], check: str = "profile files") -> list[Finding]:
    """Tell what is wrong with profile files."""
    return [
        (failed if problem.severity == "error" else warning)(
            check, str(problem), "Correct the file."
        )
        for problem in problems
    ]


def of_systems() -> Finding:
    """Say which queueing systems have their commands here."""
    from ..batch import BACKENDS

    there = [
        backend.title
        for backend in BACKENDS.values()
        if not on_this_machine(backend.name) and not missing_commands(backend)
    ]
    if not there:
        return ok("queueing systems", "None has its commands here; `local` needs none.")
    told = f"Commands by the names of those of {_listed(there)} are here."
    return ok("queueing systems", told)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def of_limits(profile: Profile, live: int) -> Finding:
    """Say what the profile allows, and whether one cluster more is within it."""
    limits = profile.limits
    named = (
        (limits.clusters, "clusters at a time"),
        (limits.workers, "workers a cluster"),
        (limits.gpu_hours, "GPU-hours a cluster"),
    )
    told = ", ".join(f"{most:g} {what}" for most, what in named if most is not None)
    if limits.clusters is not None and live >= limits.clusters:
        return warning(
            "limits",
            f"The profile allows {told}; {live} of yours run.",
            "Stop one of them before you start another.",
        )
    return ok("limits", f"The profile allows {told}." if told else "The profile sets none.")
