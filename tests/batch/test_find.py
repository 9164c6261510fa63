"""Submissions whose answers were lost are looked for by name, whatever the name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import BACKENDS, find_backend
from jupyter_gpucluster.core.job import CommandResult, JobState
from tests.commands import put_command

MARKS = ["gpc-abc123-1", "gpc-abc123-2"]
HOSTILE = "$(touch hacked); touch hacked"
JOB = '{"Jobs": {"12.server": {"Job_Name": "gpc-abc123-2", "job_state": "R"}}}'


def run(backend: str, marks: list[str], home: Path) -> CommandResult:
    argv = find_backend(backend).find(marks)
    assert argv is not None
    done = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=False)
    return CommandResult(tuple(argv), done.returncode, done.stdout, done.stderr)


def test_pbs_selects_by_name_and_describes_what_it_found(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = '[ "$3" != gpc-abc123-2 ] || echo 12.server'
    selected = put_command(home, monkeypatch, "qselect", found)
    described = put_command(home, monkeypatch, "qstat", f"echo '{JOB}'")
    jobs = find_backend("pbs").parse_history(run("pbs", MARKS, home))
    assert (jobs["12.server"].mark, jobs["12.server"].state) == (MARKS[1], JobState.RUNNING)
    assert selected.read_text().splitlines() == [f"-x -N {mark}" for mark in MARKS]
    assert described.read_text() == "-x -t -f -F json 12.server\n"


def test_pbs_describes_nothing_where_it_finds_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_command(home, monkeypatch, "qselect", ":")
    described = put_command(home, monkeypatch, "qstat", ":")
    assert run("pbs", MARKS, home).stdout == ""
    assert not described.exists()


@pytest.mark.parametrize("backend, command", [("pbs", "qselect"), ("sge", "qacct")])
def test_a_name_is_never_read_as_shell(
    backend: str, command: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = put_command(home, monkeypatch, command, ":")
    run(backend, [HOSTILE], home)
    assert HOSTILE in asked.read_text()
    assert not (home / "hacked").exists()


def test_every_system_that_accounts_finds_by_name() -> None:
    finding = {name for name, backend in BACKENDS.items() if backend.find(MARKS)}
    assert finding == {"slurm", "pbs", "sge", "oar", "htcondor", "moab"}
