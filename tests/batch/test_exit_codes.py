"""Jobs whose shell speaks another language: their exit code and their log still tell the cause."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import BACKENDS
from jupyter_gpucluster.core.job import Job, JobState, JobStatus
from jupyter_gpucluster.head.reconcile.observe import Watch
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.script.launchers import ENGLISH
from jupyter_gpucluster.state.head_job import end_reason
from tests.head.world import Play, a_record, ready

LOG = "gpc-abc123-1_0 on n1\nlinha 3: nosuch: comando não encontrado\n"


@pytest.mark.parametrize("system", BACKENDS)
@pytest.mark.parametrize("code, words", [(127, "not found|not there"), (126, "cannot be executed")])
def test_each_system_knows_what_shells_mean_by_a_code(system: str, code: int, words: str) -> None:
    status = JobStatus("1", JobState.FAILED, "gpc-abc123-1", exit_code=code)
    said = BACKENDS[system].explain(status)
    assert str(code) in said
    assert any(each in said for each in words.split("|"))


def test_a_code_without_a_meaning_is_told_alone() -> None:
    status = JobStatus("1", JobState.FAILED, "gpc-abc123-1", exit_code=3)
    assert BACKENDS["slurm"].explain(status) == "It ended with exit code 3."


def test_where_no_cause_is_known_the_end_of_the_log_is_shown() -> None:
    play = ready()
    play.die("gpc-abc123-1_0", code=127)
    explain = BACKENDS["slurm"].explain
    play.step(explain=explain, log_end=lambda key: f"Its log ends: {key} | não encontrado")
    lost = play.record.jobs[0]
    assert lost.cause == (
        "It ended with exit code 127 (command not found)."
        " Its log ends: gpc-abc123-1_0 | não encontrado"
    )


def test_a_known_cause_needs_no_end_of_the_log() -> None:
    play = ready()
    play.log["gpc-abc123-1_0"] = "ImportError: no"
    play.die("gpc-abc123-1_0")
    play.step(log_end=lambda key: "Its log ends: chatter")
    assert play.record.jobs[0].cause.endswith("ImportError: no")
    play.die("gpc-abc123-1_1", code=-9)
    play.step(explain=lambda status: "Killed.", log_end=lambda key: "Its log ends: chatter")
    assert play.record.jobs[1].cause == "Killed."


def watch_of(logs: Path) -> Watch:
    watch = Watch.__new__(Watch)
    watch.logs = logs
    return watch


def test_the_end_of_a_log_is_its_last_three_lines_with_something_in_them(tmp_path: Path) -> None:
    (tmp_path / "gpc-abc123-1_0.log").write_text(f"one\ntwo\n{LOG}\n \n{'x' * 300}\x1b[0m\n")
    said = watch_of(tmp_path).log_end("gpc-abc123-1_0")
    assert said == (
        "Its log ends: gpc-abc123-1_0 on n1 | linha 3: nosuch: comando não encontrado"
        f" | {'x' * 200}"
    )
    assert watch_of(tmp_path).log_end("gpc-abc123-1_1") == ""


def test_the_end_of_a_head_s_job_tells_the_code_and_the_log(tmp_path: Path) -> None:
    directory = ClusterDirectory(tmp_path)
    directory.logs.mkdir()
    (directory.logs / "gpc-abc123-1_0.log").write_text(LOG)
    job = Job("gpc-abc123-1", 0, id="7", state=JobState.FAILED, exit_code=127, ended=1.0)
    said = end_reason(directory, a_record(), job)
    assert "Exit code 127 (command not found)." in said
    assert "linha 3: nosuch: comando não encontrado" in said
    cancelled = replace(job, state=JobState.CANCELLED, exit_code=None, cause="Cancelled by you.")
    assert "linha 3" not in end_reason(directory, a_record(), cancelled)


GERMAN = "de_DE.UTF-8"


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return variables under which bash speaks German here."""
    place = tmp_path_factory.mktemp("locales")
    made = subprocess.run(
        ["sh", "-c", f"localedef -i de_DE -f UTF-8 {shlex.quote(str(place / GERMAN))}"],
        capture_output=True,
        check=False,
    )
    found = {"PATH": os.environ["PATH"], "LOCPATH": str(place), "LANG": GERMAN}
    if made.returncode or "Kommando nicht gefunden" not in bash("nosuch", found)[1]:
        pytest.skip("needs root: Debian's locales, with bash's German messages")
    return found


def bash(script: str, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_job_s_shell_speaks_english_and_its_programs_the_user_s_language(
    german: dict[str, str],
) -> None:
    said = bash(f"{ENGLISH}\nnosuch\nsource /nowhere\nenv", german)[1]
    assert "nosuch: command not found" in said
    assert "/nowhere: No such file or directory" in said
    assert f"LANG={GERMAN}" in said
    assert "LC_" not in said


def test_a_german_shell_that_cannot_change_still_tells_code_and_line(
    german: dict[str, str], tmp_path: Path
) -> None:
    code, said = bash(f"{ENGLISH}\nnosuch", german | {"LC_ALL": GERMAN})
    (tmp_path / "gpc-abc123-1_0.log").write_text(said)
    watch, play = watch_of(tmp_path), Play()
    play.get_ready()
    play.die("gpc-abc123-1_0", code=code)
    play.step(explain=BACKENDS["pbs"].explain, log_hint=watch.first_error, log_end=watch.log_end)
    cause = play.record.jobs[0].cause
    assert "exit code 127 (command not found)" in cause
    assert "nosuch: Kommando nicht gefunden" in cause
