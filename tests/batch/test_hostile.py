"""Every dialect against values that want to be more than values, and answers that are none."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings

from jupyter_gpucluster.batch import BACKENDS
from tests.batch.hostile import (
    CODES,
    FIELDS,
    HOSTILE,
    OUTPUTS,
    answers_are_survived,
    directives_are_safe,
)

every = pytest.mark.parametrize("backend", sorted(set(BACKENDS) - {"local", "demo"}))


@every
@pytest.mark.parametrize("field", FIELDS)
@settings(deadline=None)
@given(text=HOSTILE)
@example(text="x\n#SBATCH --uid=root")
@example(text="x\n#BSUB -q root")
@example(text="a,b")
@example(text="a=b")
@example(text="a:b")
def test_no_value_becomes_another_directive(backend: str, field: str, text: str) -> None:
    directives_are_safe(BACKENDS[backend], field, text)


@every
@settings(deadline=None)
@given(text=OUTPUTS, code=CODES)
def test_no_output_raises_anything_but_our_errors(
    backend: str, text: str, code: int | None
) -> None:
    answers_are_survived(BACKENDS[backend], text, code)
