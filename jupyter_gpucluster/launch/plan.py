"""Request -> plan: the profile with all that a start decides about it, before a file exists."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..batch import find_backend, job_classes, on_this_machine
from ..batch.base import Question
from ..batch.contradictions import refuse_launcher, unasked
from ..batch.queue import ProcessRunner, run_aside
from ..batch.variables import inherited, surrounding_job
from ..core.cluster import EXISTING, Spec, Target
from ..core.errors import InvalidInput, LimitReached, UnsuitableEnvironment
from ..core.job import CommandResult
from ..host.cluster_directory import ClusterDirectory
from ..host.detach import Survival, find_survival
from ..host.hardware import Machine, look_around
from ..host.memory_shares import amount, check_memory
from ..profiles import LoadedProfile, Profile, apply_options, find_profile
from .allocation import Joined, in_allocation, join
from .naming import check_target
from .python_environments import (
    Environment,
    check_python,
    find_kernel,
    has_ucx,
    require_suitable,
    require_ucx,
)
from .request import Request
from .sizes import Sizes, sizes_of, sparing
from .spec import make_spec

ANSWER_SECONDS = 10.0
REFUSED_SECONDS = 60.0
"""Time in which drafts do not repeat a lasting question that failed: each change checks them."""
_answers: dict[tuple[str, ...], tuple[float, CommandResult]] = {}
IN_A_JOB = Survival(True, "Yes: its scheduler runs in a batch job, and ends with it.")


@dataclass(frozen=True)
class Plan:
    """A request that can be carried out; nothing has been made yet."""

    request: Request
    loaded: LoadedProfile
    profile: Profile
    """The loaded one with the user's options, and all that its place decides."""
    sizes: Sizes
    head_here: bool
    """True if the head is a process of this machine, not one inside a job."""
    target: Target
    machine: Machine
    environment: Environment
    survival: Survival
    joined: Joined | None = None
    """The allocation that the request names."""


def make_plan(request: Request, *, here: bool = True, loaded: LoadedProfile | None = None) -> Plan:
    """Plan a start, or refuse the request.

    Parameters
    ----------
    here
        Whether a start from here is meant, so that the profile's Python must be here.
    loaded
        The profile, if it is on no search path yet.

    Raises
    ------
    InvalidInput
        Something in the request cannot be used; ``detail`` names the field.
    LimitReached
        It is for more workers than the profile or this machine allows.
    """
    loaded = loaded or find_profile(request.profile)
    profile = loaded.site.applied(apply_options(loaded.profile, request.options))
    if here:
        refuse_unbuilt(profile)
    if profile.backend != EXISTING:
        backend = find_backend(profile.backend)
        if not backend.on_this_machine:
            refuse_launcher(backend, profile.launcher.name)
        if backend.job_class:
            job_classes.begin()
    machine = look_around()
    joined = join(request.allocation, profile) if request.allocation else None
    environ = os.environ if joined is None else joined.environment()
    profile = completed(in_allocation(profile, machine, environ), draft=not here)
    sizes = sizes_of(profile, machine)
    profile = sparing(profile, sizes)
    target = request.target or Target(sizes.default, sizes.default)
    check_target(target, least=1)
    check_maximum(loaded.name, sizes, target)
    environment = choose_python(request, profile, here=here)
    profile, environment = with_fallback_protocol(profile, environment)
    head_here = profile.head.placement == "server" or on_this_machine(profile.backend)
    keeps = survival_of(joined, head_here=head_here)
    plan = Plan(
        request, loaded, profile, sizes, head_here, target, machine, environment, keeps, joined
    )
    if sizes.memory is not None:
        refuse_memory(plan)
    return plan


def survival_of(joined: Joined | None, *, head_here: bool) -> Survival:
    """Return whether and why a cluster keeps running when Jupyter stops."""
    survival = find_survival(job=surrounding_job()) if head_here else IN_A_JOB
    if joined is None:
        return survival
    held = joined.held
    words = f"{survival.words} It uses {held.name} ({held.nodes}), and ends with it."
    return replace(survival, words=words)


# The jobs, as their batch system's commands complete them.


def completed(profile: Profile, *, draft: bool = False) -> Profile:
    """Return the profile with what it leaves open of its jobs, as its dialect completes it.

    Parameters
    ----------
    draft
        Whether nothing is started by it, so that a refusal of some seconds ago will do.

    Raises
    ------
    InvalidInput
        The profile asks for what the system does not have.
    """
    if profile.backend == EXISTING:
        return profile
    backend = find_backend(profile.backend)
    questions = backend.questions(profile.job, os.environ)
    if not questions:
        return profile
    results = [_answer(question, draft=draft) for question in questions]
    own, *others = backend.completed(
        [profile.job, *(group.job for group in profile.groups.values())],
        results,
        os.environ,
        given=[] if profile.environment.container is None else ["environment.container"],
        owned=profile.head.placement == "server",
    )
    groups = {
        name: group.model_copy(update={"job": group.job.model_copy(update=vars(job))})
        for (name, group), job in zip(profile.groups.items(), others, strict=True)
    }
    job = profile.job.model_copy(update=vars(own))
    return profile.model_copy(update={"job": job, "groups": groups})


