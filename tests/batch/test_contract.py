"""The contract of every backend of the registry."""

from __future__ import annotations

import contextlib
import inspect
import subprocess
import sys

import pytest

from jupyter_gpucluster.batch import BACKENDS, find_backend, on_this_machine
from jupyter_gpucluster.batch.base import Backend
from jupyter_gpucluster.batch.cobalt import Cobalt
from jupyter_gpucluster.batch.demo import Demo
from jupyter_gpucluster.batch.htcondor import HTCondor
from jupyter_gpucluster.batch.kubernetes.dialect import Kubernetes
from jupyter_gpucluster.batch.local import Local
from jupyter_gpucluster.batch.lsf import Lsf
from jupyter_gpucluster.batch.moab import Moab
from jupyter_gpucluster.batch.oar import Oar
from jupyter_gpucluster.batch.pbs import Pbs
from jupyter_gpucluster.batch.sge import Sge
from jupyter_gpucluster.batch.slurm import Slurm
from jupyter_gpucluster.batch.torque import Torque
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable, InvalidInput
from jupyter_gpucluster.core.job import (
    CommandResult,
    JobShape,
    JobState,
    JobStatus,
    Submission,
)

MARK = "gpc-abc123-1"
SUBMISSION = Submission(MARK, "/state/abc123/jobs/gpc-abc123-1.sh", 2)
METHODS = sorted(
    name
    for name, value in vars(Backend).items()
    if inspect.isfunction(value) and not name.startswith("_")
)
CONVENIENCES = {
    "amounts", "array_of", "completed", "image_option", "interactive_line", "on_a_node",
    "questions", "spellings", "unused_keys",
}  # fmt: skip
"""Members that most dialects leave to the class that they inherit."""
CHECKED: tuple[Backend, ...] = (
    Local(), Demo(), Slurm(), Oar(), Sge(), Moab(), Torque(), Pbs(), Cobalt(), HTCondor(), Lsf(),
    Kubernetes(),
)  # fmt: skip
"""The registry imports by name, so the type checker compares each class with the protocol here."""
NO_ANSWER = CommandResult(("command",), None, "", "no answer")

every = pytest.mark.parametrize(
    "backend", [BACKENDS[name] for name in sorted(BACKENDS)], ids=lambda backend: backend.name
)
elsewhere = pytest.mark.parametrize(
    "backend",
    [BACKENDS[name] for name in sorted(BACKENDS) if not on_this_machine(name)],
    ids=lambda backend: backend.name,
)
"""A process of ours never answers with garbage."""


def test_the_registry_goes_by_the_backends_own_names() -> None:
    assert {name: backend.name for name, backend in BACKENDS.items()} == {
        name: name for name in BACKENDS
    }
    assert len({backend.title for backend in BACKENDS.values()}) == len(BACKENDS)


def test_the_type_checker_sees_each_dialect_of_the_registry() -> None:
    assert {type(backend) for backend in CHECKED} == {type(one) for one in BACKENDS.values()}


