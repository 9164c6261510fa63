"""Every dialect against values that want to be more than values, and answers that are none."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jupyter_gpucluster.batch import BACKENDS
from jupyter_gpucluster.batch.base import Backend
from jupyter_gpucluster.core.errors import BackendError, InvalidInput
from jupyter_gpucluster.core.job import CommandResult, JobShape, JobStatus, Submission

HOSTILE = st.text(min_size=1, max_size=30) | st.sampled_from(
    [
        "x\n#PBS -q root",
        "x\r#$ -q root",
        "x -l nodes=99",
        "-l",
        "$(id)",
        "`id`",
        "a;b",
        "a'b",
        'a"b',
        "x\u2028y",
        "a\x00b",
    ]
)
BEGINNINGS = st.sampled_from(
    ["", "JobID: 7\n", '{"RECORDS": [', "Job <", "[", "12.0 - ", '{"items": [', "OAR_JOB_ID="]
)
OUTPUTS = (
    st.text(max_size=400)
    | st.builds(str.__add__, BEGINNINGS, st.text())
    | st.sampled_from(
        [
            "{}",
            "[]",
            "null",
            '{"Jobs": []}',
            '{"Jobs": {"1.s": null, "2.s": {"job_state": "F", "Exit_status": "x"}}}',
            '{"1": {"state": "Error", "events": [1, null, {}]}, "x": {}}',
            '{"1": {"state": "Terminated", "exit_code": "NaN", "array_index": -4}}',
            "<a/>",
            "<job_info><job_list><JB_job_number>x</JB_job_number></job_list></job_info>",
            "<Data><Job><Job_Id>1.s</Job_Id><job_state>C</job_state></Job></Data>",
            '<Data><queue><job JobID="1" State="x" StartTime="now"/></queue></Data>',
            "=" * 62 + "\njobnumber 1\ntaskid 9\nfailed 37 : x\nexit_status x\n",
            "[" * 100_000,
            "{" * 100_000,
        ]
    )
)
CODES = st.sampled_from([None, 0, 1, 2, 9, 35, 153, 255])


FIELDS = ("mark", "output", "queue", "account", "gpu_type", "gpu_request")
HARMLESS = "Xharmless"


def directives_are_safe(backend: Backend, field: str, text: str) -> None:
    """A value stands where a harmless one would, and nowhere else, or is refused as a mistake."""
    refused = None
    lines: list[str] = []
    try:
        lines = directives_with(backend, field, text)
    except InvalidInput as error:
        refused = error
    if refused is not None:
        assert refused.hint
        return
    assert all(line.isprintable() for line in lines)
    if field == "gpu_request" and text == "none":
        return
    # Dialects put a task's number before an ending of this kind.
    harmless = f"{HARMLESS}.out" if field == "output" and text.endswith(".out") else HARMLESS
    try:
        expected = directives_with(backend, field, harmless)
    except InvalidInput:
        # One of a few words that the dialect knows, such as a way to ask for GPUs.
        assert re.fullmatch(r"[\w-]+", text, re.ASCII)
        return
    assert [unquoted(line) for line in lines] == [
        unquoted(line).replace(HARMLESS, text.removesuffix(harmless.removeprefix(HARMLESS)))
        for line in expected
    ]


def unquoted(line: str) -> str:
    """Return a line without the quotes that OAR's whole condition has if there are blanks in it."""
    return re.sub(r'^(#OAR -p )"(.*)"$', r"\1\2", line)


def directives_with(backend: Backend, field: str, text: str) -> list[str]:
    """Return the directives of a job one of whose values is this."""
    shape = JobShape(gpus=1)
    if field in ("mark", "output"):
        given = {"mark": "gpc-7f3a2b-1", "output": "/logs/x.out", field: text}
        return backend.directives(shape, given["mark"], given["output"])
    shape = replace(shape, **{field: text})  # type: ignore[arg-type]  # fields that hold text
    return backend.directives(shape, "gpc-7f3a2b-1", "/logs/x.out")


def answers_are_survived(backend: Backend, text: str, code: int | None) -> None:
    """Whatever a command prints, nothing but our own errors comes of it."""
    result = CommandResult(("command", "argument"), code, text, text)
    for parse in (backend.parse_status, backend.parse_history, backend.parse_capacity):
        with contextlib.suppress(BackendError):
            parsed = parse(result)
            for status in parsed.values() if isinstance(parsed, dict) else ():
                assert isinstance(status, JobStatus)
                assert "\n" not in backend.explain(status) or "\n" in status.reason
    with contextlib.suppress(BackendError):
        count = min(2, backend.most_tasks)
        ids = backend.parse_submit(Submission("gpc-7f3a2b-1", "/jobs/x.sh", count), result)
        assert len(set(ids)) == count


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
@example(text=".out")
def test_no_value_becomes_another_directive(backend: str, field: str, text: str) -> None:
    directives_are_safe(BACKENDS[backend], field, text)


@every
@settings(deadline=None)
@given(text=OUTPUTS, code=CODES)
def test_no_output_raises_anything_but_our_errors(
    backend: str, text: str, code: int | None
) -> None:
    answers_are_survived(BACKENDS[backend], text, code)
