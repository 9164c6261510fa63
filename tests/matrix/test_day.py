"""Random days with faults; each seed is a day that can be lived again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .day import live
from .world import SYSTEMS, World

TURNS = 300
"""Of 30 s each; `benchmarks/soak.py` lives whole days."""


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_random_day_leaves_no_job_and_doubles_none(
    system: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(live(World(system, tmp_path, monkeypatch), seed, TURNS))
