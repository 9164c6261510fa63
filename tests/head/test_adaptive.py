"""The number of jobs that the scheduler's work is worth, and the order in which they leave."""

from __future__ import annotations

from typing import Any, cast

import pytest
from distributed import Scheduler

from jupyter_gpucluster.core.cluster import Target
from jupyter_gpucluster.head.adaptive import LOOKS, Adaptation


class Work:
    """A scheduler that says how many workers its tasks are worth."""

    worth = 0

    def adaptive_target(self) -> int:
        return self.worth


@pytest.mark.parametrize(
    "worth, per_job, alive, jobs",
    [
        (0, 1, 0, 1),  # the minimum
        (9, 1, 1, 8),  # the maximum
        (6, 1, 6, 6),  # enough
        (5, 4, 1, 2),  # whole jobs
    ],
)
def test_growth_is_followed_at_once_within_the_bounds(
    worth: int, per_job: int, alive: int, jobs: int
) -> None:
    work = Work()
    work.worth = worth
    adaptation = Adaptation(cast(Any, work))
    assert adaptation.jobs_wanted(Target(1, 8), per_job, alive) == jobs


def test_jobs_leave_when_several_looks_in_a_row_find_too_many_and_not_more_than_that() -> None:
    work = Work()
    adaptation = Adaptation(cast(Scheduler, work))
    looks = [6, *[4] * (LOOKS - 1), 6, *[4] * LOOKS]
    found = []
    for work.worth in looks:
        found.append(adaptation.jobs_wanted(Target(1, 8), 1, 6))
    assert found == [6] * (len(looks) - 1) + [4]


def test_a_lower_maximum_holds_at_once() -> None:
    work = Work()
    assert Adaptation(cast(Scheduler, work)).jobs_wanted(Target(1, 2), 1, 6) == 2
