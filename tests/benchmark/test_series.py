"""Several runs by one command: scaling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupyter_gpucluster.benchmark import Options
from jupyter_gpucluster.benchmark.measure import halves, run_scaling, scaling_table, with_ceiling
from jupyter_gpucluster.benchmark.plots import prepare_plots, write_plots
from jupyter_gpucluster.core.errors import InvalidInput
from tests.benchmark.reports import DEEPOPS, a_report

if TYPE_CHECKING:
    from distributed import Client


def test_workers_are_halved_down_to_one() -> None:
    assert (halves(1), halves(2), halves(6), halves(8)) == ([], [1], [1, 2, 4], [1, 2, 4])


@pytest.mark.parametrize("mode", ["documents", "peak"])
def test_strong_scaling_does_the_same_work_on_fewer_workers(client: Client, mode: str) -> None:
    reports = run_scaling(client, Options((800, 800), mode=mode))
    assert [report.workers for report in reports] == [1, 2]
    assert len({report.nbytes for report in reports}) == 1
    assert {report.mode for report in reports} == {mode}
    assert scaling_table(reports)[0].split()[0] == "workers"
    assert len(scaling_table(reports)) == 3


def test_weak_scaling_does_as_much_for_each_worker(client: Client) -> None:
    reports = run_scaling(client, Options((800, 800), mode="peak"), weak=True)
    assert [report.nbytes / report.workers for report in reports] == [400 * 800 * 8] * 2
    copies = run_scaling(client, Options(workload="copy"), weak=True)
    assert [report.workers for report in copies] == [1, 2]


def test_only_the_sum_scales_strongly(client: Client) -> None:
    with pytest.raises(InvalidInput, match="Only the sum keeps its size"):
        run_scaling(client, Options(workload="copy"))


def test_the_ceiling_of_the_sum_is_that_of_the_copy_beside_it() -> None:
    peak = replace(a_report(DEEPOPS, 1, {"gpu": 2.0}), mode="peak")
    copy = replace(a_report(DEEPOPS, 1, {"gpu": 1.0}), workload="copy")
    assert with_ceiling(peak, copy).results[0].ceiling == pytest.approx(2000 / 1.5)
    on_cpu = a_report(DEEPOPS, 1, {"cpu": 2.0})
    assert with_ceiling(on_cpu, copy) == on_cpu


def test_plots_are_written_as_png_and_svg(tmp_path: Path) -> None:
    reports = [a_report(DEEPOPS, workers, {"gpu": 40 / workers}) for workers in (1, 2)]
    written = write_plots("scaling", reports, tmp_path / "plots")
    assert [path.name for path in written] == ["sum-scaling.png", "sum-scaling.svg"]
    assert all(path.stat().st_size for path in written)
    assert {p.stem for p in write_plots("sum", reports[:1], tmp_path)} == {"sum"}
    assert {p.stem for p in write_plots("check-up", reports, tmp_path)} == {"check-up"}


def test_a_folder_that_takes_no_plots_is_refused_before_the_run(tmp_path: Path) -> None:
    prepare_plots(tmp_path / "new" / "plots")
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "plots"]
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match=r"Cannot write plots to .*: Not a directory"):
        prepare_plots(tmp_path / "file" / "plots")
