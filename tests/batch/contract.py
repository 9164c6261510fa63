"""The promises of every dialect, whatever its batch system."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import fields

import pytest

from jupyter_gpucluster.batch.base import Backend
from jupyter_gpucluster.batch.contradictions import keys_of, refuse_launcher, refuse_reserved
from jupyter_gpucluster.batch.variables import surrounding_job
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import (
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Submission,
)
from jupyter_gpucluster.host.detach import find_survival

TAG = "gpc-abc123-1"
OUTPUT = "/state/abc123/logs/x.out"
SUBMISSION = Submission(TAG, "/state/abc123/jobs/gpc-abc123-1.sh", 2)
NO_ANSWER = CommandResult(("command",), None, "", "no answer")
METHODS = sorted(
    name
    for name, value in vars(Backend).items()
    if inspect.isfunction(value) and not name.startswith("_")
)
CONVENIENCES = {
    "amounts", "array_of", "command_variables", "completed", "hurry_seconds", "image_option",
    "interactive_line", "job_words", "on_a_node", "on_this_machine", "parse_survey",
    "personal_files", "poll_seconds", "questions", "simulated", "submit_host", "survey",
    "unused_keys",
}  # fmt: skip
"""Members that most dialects leave to the class that they inherit."""
AMOUNTS = {
    "gpus": 8, "cpus": 32, "memory": 2**36, "walltime": 5400, "queue": "gpu", "account": "phys",
    "gpu_type": "a100",
}  # fmt: skip
WAITS = {
    "slurm": ("--wait", "-W", "--test-only"), "pbs": ("-I", "-W block=true"), "torque": ("-I",),
    "moab": ("-I",), "lsf": ("-K", "-Is"), "sge": ("-sync y",), "oar": ("-I", "--interactive"),
    "cobalt": ("-I", "--interactive"), "flux": ("--wait", "--watch"), "htcondor": (),
    "kubernetes": (), "demo": (), "local": (),
}  # fmt: skip
"""Options with which each submit command waits for its job, or for a user's typing."""
SYSTEMS_OF = {
    "srun": {"slurm", "local", "demo"}, "jsrun": {"lsf", "local", "demo"},
    "aprun": {"slurm", "pbs", "torque", "moab", "cobalt", "local", "demo"},
}  # fmt: skip
"""Launchers that start ranks on some systems only; the simulated site starts none."""
HOSTILE = ("x\n#SBATCH --uid=root", "x --uid=root", "-x", "x;id", "$(id)")
PROMISES: dict[str, Callable[[Backend], None]] = {}


def promise(check: Callable[[Backend], None]) -> Callable[[Backend], None]:
    """Add a promise by the name of its check."""
    PROMISES[check.__name__] = check
    return check


def broken(backend: Backend) -> set[str]:
    """Return the promises that a dialect breaks."""
    found = set()
    for name, check in PROMISES.items():
        try:
            check(backend)
        except (Exception, pytest.fail.Exception):
            found.add(name)
    return found


def refuses(backend: Backend, text: str) -> bool:
    """Return whether a directive is refused."""
    try:
        refuse_reserved(backend, text)
    except InvalidInput:
        return True
    return False


@promise
def states_all_that_a_promise_rests_on(backend: Backend) -> None:
    own = [each for each in type(backend).__mro__ if each not in Backend.__mro__]
    stated = {name for each in own for name in vars(each)}
    assert {*METHODS, *Backend.__annotations__} - CONVENIENCES <= stated | backend.lacks
    assert backend.lacks <= {*METHODS}
    empty = {name for name in METHODS if getattr(type(backend), name) is getattr(Backend, name)}
    assert empty - CONVENIENCES <= backend.lacks


@promise
def has_calls_with_the_arguments_of_the_contract(backend: Backend) -> None:
    for method in METHODS:
        expected = list(inspect.signature(getattr(Backend, method)).parameters)
        assert list(inspect.signature(getattr(type(backend), method)).parameters) == expected


@promise
def says_how_many_jobs_a_submission_may_hold(backend: Backend) -> None:
    assert backend.most_tasks >= 1
    assert backend.title


@promise
def builds_commands_as_lists_of_arguments(backend: Backend) -> None:
    commands = [
        backend.submit(SUBMISSION),
        backend.status("ann", ["1", "2"]),
        backend.cancel(["1", "2"]),
        backend.history(["1", "2"]) or ["none"],
        backend.look_up("1") or ["none"],
        backend.find([TAG, "gpc-abc123-2"]) or ["none"],
        backend.capacity() or ["none"],
    ]
    for command in commands:
        assert command
        assert all(type(argument) is str and argument for argument in command)


@promise
def protects_the_tag_from_directives(backend: Backend) -> None:
    if backend.syntax.prefix:
        assert refuses(backend, f"{backend.syntax.name} x")
        assert refuses(backend, f"{backend.syntax.name}=x")
        sent = [*backend.directives(JobShape(), TAG, OUTPUT), backend.stdin(SUBMISSION)]
        assert any(TAG in text for text in sent)
        assert all(refuses(backend, f"{option} 2") for option in backend.syntax.arrays)


@promise
def refuses_submissions_that_wait(backend: Backend) -> None:
    assert all(refuses(backend, text) for text in WAITS[backend.name])


@promise
def asks_for_amounts_or_refuses_or_names_them(backend: Backend) -> None:
    for key, value in AMOUNTS.items() if backend.syntax.prefix else ():
        # An amount may hang on another: a type on GPUs, a walltime on all resources.
        others = {"gpus": 1} if key == "gpu_type" else {}
        job = JobShape(**{**others, key: value})  # type: ignore[arg-type]  # values fit their keys
        plain = JobShape(**others)  # type: ignore[arg-type]
        try:
            lines = backend.directives(job, TAG, OUTPUT)
        except InvalidInput as error:
            if error.detail != f"job.{key}":
                raise
            continue
        asked = lines != backend.directives(plain, TAG, OUTPUT)
        assert asked is (key not in backend.unasked), key


