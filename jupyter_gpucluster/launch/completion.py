"""Complete a profile before a start, with the answers of its batch system's commands."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from ..batch import find_backend
from ..batch.base import Question
from ..batch.queue import ProcessRunner, run_aside
from ..batch.variables import inherited
from ..core.cluster import EXISTING
from ..core.job import CommandResult
from ..profiles import Profile

SECONDS = 10.0
REFUSED_SECONDS = 60.0
"""Time in which drafts do not repeat a lasting question that failed: each change checks them."""

_lasting: dict[tuple[str, ...], CommandResult] = {}
_refused: dict[tuple[str, ...], tuple[float, CommandResult]] = {}


def completed(
    profile: Profile, environ: Mapping[str, str] = os.environ, *, draft: bool = False
) -> Profile:
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
    questions = backend.questions(profile.job, environ)
    if not questions:
        return profile
    results = [_answer(question, environ, draft=draft) for question in questions]
    own, *others = backend.completed(
        [profile.job, *(group.job for group in profile.groups.values())],
        results,
        environ,
        given=[] if profile.environment.container is None else ["environment.container"],
        owned=profile.head.placement == "server",
    )
    groups = {
        name: group.model_copy(update={"job": group.job.model_copy(update=vars(job))})
        for (name, group), job in zip(profile.groups.items(), others, strict=True)
    }
    job = profile.job.model_copy(update=vars(own))
    return profile.model_copy(update={"job": job, "groups": groups})


def _answer(question: Question, environ: Mapping[str, str], *, draft: bool) -> CommandResult:
    """Run a command, or return an earlier answer that holds."""
    argv = question.argv
    if argv in _lasting:
        return _lasting[argv]
    when, refusal = _refused.get(argv, (float("-inf"), None))
    if draft and refusal is not None and time.monotonic() - when < REFUSED_SECONDS:
        return refusal
    result = run_aside(ProcessRunner(inherited(environ), seconds=SECONDS).run(argv))
    if question.lasting and result.exit_code == 0:
        _lasting[argv] = result
    elif question.lasting:
        _refused[argv] = (time.monotonic(), result)
    return result
