"""The starter: settles a request, makes a cluster's files and spawns its head."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..batch import find_backend, job_classes, on_this_machine
from ..batch.contradictions import directives_of
from ..batch.interactive import interactive_line
from ..batch.queue import submit_line
from ..batch.variables import surrounding_job
from ..core.cluster import ENDED, EXISTING, Phase, Record, Spec, Target, heads_mark, spec_of_group
from ..core.errors import (
    GpuClusterError,
    InvalidInput,
    LimitReached,
    StateError,
    UnsuitableEnvironment,
)
from ..core.job import Job, Submission
from ..core.summary import Event
from ..host.cluster_directory import ClusterDirectory, make_private, trouble, write_private
from ..host.detach import Survival, find_survival
from ..host.hardware import Machine, check_interface, look_around
from ..host.memory_shares import amount, check_memory
from ..host.processes import this_process
from ..node import node_list, start_worker
from ..profiles import LoadedProfile, Profile, apply_options, find_profile
from ..state import head_job
from ..state.paths import check_place
from ..state.reader import Memory, look_at
from ..state.view import ClusterView, Look, Script, gpu_hours_estimate
from .allocation import in_allocation, is_spread
from .attaching import attach
from .certificates import make_certificates
from .joining import Joined, held_from_inside, join
from .kube_context import in_this_place
from .naming import check_target, choose_name, new_id
from .own_pod import like_own_pod
from .python_environments import Environment, check_python, find_kernel, has_ucx, require_ucx
from .script.job import HOST_READER, MARK, environment_script, group_scripts, render
from .script.worker_command import WORKER_STARTER
from .spawning import head_command, spawn
from .spec import default_workers, make_spec, maximum_workers, memory_here, uses_gpus

DAY = 86400.0
CERTIFICATE_SECONDS = 365 * DAY
"""For clusters without a maximum lifetime: distributed cannot renew a certificate in use."""
IN_A_JOB = Survival(True, "Yes: its head runs in a job of the queueing system, and ends with it.")


@dataclass(frozen=True)
class Request:
    """What a user asks for."""

    profile: str
    name: str | None
    target: Target | None
    options: dict[str, Any]
    python: str
    kernel: str
    request_id: str
    owned: bool = False
    """Whether the cluster ends with the calling process."""
    allocation: str = ""
    """Number of the user's batch job to put the workers into; empty = the one we are in, if any."""


@dataclass(frozen=True)
class Plan:
    """A request that has been found good, before anything is made."""

    loaded: LoadedProfile
    profile: Profile
    """The loaded one with the user's options in it."""
    target: Target
    machine: Machine
    python: str
    environment: str
    survival: Survival
    joined: Joined | None = None
    """The allocation that was named."""
    without_ucx: bool = False
    """Whether the profile's fallback is spoken in place of UCX."""


def start(root: Path, memory: Memory, request: Request) -> Look:
    """Settle, make, spawn; see `Clusters.start`."""
    plan = settle(request)
    refuse_unbuilt(plan.profile)
    check_network(plan.profile)
    check_place(root, "JUPYTER_DATA_DIR")
    check_place(Path(tempfile.gettempdir()), "TMPDIR")
    make_private(root.parent)
    make_private(root)
    with locked(root / ".lock"):
        views = memory.survey(root, ended=bool(request.request_id), troubles=[])
        known = find_request(root, views, request.request_id)
        if known is not None:
            return known
        live = [view for view in views if view.phase not in ENDED]
        name = choose_name(request.profile, request.name, live)
        check_limits(plan, live)
        directory = ClusterDirectory(root / new_id(root))
        scratch = None
        try:
            directory.create()
            if plan.profile.backend == EXISTING:
                spec = spec_of(plan, directory, Path(), request)
                attach(directory, plan.profile, spec, name, request.request_id)
                return look_at(directory)
            if has_head_here(plan.profile):
                scratch = make_scratch(directory.id)
                record = make(directory, scratch, plan, name, request)
                job = plan.joined.variables if plan.joined is not None else None
                spawn(directory, scratch, record, plan.survival.prefix, job)
            else:
                # The scratch directory is made where the job runs.
                record = make(directory, Path(), plan, name, request)
        except BaseException:
            directory.remove()
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            raise
    if scratch is not None:
        return Look(directory, record, None)
    # The lock is free again: a submit command may take a minute.
    return submit_head(directory, record)