@promise
def declares_the_keys_that_its_lines_set(backend: Backend) -> None:
    known = {field.name for field in fields(JobShape)}
    assert {key for keys in backend.syntax.keys.values() for key in keys} <= known
    for key, value in AMOUNTS.items() if backend.syntax.prefix else ():
        job = JobShape(**{"gpus": 1, key: value})  # type: ignore[arg-type]  # values fit their keys
        declared = any(key in keys for keys in backend.syntax.keys.values())
        with contextlib.suppress(InvalidInput):
            lines = backend.directives(job, TAG, OUTPUT)
            assert not declared or any(key in keys_of(backend, job, line) for line in lines)


@promise
def refuses_unsuitable_launchers(backend: Backend) -> None:
    for launcher in ("none", "srun", "mpirun", "mpiexec", "jsrun", "aprun", "ssh"):
        suits = backend.name in SYSTEMS_OF.get(launcher, {backend.name})
        assert suits or launcher not in backend.launchers
        if launcher in {*backend.launchers, "none"}:
            refuse_launcher(backend, launcher)
            continue
        with pytest.raises(InvalidInput):
            refuse_launcher(backend, launcher)


@promise
def knows_inside_a_job_what_ends_it(backend: Backend) -> None:
    if backend.on_this_machine:
        return
    inside = dict.fromkeys(backend.job_variables, "12")
    words = surrounding_job(inside)
    assert words == (backend.job_words or f"{backend.title} job {{}}").format("12")
    survival = find_survival(job=words)
    assert not survival.survives
    assert words in survival.words
    assert surrounding_job({}) == ""


@promise
def submits_the_script_that_is_shown(backend: Backend) -> None:
    lines = backend.directives(JobShape(cpus=2), TAG, OUTPUT)
    text = "\n".join(["#!/bin/bash", *lines, "exit 0", ""])
    sent = Submission(TAG, SUBMISSION.script, text=text)
    given = backend.stdin(sent)
    assert SUBMISSION.script in (*backend.submit(sent), given) or SUBMISSION.script in given or (
        given == text
    )  # fmt: skip


@promise
def takes_no_answer_for_no_refusal(backend: Backend) -> None:
    with pytest.raises(BackendUnavailable):
        backend.parse_submit(SUBMISSION, NO_ANSWER)


@promise
def tells_a_refusal_in_the_system_s_own_words(backend: Backend) -> None:
    refused = CommandResult(("command",), 1, "", "Invalid account: physics")
    with pytest.raises(BackendError) as caught:
        backend.parse_submit(SUBMISSION, refused)
    assert not isinstance(caught.value, BackendUnavailable)
    assert "Invalid account: physics" in f"{caught.value.message} {caught.value.detail}"


@promise
def takes_no_banner_for_an_id(backend: Backend) -> None:
    banner = CommandResult(("command",), 0, "*** Welcome! 42 nodes are down today. ***\n", "")
    with pytest.raises(BackendError):
        backend.parse_submit(SUBMISSION, banner)


@promise
def takes_a_failed_listing_for_no_answer(backend: Backend) -> None:
    for exit_code in (None, 1, 127, -9):
        with pytest.raises(BackendUnavailable):
            backend.parse_status(CommandResult(("command",), exit_code, "", "timed out"))


@promise
def takes_other_texts_for_no_listing(backend: Backend) -> None:
    page = "<html><body>502 Bad Gateway</body></html>"
    for text in ("*** Welcome! ***\n", page, "{}", "null") if not backend.on_this_machine else ():
        result = CommandResult(tuple(backend.status("ann", ["12"])), 0, text, "")
        with pytest.raises(BackendUnavailable):
            backend.parse_status(result)


@promise
def proves_an_end_only_by_the_system_s_own_words(backend: Backend) -> None:
    for code, out, err in ((None, "", "no answer"), (0, "", ""), (1, "", "timed out")):
        argv = tuple(backend.look_up("12") or ("command", "12"))
        assert not backend.denies(CommandResult(argv, code, out, err), "12")
    # Beside these only the exit file proves an end, which each job's script writes.
    assert backend.listing_proves in (True, False)
    assert ("parse_history" in backend.lacks) <= (backend.history(["1"]) is None)


@promise
def explains_any_state_in_one_line(backend: Backend) -> None:
    for state in JobState:
        for reason in ("", "Priority", "something that no system says {}"):
            for exit_code in (None, 0, 1, -9):
                status = JobStatus("1", state, TAG, reason=reason, exit_code=exit_code)
                assert "\n" not in backend.explain(status)


@promise
def lets_no_value_become_another_directive(backend: Backend) -> None:
    for field in ("queue", "account"):
        for hostile in HOSTILE:
            shape = JobShape(**{field: hostile})  # type: ignore[arg-type]  # both are texts
            with contextlib.suppress(InvalidInput):
                lines = backend.directives(shape, TAG, OUTPUT)
                assert not any(hostile in line for line in lines)


@promise
def writes_directives_as_lines_with_its_prefix(backend: Backend) -> None:
    shape = JobShape(gpus=8, cpus=32, memory=2**36, walltime=5400)
    lines = backend.directives(shape, TAG, OUTPUT)
    assert all("\n" not in line for line in lines)
    assert all(line.startswith(f"{backend.syntax.prefix} ") for line in lines)
