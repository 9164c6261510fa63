"""Free GPUs of a profile's partitions, as far as its batch system reports them."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..batch import elsewhere, find_backend, is_simulated, on_this_machine
from ..batch.base import Backend, program_of
from ..batch.queue import ProcessRunner, for_user, run_aside
from ..core.cluster import EXISTING
from ..core.errors import BackendError, BackendUnavailable
from ..core.job import Capacity, CommandResult
from ..head.simulator import site as site_rules
from ..host.hardware import look_around
from ..profiles import Profile, find_profile

SECONDS = 10.0
"""A form waits no longer; what comes later is of no use to it."""
REMEMBERED_SECONDS = 60.0
"""An answer is good for so long: forms and lists ask again and again."""
NOT_FOUND = 127

_answers: dict[tuple[str, ...], tuple[float, list[Capacity] | BackendError]] = {}


def capacity_of(name: str, root: Path, held: int) -> dict[str, Any]:
    """Return free and total GPUs of a profile's place; see `Clusters.capacity`.

    Parameters
    ----------
    root
        The directory of cluster directories, where calls are counted.
    held
        GPUs of this machine that local clusters of this user hold.
    """
    profile = find_profile(name).profile
    if is_simulated(profile.backend):
        free, total = site_rules.capacity(site_rules.site_file(root))
        words = f"{free} of {total} simulated GPUs are free."
        return _shown([Capacity("simulated", free, total)], words)
    if on_this_machine(profile.backend):
        return _local(profile, held)
    if profile.backend == EXISTING:
        return _shown([], "The scheduler belongs to another user; no GPUs are requested.")
    backend = find_backend(profile.backend)
    if backend.capacity() is None:
        return _shown([], f"{backend.title} does not show the number of free GPUs.")
    there = elsewhere(profile.backend, profile.job)
    return _shown(found := ask(backend, root, there), _words(backend, profile, found))


def ask(backend: Backend, root: Path, variables: Mapping[str, str] | None = None) -> list[Capacity]:
    """Ask a batch system, at most once in a while.

    Parameters
    ----------
    root
        The directory of cluster directories, where calls are counted.
    variables
        By which its command finds another system than the usual one.

    Raises
    ------
    BackendUnavailable
        It did not answer in time.
    BackendError
        Its command is not on this host, or its answer cannot be read.
    """
    variables = variables or {}
    key = (backend.name, str(root), *itertools.chain(*variables.items()))
    when, answer = _answers.get(key, (float("-inf"), []))
    if time.monotonic() - when >= REMEMBERED_SECONDS:
        try:
            answer = backend.parse_capacity(_run(backend, root, variables))
        except BackendError as error:
            answer = error
        _answers[key] = (time.monotonic(), answer)
    if isinstance(answer, BackendError):
        raise answer
    return answer


def _run(backend: Backend, root: Path, variables: Mapping[str, str]) -> CommandResult:
    argv = backend.capacity() or []
    program = program_of(argv)
    there = {**os.environ, **variables}
    runner = ProcessRunner(there, seconds=SECONDS)
    result = run_aside(for_user(backend, runner, root, there).run(argv))
    if result.exit_code is None:
        raise BackendUnavailable(
            f"{backend.title} did not answer {program} within {SECONDS:.0f} s.",
            hint="Starting works without it; it only shows free GPUs.",
        )
    if result.exit_code == NOT_FOUND:
        raise BackendError(
            f"{program} cannot be run here, so free GPUs are unknown.",
            hint=f"Ask from a host of the site that has {backend.title}'s commands.",
            detail=result.stderr,
        )
    return result


def _local(profile: Profile, held: int) -> dict[str, Any]:
    machine = look_around()
    if not machine.gpus:
        return _shown([], f"CPU workers on {machine.cpus} cores of this machine.")
    free = max(0, len(machine.gpus) - held)
    found = [Capacity("this machine", free, len(machine.gpus))]
    return _shown(found, f"{free} of {len(machine.gpus)} GPUs of this machine are free.")


def _words(backend: Backend, profile: Profile, found: list[Capacity]) -> str:
    """Return the free GPUs where the profile's jobs go, else everywhere, as a sentence."""
    if not found:
        return f"{backend.title} lists no GPUs."
    wanted = [one for one in found if one.partition == profile.job.queue] or found
    return "; ".join(f"{c.partition}: {c.free} of {c.total} GPUs free" for c in wanted) + "."


def _shown(found: list[Capacity], words: str) -> dict[str, Any]:
    partitions = [
        {"name": one.partition, "free": one.free, "total": one.total, "unit": "GPUs"}
        for one in found
    ]
    return {"partitions": partitions, "words": words}
