"""Cases that dialects share: recorded answers, and scripts of the documented examples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.slurm import ACCOUNTED, LISTED
from jupyter_gpucluster.core.job import CommandResult
from tests.batch.golden import example_of, golden, script_of
from tests.batch.recorded import Recording, meaning_of_listing, meaning_of_submission, recordings

COUNTS: dict[str, Callable[[Sequence[str]], int]] = {
    "slurm": lambda argv: 1,
    "pbs": lambda argv: 4 if "-J" in argv else 1,
    "sge": lambda argv: 4 if "-t" in argv else 1,
    "oar": lambda argv: 4 if "--array" in argv else 2 if "--array-param-file" in argv else 1,
    "kubernetes": lambda argv: 2,
}
"""Systems whose answers were recorded: Slurm 22.05, OpenPBS 23.06, Son of Grid Engine 8.1.9, OAR
2.5.9, and kubectl 1.20 and 1.35 with the tests' own API server.  Each with the number of jobs that
a submit command asked for."""
MOAB = """\
title: A Moab site
backend: moab
job:
  queue: batch
  account: gfdl_x
  gpus: 1
  cpus: 6
  memory: 16 GiB
  walltime: "01:00:00"
"""


class OurColumns(Recording):
    """A recorded listing of Slurm with those of its columns, in their order, for which we ask."""

    @property
    def result(self) -> CommandResult:
        whole = super().result
        wanted = LISTED if self.call == "status" else ACCOUNTED
        there = [word for word in whole.argv if "," in word]
        columns = [name.partition(":")[0] for name in there[-1].split(",")] if there else []
        if not set(wanted) <= set(columns):
            return whole
        rows = [line.split("|") for line in whole.stdout.splitlines()]
        kept = ["|".join(row[columns.index(name)] for name in wanted) for row in rows]
        return replace(whole, stdout="".join(f"{row}\n" for row in kept))


def listings() -> Iterator[Recording]:
    for system, call in itertools.product(COUNTS, ("status", "history")):
        kind = OurColumns if system == "slurm" else Recording
        yield from (kind(r.system, r.file, r.call, r.rows) for r in recordings(system, call))


def name_of(recording: Recording) -> str:
    return f"{recording.system}-{recording.file}"


@pytest.mark.parametrize("recording", [*listings()], ids=name_of)
def test_every_recorded_listing_is_read(recording: Recording) -> None:
    read, expected = meaning_of_listing(find_backend(recording.system), recording)
    assert read == expected


@pytest.mark.parametrize(
    "recording", [each for system in COUNTS for each in recordings(system, "submit")], ids=name_of
)
def test_every_recorded_submission_is_understood(recording: Recording) -> None:
    count = COUNTS[recording.system](recording.result.argv)
    backend = find_backend(recording.system)
    read, expected = meaning_of_submission(backend, recording, count)
    assert read == expected


@pytest.mark.parametrize(
    "system", ["slurm", "pbs", "moab", "lsf", "sge", "oar", "cobalt", "htcondor", "kubernetes"]
)
def test_the_example_of_the_page_makes_this_script(
    system: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "lsf.conf").write_text("LSF_UNIT_FOR_LIMITS=MB\n")
    monkeypatch.setenv("LSF_ENVDIR", str(home))
    example = MOAB if system == "moab" else example_of(system)
    script = script_of(example, home / "data")
    if system != "slurm":  # below their heads all scripts are alike
        lines = itertools.takewhile(lambda line: line.startswith("#"), script.splitlines())
        script = "".join(f"{line}\n" for line in lines)
    assert script == golden(f"{system}_example.sh", script)
