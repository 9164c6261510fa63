"""Every dialect keeps the contract; the example shows that each promise is checked."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpucluster.batch import BACKENDS, find_backend
from jupyter_gpucluster.batch.base import Backend
from jupyter_gpucluster.batch.cobalt import Cobalt
from jupyter_gpucluster.batch.demo import Demo
from jupyter_gpucluster.batch.htcondor import HTCondor
from jupyter_gpucluster.batch.kubernetes.dialect import Kubernetes
from jupyter_gpucluster.batch.local import Local
from jupyter_gpucluster.batch.lsf import Lsf
from jupyter_gpucluster.batch.oar import Oar
from jupyter_gpucluster.batch.pbs import Pbs
from jupyter_gpucluster.batch.sge import Sge
from jupyter_gpucluster.batch.slurm import Slurm
from jupyter_gpucluster.batch.torque import Moab, Torque
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import CommandResult, JobShape

from .contract import PROMISES, broken
from .example_dialect import Flux

CHECKED: tuple[Backend, ...] = (
    Local(), Demo(), Slurm(), Oar(), Sge(), Moab(), Torque(), Pbs(), Cobalt(), HTCondor(), Lsf(),
    Kubernetes(), Flux(),
)  # fmt: skip
"""The registry imports by name, so the type checker compares each class with the protocol here."""


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the example be known, as if its package were installed."""
    monkeypatch.setitem(BACKENDS.copies, "example", Flux())


@pytest.mark.parametrize("check", PROMISES.values(), ids=PROMISES)
@pytest.mark.parametrize("backend", CHECKED, ids=lambda backend: backend.name)
def test_a_dialect_keeps(backend: Backend, check: Any) -> None:
    check(backend)


def loose_lines(self: Backend, job: JobShape, mark: str, output: str) -> list[str]:
    return [*Flux().directives(replace(job, queue=""), mark, output), f"#flux: -q {job.queue}"]


def any_id(self: Backend, submission: object, result: CommandResult) -> tuple[str, ...]:
    return ("1",)


BREAKS: dict[str, dict[str, Any]] = {
    "states_all_that_a_promise_rests_on": {"lacks": Flux.lacks - {"find"}},
    "has_calls_with_the_arguments_of_the_contract": {"cancel": lambda self, id: ["flux", id]},
    "says_how_many_jobs_a_submission_may_hold": {"most_tasks": 0},
    "builds_commands_as_lists_of_arguments": {"cancel": lambda self, ids: ["flux", ""]},
    "protects_the_tag_from_directives": {"syntax": replace(Flux.syntax, name="")},
    "refuses_submissions_that_wait": {"syntax": replace(Flux.syntax, waits=())},
    "asks_for_amounts_or_refuses_or_names_them": {"unasked": frozenset()},
    "declares_the_keys_that_its_lines_set": {
        "syntax": replace(Flux.syntax, keys={**Flux.syntax.keys, "--memory": ("memory",)})
    },
    "refuses_unsuitable_launchers": {"launchers": Flux.launchers | {"srun"}},
    "knows_inside_a_job_what_ends_it": {"job_variables": ("FLUX_OTHER",)},
    "submits_the_script_that_is_shown": {"submit": lambda self, submission: ["flux", "batch"]},
    "takes_no_answer_for_no_refusal": {"parse_submit": any_id},
    "tells_a_refusal_in_the_system_s_own_words": {"parse_submit": any_id},
    "takes_no_banner_for_an_id": {"parse_submit": any_id},
    "takes_a_failed_listing_for_no_answer": {"parse_status": lambda self, result: {}},
    "takes_other_texts_for_no_listing": {"parse_status": lambda self, result: {}},
    "proves_an_end_only_by_the_system_s_own_words": {"denies": lambda self, result, id: True},
    "explains_any_state_in_one_line": {"explain": lambda self, status: f"a\n{status.reason}"},
    "lets_no_value_become_another_directive": {"directives": loose_lines},
    "writes_directives_as_lines_with_its_prefix": {"syntax": replace(Flux.syntax, prefix="#f")},
}


def test_the_complete_example_keeps_all_promises() -> None:
    assert broken(Flux()) == set()
    assert BREAKS.keys() == PROMISES.keys()


@pytest.mark.parametrize("name", BREAKS)
def test_each_promise_that_a_dialect_breaks_is_named(name: str) -> None:
    worse: Any = type("Worse", (Flux,), BREAKS[name])
    assert name in broken(worse())


def test_the_registry_goes_by_the_backends_own_names() -> None:
    assert {name: backend.name for name, backend in BACKENDS.items()} == {
        name: name for name in BACKENDS
    }
    assert len({backend.title for backend in BACKENDS.values()}) == len(BACKENDS)
    assert {type(backend) for backend in CHECKED} == {
        Flux, *(type(one) for one in BACKENDS.values()),
    }  # fmt: skip


def test_a_dialect_is_imported_when_it_is_first_used() -> None:
    code = (
        "import sys; from jupyter_gpucluster.batch import find_backend; find_backend('oar');"
        " print(*sorted(m.rpartition('.')[2] for m in sys.modules if '.batch.' in m))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "oar" in run.stdout.split()
    assert not {"cobalt", "moab", "sge"} & set(run.stdout.split())


def test_an_unknown_backend_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInput) as caught:
        find_backend("slrum")
    assert "local" in caught.value.hint
