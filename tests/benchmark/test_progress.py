"""The progress of a run in a line."""

from __future__ import annotations

from jupyter_gpucluster.benchmark.measure import Progress, progress_line


def test_a_line_shows_the_state_of_the_run_and_is_empty_after_it() -> None:
    begun = "gpu 1/3 [..............................] 0/40 chunks, 0 s"
    quarter = "gpu 1/3 [#######.......................] 10/40 chunks, 3 s, 10 s left"
    assert progress_line(Progress("gpu", 1, 3, done=0, total=40, seconds=0.1)) == begun
    assert progress_line(Progress("gpu", 1, 3, done=10, total=40, seconds=3.2)) == quarter
    assert progress_line(Progress("gpu", 1, 3, done=40, total=40, seconds=13)) == ""