def _answer(question: Question, *, draft: bool) -> CommandResult:
    """Run a command, or return an earlier answer that holds."""
    when, known = _answers.get(question.argv, (0.0, None))
    recent = draft and time.monotonic() - when < REFUSED_SECONDS
    if known is not None and (known.exit_code == 0 or recent):
        return known
    result = run_aside(
        ProcessRunner(inherited(os.environ), seconds=ANSWER_SECONDS).run(question.argv)
    )
    if question.lasting:
        _answers[question.argv] = (time.monotonic(), result)
    return result


# The Python.


def choose_python(request: Request, profile: Profile, *, here: bool = True) -> Environment:
    """Return the environment of head and workers; it is not asked if it belongs elsewhere."""
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
            found = require_suitable(find_kernel(request.kernel))
        else:
            usual = sys.executable if from_profile == "kernel" else from_profile
            found = require_suitable(check_python(request.python or usual))
        alone = profile.network.protocol == "ucx" and profile.network.fallback is None
        if alone and profile.backend != EXISTING:
            require_ucx(found)
        return found
    except UnsuitableEnvironment as error:
        error.detail = "kernel" if request.kernel else "python"
        raise


def with_fallback_protocol(
    profile: Profile, environment: Environment
) -> tuple[Profile, Environment]:
    """Return the profile with the protocol that its Python has, and a remark if that is another."""
    network = profile.network
    other = network.fallback if network.protocol == "ucx" and environment.suitable else None
    if other is None or has_ucx(environment):
        return profile, environment
    words = f"{environment.python} has no distributed-ucxx, so {other} is used instead of UCX"
    network = network.model_copy(update={"protocol": other})
    problems = (*environment.problems, words)
    return profile.model_copy(update={"network": network}), replace(environment, problems=problems)


# Limits.


def check_maximum(name: str, sizes: Sizes, target: Target) -> None:
    """Refuse more workers than a profile of this name allows."""
    ceiling = sizes.maximum
    if ceiling is not None and target.maximum > ceiling:
        unit = "GPUs" if sizes.gpus else "workers"
        raise LimitReached(
            f"{target.maximum} {unit} requested; {name} allows {ceiling}.",
            hint=f"Ask for {ceiling} or fewer.",
            detail="target",
        )


def refuse_memory(plan: Plan) -> None:
    """Refuse a local cluster that this machine's memory does not hold."""
    profile, memory = plan.profile, plan.machine.memory
    for key, limit in (
        ("job.memory", profile.job.memory),
        ("workers.memory_limit", profile.workers.memory_limit),
    ):
        if isinstance(limit, int) and limit > memory:
            options = plan.loaded.profile.options
            named = [name for name in plan.request.options if options[name].field == key]
            raise InvalidInput(
                f"{key} is {amount(limit)}: this machine has {amount(memory)} of memory.",
                hint=f"Set it to {amount(memory // plan.target.maximum)} or less, or leave it out:"
                " then the workers share the machine's memory.",
                detail=f"options.{named[0]}" if named else key,
            )
    spec = make_spec(plan, ClusterDirectory(Path("<id>")), Path())
    automatic = profile.workers.memory_limit == "auto"
    check_memory(spec, plan.target.maximum, automatic=automatic)


def start_remarks(spec: Spec, plan: Plan) -> Iterator[str]:
    """Yield remarks on a start: its jobs and nodes, and what is not as the profile has it."""
    yield from plan.environment.problems
    here, each, most = spec.shared_memory is not None, spec.worker.per_job, plan.target.maximum
    jobs = -(-most // each)
    if each > 1 or spec.job.nodes > 1:
        nodes, unit = jobs * spec.job.nodes, "GPUs" if spec.job.gpus else "workers"
        layout = f"{jobs * each} {unit} = {jobs} job{'s' * (jobs > 1)} of"
        place = f", on {nodes} node{'s' * (nodes > 1)}" if not plan.joined else ""
        yield f"{layout} {each}{place}{f' ({most} requested)' if most % each else ''}."
    cores = spec.job.cpus or (plan.machine.cpus if here else None)
    workers = most if here else each
    if cores is not None and workers * spec.worker.threads > cores:
        threads = f"{workers} x {spec.worker.threads} = {workers * spec.worker.threads} threads"
        place = "this machine" if here else "each job"
        yield f"{threads} of workers share the {cores} cores of {place}."
    backend = find_backend(spec.backend)
    if not backend.on_this_machine and (keys := unasked(backend, spec.job)):
        yield f"{backend.title} has no directive for {', '.join(keys)}, so jobs do not request it"


def refuse_unbuilt(profile: Profile) -> None:
    """Refuse a key that this version cannot carry out; anything else would cost GPU-hours."""
    if profile.network.ports is not None and not on_this_machine(profile.backend):
        raise InvalidInput(
            "The profile sets network.ports, which this version does not support.",
            hint="To start, remove the key. The command script shows the script with it.",
            detail="network.ports",
        )
