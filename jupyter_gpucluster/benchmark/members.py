"""What the workloads beside the sum have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .workloads import Crew, require_near


@dataclass(frozen=True)
class Member:
    """What the workloads here share: a number of lanes, each a GPU or a thread of a CPU worker."""

    gpu: bool
    lanes: int

    name: ClassVar[str]
    mode: ClassVar[str] = "small"
    unit: ClassVar[str] = "GB/s"
    expected = 0.0
    sigma = 0.1
    nbytes = 0

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes two runs the same work."""
        return {}

    def check(self, value: float) -> None:
        """Raise `BenchmarkFailed` where the value cannot be right."""
        require_near(value, self.expected, self.sigma)

    def warnings(self, crew: Crew) -> list[str]:
        """Say where a figure is that of processors."""
        return [] if self.gpu else ["run on processors, smaller than on GPUs"]
