"""How fast the scheduler is: tasks a second, and the round trip of one task."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from .members import Member
from .sending import FromClient, Outcome
from .workloads import Crew, Device

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Latency(Member):
    """Tasks that do nothing, and round trips of one of them."""

    tasks: int
    trips: int = 30
    name: ClassVar[str] = "latency"
    unit: ClassVar[str] = "tasks/s"

    @classmethod
    def of(cls, crew: Crew, gpu: bool, lanes: int) -> Latency:
        """Take a second of work for the scheduler."""
        return cls(gpu, lanes, 2_000 if gpu else 400)

    @property
    def amount(self) -> float:
        """Number of tasks."""
        return float(self.tasks)

    @property
    def pieces(self) -> int:
        """Number of tasks and round trips."""
        return self.tasks + self.trips

    @property
    def expected(self) -> float:  # type: ignore[override]  # a field there, reckoned here
        """The sum of what the tasks return."""
        return self.tasks * (self.tasks - 1) / 2

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes two runs the same work."""
        return {"tasks": self.tasks, "round_trips": self.trips}

    def build(self, device: Device) -> FromClient:
        """Return the conversation."""
        return FromClient(self._talk)

    def _talk(
        self, client: Client, addresses: Sequence[str], show: Callable[[int], None]
    ) -> Outcome:
        from distributed import wait

        def same(number: int) -> int:
            return number

        began = time.perf_counter()
        futures = client.map(same, range(self.tasks), pure=False, workers=list(addresses))
        # An interrupted `gather` leaves a traceback for each future (distributed 2026.8.0).
        wait(futures)
        value = float(sum(client.gather(futures)))
        seconds = time.perf_counter() - began
        show(self.tasks)
        trips = []
        for number in range(self.trips):
            began = time.perf_counter()
            client.submit(same, number, pure=False, workers=list(addresses)).result()
            trips.append(time.perf_counter() - began)
        trips.sort()
        return Outcome(
            value, seconds=seconds, figures={"round_trip_ms": 1000 * trips[len(trips) // 2]}
        )
