"""Two reports side by side, with the published figures."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_gpucluster.benchmark import compare
from jupyter_gpucluster.benchmark.report import Report
from jupyter_gpucluster.core.errors import InvalidInput
from tests.benchmark.reports import DEEPOPS, THETAGPU, a_report

ON_GPUS = a_report(THETAGPU, 2, {"gpu": 8.0})


def test_two_gpus_against_one_give_the_published_speed_up_and_efficiency() -> None:
    one = a_report(DEEPOPS, 1, {"gpu": 254.01085186})
    two = a_report(DEEPOPS, 2, {"gpu": 128.67964649})
    assert compare(one, two) == [
        "1 worker earlier, 2 later",
        "device  earlier s  later s  speed-up  efficiency",
        "gpu       254.011  128.680     1.974      98.7 %",
    ]


def test_each_device_of_both_reports_is_compared() -> None:
    earlier = a_report(THETAGPU, 8, {"gpu": 3.932972, "cpu": 47.268787})
    later = a_report(THETAGPU, 16, {"gpu": 4.121156, "cpu": 23.829560})
    rows = [line.split() for line in compare(earlier, later)[2:]]
    assert [(row[0], row[3]) for row in rows] == [("gpu", "0.954"), ("cpu", "1.984")]


@pytest.mark.parametrize(
    "earlier, later, row, remark",
    [
        (
            a_report(THETAGPU, 8, {"cpu": 48.0}),
            a_report(THETAGPU, 2, {"gpu": 4.0}),
            ["cpu", "->", "gpu", "48.000", "4.000", "12.000", "-"],
            "different devices: Xeon; Tesla P4",
        ),
        (
            ON_GPUS,
            a_report(DEEPOPS, 2, {"gpu": 100.0}),
            ["gpu", "8.000", "100.000", "2.000", "200.0", "%"],
            "different sizes: the speed-up is that of rates, not of seconds",
        ),
        (
            dataclasses.replace(a_report(THETAGPU, 1, {"cpu": 8.0}), threads=2),
            a_report(THETAGPU, 2, {"cpu": 8.0}),
            ["cpu", "8.000", "8.000", "1.000", "50.0", "%"],
            "different threads for each worker: 2, 1; the efficiency does not allow for that",
        ),
        (
            dataclasses.replace(ON_GPUS, versions={"dask": "1", "numpy": "2"}),
            dataclasses.replace(ON_GPUS, versions={"dask": "2", "numpy": "2", "cupy": "3"}),
            ["gpu", "8.000", "8.000", "1.000", "100.0", "%"],
            "different versions of: cupy, dask",
        ),
    ],
)
def test_every_difference_beside_the_number_of_workers_is_a_remark(
    earlier: Report, later: Report, row: list[str], remark: str
) -> None:
    _, _, *rest = compare(earlier, later)
    assert [rest[0].split(), *rest[1:]] == [row, f"remark: {remark}"]


def test_other_workloads_are_not_compared() -> None:
    with pytest.raises(InvalidInput, match="sum and svd cannot be compared"):
        compare(ON_GPUS, dataclasses.replace(ON_GPUS, workload="svd"))
