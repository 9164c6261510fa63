"""Two reports side by side, with the published figures."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_gpucluster.benchmark import compare
from jupyter_gpucluster.core.errors import InvalidInput
from tests.benchmark.reports import DEEPOPS, THETAGPU, a_report


def test_two_gpus_against_one_give_the_published_speed_up_and_efficiency() -> None:
    one = a_report(DEEPOPS, 1, {"gpu": 254.01085186})
    two = a_report(DEEPOPS, 2, {"gpu": 128.67964649})
    comparison = compare(one, two)
    (row,) = comparison.rows
    assert round(row.speed_up, 3) == 1.974
    assert row.efficiency is not None
    assert round(row.efficiency, 3) == 0.987
    assert comparison.remarks == ()
    assert comparison.table() == [
        "1 worker earlier, 2 later",
        "device  earlier s  later s  speed-up  efficiency",
        "gpu       254.011  128.680     1.974      98.7 %",
    ]


def test_each_device_of_both_reports_is_compared() -> None:
    earlier = a_report(THETAGPU, 8, {"gpu": 3.932972, "cpu": 47.268787})
    later = a_report(THETAGPU, 16, {"gpu": 4.121156, "cpu": 23.829560})
    rows = {row.later: row for row in compare(earlier, later).rows}
    assert round(rows["gpu"].speed_up, 2) == 0.95
    assert round(rows["cpu"].speed_up, 2) == 1.98


def test_other_devices_are_compared_without_an_efficiency() -> None:
    comparison = compare(a_report(THETAGPU, 8, {"cpu": 48.0}), a_report(THETAGPU, 2, {"gpu": 4.0}))
    (row,) = comparison.rows
    assert (row.earlier, row.later, round(row.speed_up, 6), row.efficiency) == (
        *("cpu", "gpu", 12.0),
        None,
    )
    assert comparison.table()[2].split() == ["cpu", "->", "gpu", "48.000", "4.000", "12.000", "-"]
    assert comparison.remarks == ("different devices: Xeon; Tesla P4",)


def test_other_sizes_are_compared_by_rate_and_remarked() -> None:
    comparison = compare(a_report(THETAGPU, 2, {"gpu": 8.0}), a_report(DEEPOPS, 2, {"gpu": 100.0}))
    assert round(comparison.rows[0].speed_up, 6) == 2.0
    assert "different sizes" in comparison.remarks[0]
    assert "remark: different sizes" in comparison.table()[-1]


def test_other_threads_per_worker_are_remarked() -> None:
    one = a_report(THETAGPU, 1, {"cpu": 8.0})
    two = a_report(THETAGPU, 2, {"cpu": 8.0})
    (remark,) = compare(dataclasses.replace(one, threads=2), two).remarks
    assert remark.startswith("different threads for each worker: 2, 1;")


def test_other_versions_are_remarked_by_name() -> None:
    earlier = a_report(THETAGPU, 2, {"gpu": 8.0}, versions={"dask": "1", "numpy": "2"})
    later = a_report(THETAGPU, 2, {"gpu": 8.0}, versions={"dask": "2", "numpy": "2", "cupy": "3"})
    assert compare(earlier, later).remarks == ("different versions of: cupy, dask",)


def test_other_workloads_are_not_compared() -> None:
    report = a_report(THETAGPU, 2, {"gpu": 8.0})
    with pytest.raises(InvalidInput, match="sum and svd cannot be compared"):
        compare(report, dataclasses.replace(report, workload="svd"))