def check_network(profile: Profile) -> None:
    """Refuse an interface that this host lacks, where the head is to listen on it."""
    own = profile.head.interface
    name = own or profile.network.interface
    alone = on_this_machine(profile.backend) and not is_spread(profile)
    if name and has_head_here(profile) and not alone and profile.backend != EXISTING:
        check_interface(name, "head.interface" if own else "network.interface")


def has_head_here(profile: Profile) -> bool:
    """Tell whether the head is a process of this machine, not one inside a job."""
    return profile.head.placement == "server" or on_this_machine(profile.backend)


def submit_head(directory: ClusterDirectory, record: Record) -> Look:
    """Submit the job of a head; a cluster whose job is refused leaves nothing behind."""
    try:
        head_job.submit(directory, record)
    except GpuClusterError:
        directory.remove()
        raise
    words = f"The head's job is asked for as {heads_mark(record.id)}"
    directory.append_event(Event(time.time(), "submit", words))
    return look_at(directory)


def refuse_unbuilt(profile: Profile) -> None:
    """Refuse what a profile says and this version cannot do; anything else would cost GPU-hours."""
    if on_this_machine(profile.backend):
        return
    for key, asked in (("network.ports", profile.network.ports is not None),):
        if asked:
            raise InvalidInput(
                f"The profile sets {key}, which this version cannot do yet.",
                hint="Its script can be shown (verb script); to start, leave the key out.",
                detail=key,
            )


