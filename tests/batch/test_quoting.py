"""Texts that a directive may contain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpucluster.batch import BACKENDS
from jupyter_gpucluster.batch.quoting import directive_value, gpu_kind, hours, resource_name
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import JobShape


@pytest.mark.parametrize(
    "text",
    [
        "gpu",
        "gpu.q@node01,short.q",
        "workq@server.example.org",
        "phys_g",
        "phys:admin",
        "/home/ann/é/logs/@MARK@.out",
        "/home/ann/clusters/<id>/logs/gpc-<id>-1.out",
    ],
)
def test_usual_values_stand_as_they_are(text: str) -> None:
    assert directive_value(text, "job.queue") == text


@pytest.mark.parametrize(
    "text",
    ["", "-q", "a b", "a\tb", "a\nb", "a\u2028b", "a\x1bb", "a\u202eb"]
    + [f"a{character}b" for character in "\"'`\\$;|&#(){}[]*?!"],
)
def test_a_value_that_could_be_more_than_itself_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        directive_value(text, "job.queue")
    assert caught.value.detail == "job.queue"
    assert "job.directives" in caught.value.hint
    assert "\n" not in caught.value.message


@given(st.text())
def test_what_passes_is_one_printable_word(text: str) -> None:
    try:
        value = directive_value(text, "job.account")
    except InvalidInput:
        return
    assert value.split() == [text]
    assert value.isprintable()


@pytest.mark.parametrize("text", ["v100:mem=1tb", "a,b", "a=1", "1gpu", "", "a b", "-a", "a/b"])
def test_a_resource_cannot_bring_another_one_along(text: str) -> None:
    with pytest.raises(InvalidInput):
        resource_name(text, "job.gpu_type")


@pytest.mark.parametrize("text", ["7", "v100:mem=1tb", "a,b", "a=1", "", "a b", "-a", "a/b", "1 g"])
def test_a_kind_of_gpu_is_no_number_and_brings_nothing_along(text: str) -> None:
    with pytest.raises(InvalidInput):
        gpu_kind(text)


@pytest.mark.parametrize(
    "backend, line",
    [
        ("slurm", "#SBATCH --gpus-per-node=2080ti:2"),
        ("torque", "#PBS -l nodes=1:gpus=2:2080ti"),
        ("lsf", '#BSUB -gpu "num=2:gmodel=2080ti:j_exclusive=yes"'),
        ("sge", "#$ -l gpu_type=2080ti"),
        ("htcondor", '#CONDOR require_gpus = regexp("2080ti", DeviceName)'),
    ],
)
def test_a_kind_of_gpu_may_begin_with_a_digit(backend: str, line: str) -> None:
    shape = JobShape(gpus=2, gpu_type="2080ti")
    assert line in BACKENDS[backend].directives(shape, "m", "/o")


def test_a_model_of_oar_s_may_hold_blanks() -> None:
    lines = BACKENDS["oar"].directives(JobShape(gpus=1, gpu_type="Tesla V100-SXM2"), "m", "/o")
    assert "#OAR -p \"gpu_model='Tesla V100-SXM2'\"" in lines
    with pytest.raises(InvalidInput):
        BACKENDS["oar"].directives(JobShape(gpus=1, gpu_type="a' OR 'b'='b"), "m", "/o")


def test_a_resource_may_have_the_names_that_sites_use() -> None:
    for name in ("ngpus", "gpu_type", "TeslaV100-SXM2", "a100.80gb"):
        assert resource_name(name, "job.gpu_request") == name


def test_a_walltime_may_have_more_than_two_digits_of_hours() -> None:
    assert hours(1) == "00:00:01"
    assert hours(5430) == "01:30:30"
    assert hours(432_000) == "120:00:00"