def test_a_dialect_is_imported_when_it_is_first_used() -> None:
    code = (
        "import sys; from jupyter_gpucluster.batch import find_backend; find_backend('oar');"
        " print(*sorted(m.rpartition('.')[2] for m in sys.modules if '.batch.' in m))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "oar" in run.stdout.split()
    assert not {"cobalt", "moab", "sge"} & set(run.stdout.split())


def test_an_unknown_backend_is_told_with_those_there_are() -> None:
    with pytest.raises(InvalidInput) as caught:
        find_backend("slrum")
    assert "local" in caught.value.hint


@every
@pytest.mark.parametrize("method", METHODS)
def test_it_has_every_call_of_the_protocol_with_the_same_arguments(
    backend: Backend, method: str
) -> None:
    expected = list(inspect.signature(getattr(Backend, method)).parameters)
    assert list(inspect.signature(getattr(type(backend), method)).parameters) == expected


@every
def test_it_states_all_that_a_promise_rests_on(backend: Backend) -> None:
    own = [each for each in type(backend).__mro__ if each not in Backend.__mro__]
    stated = {name for each in own for name in vars(each)}
    assert {*METHODS, *Backend.__annotations__} - CONVENIENCES <= stated | backend.lacks


@every
def test_it_says_how_often_and_how_much_it_may_be_asked(backend: Backend) -> None:
    assert 0 < backend.hurry_seconds <= backend.poll_seconds
    assert backend.most_tasks >= 1
    assert backend.title


@every
def test_its_commands_are_lists_of_arguments(backend: Backend) -> None:
    commands = [
        backend.submit(SUBMISSION),
        backend.status("ann", ["1", "2"]),
        backend.cancel(["1", "2"]),
        backend.history(["1", "2"]) or ["none"],
        backend.find([MARK, "gpc-abc123-2"]) or ["none"],
        backend.capacity() or ["none"],
    ]
    for command in commands:
        assert command
        assert [type(argument) for argument in command] == [str] * len(command)
        assert all(command)


@every
def test_a_submission_without_an_answer_is_not_taken_for_a_refusal(backend: Backend) -> None:
    with pytest.raises(BackendUnavailable):
        backend.parse_submit(SUBMISSION, NO_ANSWER)


@every
def test_a_refusal_is_told_in_the_system_s_own_words(backend: Backend) -> None:
    refused = CommandResult(("command",), 1, "", "Invalid account: physics")
    with pytest.raises(BackendError) as caught:
        backend.parse_submit(SUBMISSION, refused)
    assert not isinstance(caught.value, BackendUnavailable)
    assert "Invalid account: physics" in f"{caught.value.message} {caught.value.detail}"


@every
def test_a_site_s_banner_does_not_become_an_id(backend: Backend) -> None:
    banner = CommandResult(("command",), 0, "*** Welcome! 42 nodes are down today. ***\n", "")
    with pytest.raises(BackendError):
        backend.parse_submit(SUBMISSION, banner)


@every
@pytest.mark.parametrize("exit_code", [None, 1, 127, -9])
def test_a_listing_that_fails_is_no_empty_listing(backend: Backend, exit_code: int | None) -> None:
    with pytest.raises(BackendUnavailable):
        backend.parse_status(CommandResult(("command",), exit_code, "", "timed out"))


@elsewhere
@pytest.mark.parametrize(
    "text", ["*** Welcome! ***\n", "<html><body>502 Bad Gateway</body></html>", "{}", "null"]
)
def test_what_is_no_listing_is_not_taken_for_an_empty_one(backend: Backend, text: str) -> None:
    with pytest.raises(BackendUnavailable):
        backend.parse_status(CommandResult(tuple(backend.status("ann", ["12"])), 0, text, ""))


@every
@pytest.mark.parametrize("state", list(JobState))
def test_it_explains_any_state_in_at_most_a_line(backend: Backend, state: JobState) -> None:
    for reason in ("", "Priority", "something nobody has heard of {}"):
        for exit_code in (None, 0, 1, -9):
            told = backend.explain(JobStatus("1", state, MARK, reason=reason, exit_code=exit_code))
            assert "\n" not in told


@every
@pytest.mark.parametrize("field", ["queue", "account"])
@pytest.mark.parametrize(
    "hostile", ["x\n#SBATCH --uid=root", "x --uid=root", "-x", "x;id", "$(id)"]
)
def test_a_value_of_a_directive_cannot_become_another_directive(
    backend: Backend, field: str, hostile: str
) -> None:
    shape = JobShape(**{field: hostile})  # type: ignore[arg-type]  # queue and account are texts
    with contextlib.suppress(InvalidInput):
        lines = backend.directives(shape, MARK, "/state/abc123/logs/x.out")
        assert not any(hostile in line for line in lines)


@every
def test_its_directives_are_lines(backend: Backend) -> None:
    shape = JobShape(gpus=8, cpus=32, memory=2**36, walltime=5400)
    lines = backend.directives(shape, MARK, "/state/abc123/logs/x.out")
    assert all(line and "\n" not in line for line in lines)
    assert all(line.startswith(f"{backend.syntax.prefix} ") for line in lines)