def preview(root: Path, request: Request) -> Script:
    """Render what `start` would submit, without making anything."""
    plan = settle(request, here=False)
    if plan.profile.backend == EXISTING:
        raise InvalidInput(
            "Attaching to a scheduler submits nothing: there is no script.", detail="profile"
        )
    directory = ClusterDirectory(root / "<id>")
    scratch = Path(tempfile.gettempdir()) / "gpc-<id>"
    profile = plan.profile
    spec = spec_of(plan, directory, scratch, request)
    backend = find_backend(profile.backend)
    scripts = [("", plan.target.maximum, render(profile, spec, backend, directory))]
    if spec.in_job:
        head = render(profile, spec, backend, directory, head_command(spec, directory))
        rest = [("", plan.target.maximum - spec.worker.per_job, scripts[0][2])]
        scripts = [("", spec.worker.per_job, head), *(rest if rest[0][1] > 0 else [])]
    for group, script in group_scripts(profile, spec, backend, directory):
        scripts.append((group, profile.groups[group].count, script))
    texts, commands = [], []
    for number, (group, workers, script) in enumerate(scripts, start=0 if spec.in_job else 1):
        mark = f"gpc-<id>-{number}"
        texts.append(script.replace(MARK, mark))
        part = spec_of_group(spec, group)
        submission = Submission(
            mark,
            str(directory.jobs / f"{mark}.sh"),
            -(-workers // part.worker.per_job),
            gpus=part.job.gpus,
            text=texts[-1],
            workers=part.worker.per_job,
            arguments=part.job.submit_args,
        )
        commands.append(submit_line(backend, submission))
    hours = gpu_hours_estimate(spec, plan.target.maximum)
    interactive = ""
    if not on_this_machine(spec.backend):
        given = bool(profile.dask_config)
        lines = directives_of(backend, spec.job, "x", "/dev/null", as_given=given)
        interactive = interactive_line(profile.backend, lines, spec.job.submit_args)
    text, command = "\n".join(texts), "\n".join(commands)
    survival = plan.survival
    return Script(text, command, hours, survival.survives, survival.words, interactive)


def spec_of(plan: Plan, directory: ClusterDirectory, scratch: Path, request: Request) -> Spec:
    """Return what does not change during the life of a cluster in this directory."""
    return make_spec(
        plan.profile,
        name=plan.loaded.name,
        workers=plan.target.maximum,
        machine=plan.machine,
        python=plan.python,
        environment=plan.environment,
        directory=directory,
        scratch=scratch,
        options=request.options,
    )


def settle(request: Request, *, here: bool = True) -> Plan:
    """Find a request good, or say which part of it is not.

    Parameters
    ----------
    here
        Whether a start from here is meant, so that the profile's Python must be here.
    """
    loaded = find_profile(request.profile)
    profile = apply_options(loaded.profile, request.options)
    if profile.backend != EXISTING and find_backend(profile.backend).job_class:
        job_classes.begin()
    machine = look_around()
    joined = join(request.allocation, profile) if request.allocation else None
    environ = os.environ if joined is None else joined.environment()
    profile = in_this_place(in_allocation(profile, machine, environ))
    profile = like_own_pod(profile, draft=not here)
    asked = request.target
    target = asked or Target(*[default_workers(profile, machine)] * 2)
    check_target(target, least=1)
    ceiling = maximum_workers(profile, machine)
    if ceiling is not None and target.maximum > ceiling:
        unit = "GPUs" if uses_gpus(profile, machine) else "workers"
        raise LimitReached(
            f"{target.maximum} {unit} asked for; {loaded.name} allows {ceiling}.",
            hint=f"Ask for {ceiling} or fewer.",
            detail="target",
        )
    found = choose_python(request, profile, here=here)
    asked_for, profile = profile, speaking(profile, found)
    survival = find_survival(job=surrounding_job()) if has_head_here(profile) else IN_A_JOB
    if joined is not None:
        words = (
            f"{survival.words} It uses {joined.held.name} ({joined.held.nodes}), and ends with it."
        )
        survival = replace(survival, words=words)
    plan = Plan(
        loaded,
        profile,
        target,
        machine,
        found.python,
        found.name,
        survival,
        joined,
        without_ucx=profile is not asked_for,
    )
    refuse_memory(plan, request)
    return plan


def refuse_memory(plan: Plan, request: Request) -> None:
    """Refuse a local cluster that this machine's memory does not hold."""
    profile, memory = plan.profile, plan.machine.memory
    if memory_here(profile, plan.machine) is None:
        return
    for key, limit in (
        ("job.memory", profile.job.memory),
        ("workers.memory_limit", profile.workers.memory_limit),
    ):
        if isinstance(limit, int) and limit > memory:
            options = plan.loaded.profile.options
            named = [name for name in request.options if options[name].field == key]
            raise InvalidInput(
                f"{key} is {amount(limit)}: this machine has {amount(memory)} of memory.",
                hint=f"Set it to {amount(memory // plan.target.maximum)} or less, or leave it out:"
                " then the workers share the machine's memory.",
                detail=f"options.{named[0]}" if named else key,
            )
    spec = spec_of(plan, ClusterDirectory(Path("<id>")), Path(), request)
    automatic = profile.workers.memory_limit == "auto"
    check_memory(spec, plan.target.maximum, automatic=automatic)


def speaking(profile: Profile, found: Environment) -> Profile:
    """Return the profile with a protocol that its Python speaks, as far as that was asked."""
    network = profile.network
    other = network.fallback if network.protocol == "ucx" and found.suitable else None
    if other is None or has_ucx(found):
        return profile
    return profile.model_copy(update={"network": network.model_copy(update={"protocol": other})})


def choose_python(request: Request, profile: Profile, *, here: bool = True) -> Environment:
    """Return the environment of head and workers; unasked where its Python is of elsewhere."""
    from_profile = profile.environment.python
    if request.kernel and request.python:
        raise InvalidInput(
            "Both a kernel and a Python were chosen.", hint="Choose one of them.", detail="python"
        )
    chosen = request.kernel or request.python
    elsewhere = not here and not chosen and from_profile.startswith("/")
    if elsewhere and not os.path.exists(from_profile):  # noqa: PTH110  # never raises
        # Of another machine, whose script is looked at here.
        return Environment("", from_profile, from_profile, suitable=False)
    try:
        if request.kernel:
            found = find_kernel(request.kernel, strict=True)
        else:
            usual = sys.executable if from_profile == "kernel" else from_profile
            found = check_python(request.python or usual, strict=True)
        alone = profile.network.protocol == "ucx" and profile.network.fallback is None
        if alone and profile.backend != EXISTING:
            require_ucx(found)
        return found
    except UnsuitableEnvironment as error:
        error.detail = "kernel" if request.kernel else "python"
        raise


def check_limits(plan: Plan, live: Sequence[ClusterView]) -> None:
    """Refuse one cluster more than the profile allows."""
    most = plan.loaded.profile.limits.clusters
    running = [view.name for view in live if view.profile == plan.loaded.name]
    if most is not None and len(running) >= most:
        raise LimitReached(
            f"{plan.loaded.name} allows {most} clusters at a time; running: {', '.join(running)}.",
            hint="Stop one of them first.",
            detail="profile",
        )


def find_request(root: Path, views: Sequence[ClusterView], request_id: str) -> Look | None:
    """Return the cluster that an earlier try of the same request made."""
    if request_id:
        for view in views:
            directory = ClusterDirectory(root / view.id)
            with contextlib.suppress(GpuClusterError):
                record = directory.read_record()
                if record.request_id == request_id:
                    return Look(directory, record, directory.read_summary())
    return None


def make_scratch(id: str) -> Path:
    """Make a directory of this machine for what does not fit into the workers' memory."""
    try:
        return Path(tempfile.mkdtemp(prefix=f"gpc-{id}-"))
    except OSError as error:
        raise StateError(
            f"Cannot make a directory for temporary files: {error.strerror}.",
            hint="Free some space, or point TMPDIR at a directory that you can write.",
        ) from error


def make(
    directory: ClusterDirectory, scratch: Path, plan: Plan, name: str, request: Request
) -> Record:
    """Write all files that the head needs, the record last."""
    profile = plan.profile
    spec = spec_of(plan, directory, scratch, request)
    spec = replace(spec, survives=plan.survival.survives, survival=plan.survival.words)
    if spec.spread:
        held = held_from_inside() if plan.joined is None else plan.joined.held
        spec = replace(spec, allocation=held)
    with contextlib.suppress(OSError):  # it may have been deleted
        spec = replace(spec, started_in=os.getcwd())  # noqa: PTH109  # as text
    owner = this_process() if request.owned else None
    if owner is not None:
        words = f"It ends with the program that started it, process {owner.pid}."
        if spec.in_job:  # from another host nobody can tell whether a process lives
            words = "It ends when the program that started it closes it, or its head's job ends."
        spec = replace(spec, survives=False, survival=words)
    if spec.in_job:
        spec = replace(spec, scratch="")
    if spec.encrypted or spec.in_job:
        lifetime = spec.policy.max_lifetime
        seconds = CERTIFICATE_SECONDS if lifetime is None else lifetime + DAY
        make_certificates(directory.tls, cluster=directory.id, seconds=seconds)
    write_private(directory.path / "token", secrets.token_urlsafe(32).encode())
    text = render(profile, spec, find_backend(spec.backend), directory)
    write_private(directory.template(), text.encode())
    for group, script in group_scripts(profile, spec, find_backend(spec.backend), directory):
        write_private(directory.template(group), script.encode())
    write_private(directory.jobs / WORKER_STARTER, Path(start_worker.__file__).read_bytes())
    if profile.launcher.name != "none":
        write_private(directory.jobs / HOST_READER, Path(node_list.__file__).read_bytes())
    script = environment_script(profile, spec, directory)
    write_private(directory.environment(), script.encode())
    now = time.time()
    jobs: tuple[Job, ...] = ()
    if spec.in_job:
        mark = heads_mark(directory.id)
        text = render(
            profile, spec, find_backend(spec.backend), directory, head_command(spec, directory)
        )
        write_private(directory.jobs / f"{mark}.sh", text.encode())
        jobs = (Job(mark, 0, submitted=now),)
    record = Record(
        id=directory.id,
        name=name,
        spec=spec,
        target=plan.target,
        created=now,
        phase=Phase.PENDING if jobs else Phase.STARTING,
        phase_since=now,
        jobs=jobs,
        request_id=request.request_id,
        owner=owner,
    )
    directory.write_record(record)
    if plan.without_ucx:
        words = f"{spec.python} has no distributed-ucxx: {profile.network.protocol} in place of UCX"
        directory.append_event(Event(now, "start", words))
    return record


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one starter at a time choose names and count clusters."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise trouble(error, path) from error
    try:
        # Some shared file systems know no locks; then two starts in one second may share a name.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
