"""Lines, table and JSON form of a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_gpucluster.benchmark import document_lines, read_report, table, write_report
from jupyter_gpucluster.benchmark.report import Run, device_result
from jupyter_gpucluster.benchmark.workloads import document_sum
from jupyter_gpucluster.core.errors import InvalidInput
from tests.benchmark.reports import DEEPOPS, LAPTOP, THETAGPU, a_report


def test_the_lines_are_those_of_the_documents() -> None:
    report = a_report(DEEPOPS, 1, {"gpu": 254.01085186})
    assert document_lines(report) == [
        "Using Distributed Dask",
        "Allocating and initializing arrays using GPU memory with CuPY",
        "Array size: 2.00 TB.  Computing parallel sum . . .",
        "Processing complete.",
        "Wall time create data + computation time: 254.01085186 seconds",
        "with gpus",
        "elapsed time: 253.510852",
    ]


def test_both_devices_have_their_lines_and_small_arrays_are_in_gigabytes() -> None:
    work = document_sum((12_000, 12_000), (2_000, 2_000), LAPTOP)
    report = a_report(work, 2, {"gpu": 0.75, "cpu": 9.5})
    lines = document_lines(report)
    assert lines.count("Array size: 1.15 GB.  Computing parallel sum . . .") == 2
    assert lines[7:] == [
        "Allocating and initializing arrays using CPU memory",
        "Array size: 1.15 GB.  Computing parallel sum . . .",
        "Processing complete.",
        "Wall time create data + computation time: 9.50000000 seconds",
        "without gpus",
        "elapsed time: 9.000000",
    ]


def test_the_fastest_run_counts_and_all_are_kept() -> None:
    runs = [Run(0.1, 3.0, 1.0), Run(0.2, 1.8, 1.0), Run(0.1, 2.5, 1.0)]
    work = document_sum((125_000, 1_000), (1_000, 1_000), LAPTOP)
    result = device_result("cpu", {"Xeon": 1}, work, runs)
    assert (result.create_seconds, result.compute_seconds, result.wall_seconds) == (0.2, 1.8, 2.0)
    assert result.rate == 0.5
    assert result.runs == tuple(runs)


def test_the_table_has_a_row_for_each_device_and_ends_with_the_warnings() -> None:
    report = a_report(THETAGPU, 8, {"gpu": 4.0, "cpu": 48.0}, warnings=("mind the gap",))
    assert table(report) == [
        "sum (documents): 100000x100000 in 400 chunks of 5000x5000, 80 GB",
        "8 workers, 8 threads, 1 host; cluster start 1.25 s",
        "device  create s  compute s  wall s   GB/s  runs  computed by",
        "gpu        0.500      3.500   4.000  20.00     1  8 x Tesla P4",
        "cpu        0.500     47.500  48.000   1.67     1  8 x Xeon",
        "GPUs are 12.0 times as fast as the same workers' CPUs",
        "value within 5 standard deviations of what is expected: +1.00, +1.00",
        "python 3.11.7, dask 2026.8.0",
        "warning: mind the gap",
    ]


def test_a_report_survives_its_json_form(tmp_path: Path) -> None:
    report = a_report(THETAGPU, 8, {"gpu": 4.0, "cpu": 48.0})
    write_report(report, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == report


def test_the_keys_of_the_json_form_stay(tmp_path: Path) -> None:
    write_report(a_report(THETAGPU, 8, {"gpu": 4.0}), tmp_path / "report.json")
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["schema"] == 1
    assert set(data) == {
        *("schema", "workload", "mode", "date", "host", "parameters", "nbytes", "pieces"),
        *("expected", "sigma", "workers", "threads", "hosts", "start_seconds", "results"),
        *("cpu_to_gpu", "versions", "warnings", "verdict", "protocol"),
    }
    assert set(data["results"][0]) == {
        *("device", "names", "runs", "create_seconds", "compute_seconds", "wall_seconds"),
        *("rate", "unit", "shares", "figures", "ceiling", "links"),
    }
    assert set(data["results"][0]["runs"][0]) == {
        *("create_seconds", "compute_seconds", "value", "shares", "figures")
    }


def test_keys_of_later_versions_of_the_same_schema_are_passed_over(tmp_path: Path) -> None:
    report = a_report(THETAGPU, 8, {"gpu": 4.0})
    path = tmp_path / "report.json"
    write_report(report, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"weather": "fine"}))
    assert read_report(path) == report


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is not a benchmark report"),
        ("[1]", "is not a benchmark report"),
        ("{}", "is not a benchmark report"),
        ('{"schema": 1, "workload": "sum"}', "is not a benchmark report"),
        ('{"schema": "1"}', "is not a benchmark report"),
        ('{"schema": 99}', "written by a newer version"),
    ],
)
def test_what_is_no_report_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message) as caught:
        read_report(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("nothing", [{"workers": 0}, {"results": []}])
def test_a_report_that_measured_nothing_is_refused(
    tmp_path: Path, nothing: dict[str, object]
) -> None:
    path = tmp_path / "report.json"
    write_report(a_report(DEEPOPS, 1, {"gpu": 20.0}), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | nothing))
    with pytest.raises(InvalidInput, match="is not a benchmark report"):
        read_report(path)


def test_files_that_cannot_be_read_or_written_are_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Cannot read .*: No such file"):
        read_report(tmp_path / "missing.json")
    with pytest.raises(InvalidInput, match=r"Cannot write .*: Is a directory"):
        write_report(a_report(THETAGPU, 8, {"gpu": 4.0}), tmp_path)
