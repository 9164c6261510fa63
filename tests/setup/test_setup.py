"""The command ``setup`` on recorded answers: facts, accounts, files, and what it decides."""

from __future__ import annotations

import io
import json
import re
import resource
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.cli import perform
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.core.site import GpuQueue, Site
from jupyter_gpucluster.node.probe import usual_address
from jupyter_gpucluster.profiles import read_profile
from jupyter_gpucluster.setup import decisions
from jupyter_gpucluster.setup.profile_text import template
from jupyter_gpucluster.setup.proposals import proposed_name
from tests.batch.recorded import CAPTURED
from tests.commands import put_command
from tests.setup.facts import TRUTH, answers, by_key, measure
from tests.setup.recorded_slurm import OTHER_USERS, accept_only, put_slurm

PAGE = Path(__file__).parents[2] / "docs" / "set-up-your-site.md"


class AnsweringTerminal(Terminal):
    """A terminal whose user types prepared answers."""

    answers: Sequence[str] = ()

    def ask(self, question: str) -> str | None:
        self.err.write(question)
        first, *rest = self.answers
        self.answers = rest
        return first


def types(*words: str, answers: Sequence[str] | None = None) -> tuple[int, str, str]:
    """Type a command; return its exit code, its output and what went beside it."""
    out, err = io.StringIO(), io.StringIO()
    terminal = Terminal(out=out, err=err)
    if answers is not None:
        terminal = AnsweringTerminal(out=out, err=err)
        terminal.answers = answers
    return perform(words, terminal), out.getvalue(), err.getvalue()


@pytest.fixture
def profiles(home: Path) -> Path:
    return home / "data/gpucluster/profiles"


@pytest.fixture
def slurm(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_slurm(home, monkeypatch)
    return home


@pytest.mark.parametrize("system", TRUTH)
def test_no_fact_is_wrong_and_four_fifths_of_those_in_the_answers_are_filled_in(
    system: str,
) -> None:
    dialect = find_backend(system)
    counted = measure(by_key(dialect.parse_survey(answers(system))), TRUTH[system])
    assert counted["wrong"] == 0
    assert counted["right"] >= 0.8 * counted.total()
    row = rf"^\| {dialect.title}\b.*\| {counted['right']} \| {counted['left']} \| 0 \|$"
    assert re.search(row, PAGE.read_text("utf-8"), re.MULTILINE), "update the table of the page"


@pytest.mark.parametrize("system", ["slurm", "sge", "oar", "pbs"])
def test_a_system_that_does_not_answer_gives_no_facts(system: str) -> None:
    dialect = find_backend(system)
    silent = {
        name: type(answer)(answer.argv, None, "", "no answer")
        for name, answer in answers(system).items()
    }
    with pytest.raises(Exception, match="did not answer"):
        dialect.parse_survey(silent)


def test_each_profile_is_valid_short_and_says_where_its_values_come_from(
    slurm: Path, profiles: Path, tmp_path: Path
) -> None:
    code, printed, _ = types("setup", "--print")
    assert code == 0
    texts = re.split(r"^# (slurm-\S+)\.yaml$", printed.partition("Left out")[0], flags=re.M)[1:]
    found = dict(zip(texts[::2], texts[1::2], strict=True))
    assert len(found) == 8
    for name, text in found.items():
        assert len(text.strip().splitlines()) <= 40
        (tmp_path / f"{name}.yaml").write_text(text)
        profile = read_profile(tmp_path / f"{name}.yaml").profile
        assert profile.policy.idle_timeout == 3600
        assert {"gpus", "walltime"} <= profile.options.keys()
    assert 'account: "chem"' in found["slurm-chem"]
    assert 'directives: ["--qos=long"]' in found["slurm-long"]
    assert "maximum: 1, default: 1" in found["slurm-one"]
    for line in ("private: it is for the groups daemon", "closed: its state is DOWN"):
        assert line in printed
    assert f"parent: Slurm refused the job: {OTHER_USERS}" in " ".join(printed.split())
    assert not profiles.exists()


def test_cores_and_memory_follow_the_gpus_that_the_user_chooses(
    slurm: Path, profiles: Path
) -> None:
    assert types("setup", "gpu", "--yes", "--account", "lab1")[0] == 0
    for gpus, line in (("1", "#SBATCH --mem=4000M"), ("4", "#SBATCH --mem=16000M")):
        code, script, err = types("script", "slurm-gpu", "--option", f"gpus={gpus}")
        assert code == 0, err
        assert line in script
        assert f"#SBATCH --cpus-per-task={2 * int(gpus)}" in script
    code, _, err = types("script", "slurm-gpu", "--option", "gpus=5")
    assert (code, "more than 4" in err) == (2, True)


def test_a_site_may_turn_it_off(slurm: Path, profiles: Path, home: Path) -> None:
    assert "To write some" in types("profiles")[1]
    (home / "data" / "gpucluster").mkdir(parents=True, exist_ok=True)
    (home / "data/gpucluster/site.yaml").write_text("setup: off\ncontact: help@example.org\n")
    code, _, err = types("setup", "gpu", "--yes", "--account", "lab1")
    assert (code, "turned `setup` off" in err, "help@example.org" in err) == (2, True, True)
    assert not profiles.exists()
    assert "To write some" not in types("profiles")[1]
    assert types("setup", "gpu", "--print")[0] == 0


def test_an_account_is_never_chosen_for_the_user(
    slurm: Path, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = types("setup", "--yes")
    assert (code, "yours: chem, lab1" in err) == (2, True)
    monkeypatch.setenv("SBATCH_ACCOUNT", "lab1")
    code, _, err = types("setup", "gpu", "--yes")
    assert (code, "Your environment names lab1." in err) == (2, True)
    assert types("setup", "gpu", "--yes", "--account", "phys")[0] == 2
    assert not profiles.exists()
    code, out, err = types("setup", "gpu", answers=["", "y"])
    assert (code, "[Enter: lab1]" in err) == (0, True), err
    assert 'default: "lab1"' in (profiles / "slurm-gpu.yaml").read_text()
    assert "doctor slurm-gpu --job" in out
    assert "start slurm-gpu" in out


def test_an_account_that_no_answer_names_is_the_one_that_the_user_gives(
    home: Path, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = CAPTURED / "pbs" / "capacity_pbsnodes_json.txt"
    queues = home / "queues.json"
    queues.write_text(answers("pbs")["queues"].stdout)
    put_command(home, monkeypatch, "pbsnodes", f"sed '1,/^--- stdout/d; /^--- stderr/,$d' {nodes}")
    put_command(home, monkeypatch, "qstat", f"cat {queues}")
    for program in ("qsub", "qdel", "pbs_rstat"):
        put_command(home, monkeypatch, program, "exit 0")
    for program in ("sh", "sed", "id", "cat"):
        (home / "bin" / program).symlink_to(str(shutil.which(program)))
    monkeypatch.setenv("PATH", str(home / "bin"))
    assert types("setup", "workq", "--yes")[0] == 0
    text = (profiles / "pbs-workq.yaml").read_text()
    assert "# account:" in text
    assert "not checked by the batch system" in types("setup", "short", "--yes")[1]
    (profiles / "pbs-workq.yaml").unlink()
    assert types("setup", "workq", "--yes", "--account", "abc")[0] == 0
    assert 'account: "abc"' in (profiles / "pbs-workq.yaml").read_text()
    code, script, err = types("script", "pbs-workq", "--option", "gpus=4")
    assert (code, "ngpus=4" in script, "ncpus=8" in script) == (0, True, True), err


def test_no_profile_is_saved_for_another_account_than_the_given_one(
    slurm: Path, profiles: Path
) -> None:
    sbatch = slurm / "bin/sbatch"
    sbatch.write_text(sbatch.read_text().replace("parent:*)", "gpu:lab1)"))
    code, out, err = types("setup", "gpu", "one", "--yes", "--account", "lab1")
    assert (code, OTHER_USERS in " ".join(out.split())) == (0, True), err
    assert [file.name for file in profiles.iterdir()] == ["slurm-one.yaml"]


def test_a_typed_account_is_in_the_script_that_the_batch_system_checks(
    slurm: Path, profiles: Path
) -> None:
    (slurm / "bin/sacctmgr").unlink()
    accept_only(slurm, "abc")
    assert types("setup", "gpu", "--yes")[0] == 1
    assert types("setup", "gpu", "--yes", "--account", "abc")[0] == 0
    assert 'account: "abc"' in (profiles / "slurm-gpu.yaml").read_text()


def test_without_a_terminal_nothing_is_asked_or_saved_and_no_file_is_overwritten(
    slurm: Path, profiles: Path
) -> None:
    code, _, err = types("setup", "chem")
    assert (code, "Add --yes" in err) == (2, True)
    assert types("setup", "chem", answers=["n"])[0] == 2
    assert not profiles.exists()
    assert types("setup", "chem", "--yes")[0] == 0
    before = (profiles / "slurm-chem.yaml").read_bytes()
    code, out, _ = types("setup", "chem", "--yes")
    assert (code, "it stays as it is" in out) == (1, True)
    assert (profiles / "slurm-chem.yaml").read_bytes() == before


def test_the_version_for_a_site_has_limits_and_locks_and_no_user_in_it(
    slurm: Path, profiles: Path, tmp_path: Path
) -> None:
    code, printed, _ = types("setup", "gpu", "--for", "site")
    assert code == 0
    (tmp_path / "gpu.yaml").write_text(printed.partition("Left out")[0])
    profile = read_profile(tmp_path / "gpu.yaml").profile
    assert (profile.limits.workers, profile.limits.clusters) == (8, 2)
    assert "limits" in profile.locked
    assert profile.options["account"].choices == ()
    assert "lab1" not in printed
    assert not profiles.exists()


def test_a_node_of_a_job_without_submit_commands_gets_the_profile_of_its_allocation(
    home: Path, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    assert types("setup")[0] == 2
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    code, out, _ = types("setup", "--yes")
    assert (code, "has no commands to submit others" in out) == (0, True)
    profile = read_profile(profiles / "this-allocation.yaml").profile
    assert (profile.title, profile.backend) == ("This allocation", "local")


def test_doctor_and_profiles_name_setup_where_a_system_has_no_profile(slurm: Path) -> None:
    assert "No profile uses Slurm. To write some: jupyter gpucluster setup" in types("profiles")[1]
    _, out, _ = types("doctor")
    assert "fix: Write profiles: jupyter gpucluster setup" in out
    assert types("setup", "chem", "--yes")[0] == 0
    assert "No profile uses" not in types("profiles")[1]


def test_without_accounting_commands_the_account_is_a_question(slurm: Path) -> None:
    (slurm / "bin" / "sacctmgr").unlink()
    code, out, _ = types("setup", "gpu", "--print")
    assert code == 0
    assert re.search(r"# account: +# Which account is charged\?", out)
    assert "qos:" not in out


def test_json_has_every_fact_and_the_text(slurm: Path) -> None:
    code, out, _ = types("setup", "chem", "gpu", "--json")  # two accounts: nothing is saved
    [system] = json.loads(out)["systems"]
    assert (code, system["title"]) == (0, "Slurm")
    _, proposal = system["proposals"]
    assert proposal["queues"][0]["cpus_per_gpu"] == 2
    assert proposal["text"].startswith("# Written by")


@pytest.mark.parametrize(
    "limit, soft, words",
    [
        (resource.RLIMIT_CPU, 3600, "3600 s of CPU time"),
        (resource.RLIMIT_NPROC, 100, "allows you 100 processes"),
    ],
)
def test_a_host_that_limits_processes_gets_the_scheduler_in_a_job(
    limit: int, soft: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = resource.getrlimit

    def limited(kind: int) -> tuple[int, int]:
        return (soft, soft) if kind == limit else real(kind)

    monkeypatch.setattr(resource, "getrlimit", limited)
    decided = decisions.head_placement()
    assert (decided.value, words in decided.reason) == ("job", True)


def test_a_python_that_needs_a_module_gets_the_module_into_the_prologue(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    python = home / "python"
    python.write_text(f'#!/bin/sh\n[ "$MODULE" ] || exit 1\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (home / ".bash_profile").write_text("module() { export MODULE=$2; }\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(decisions, "check_python", _suitable)
    monkeypatch.delenv("LOADEDMODULES", raising=False)
    alone = decisions.python_for_jobs(str(python))
    assert (alone.prologue, "variables of this shell" in alone.reason) == ("", True)
    monkeypatch.setenv("LOADEDMODULES", "python/3.12")
    assert decisions.python_for_jobs(str(python)).prologue == "module load python/3.12"


def _suitable(python: str) -> Any:
    from jupyter_gpucluster.launch.python_environments import Environment

    versions = {"python": "3.11", "distributed": "2026.8.0", "dask_cuda": "26.08"}
    return Environment("", "", python, suitable=True, versions=versions)


def test_each_queue_of_a_site_has_its_own_profile() -> None:
    site = Site((GpuQueue("gpu x"), GpuQueue("gpu-x"), GpuQueue("long", gpu_type="a100")))
    names = [proposed_name(find_backend("slurm"), site, each) for each in site.queues]
    assert names == ["slurm-gpu-x", "slurm-gpu-x-2", "slurm-long"]


@pytest.mark.parametrize("node", ["", "127.0.0.1", "nosuch.invalid"])
def test_a_node_without_a_way_from_here_leaves_the_interface_as_a_question(node: str) -> None:
    decided = decisions.head_interface(node)
    assert decided.value == ""
    assert decided.reason


def test_the_interface_is_the_one_whose_route_leads_to_the_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = usual_address()
    monkeypatch.setattr(decisions, "interfaces", lambda: {"lo": "127.0.0.1", "ib0": own})
    expected = "" if own.startswith("127.") else "ib0"
    assert decisions.head_interface(own).value == expected


@pytest.mark.parametrize(
    "consumed, memory, keys, cores",
    [
        ("YES", "NO", {"gpu_request": "gpu/slot"}, 1),
        ("JOB", "NO", {}, 2),
        ("JOB", "YES", {"memory_request": "h_vmem"}, 2),
        ("JOB", "JOB", {"memory_request": "h_vmem/job"}, 2),
    ],
)
def test_grid_engine_gets_no_more_gpus_than_requested_whatever_its_complexes_count(
    consumed: str, memory: str, keys: dict[str, str], cores: int
) -> None:
    told = answers("sge")

    def changed(name: str, *pairs: tuple[str, str]) -> None:
        text = told[name].stdout
        for pattern, value in pairs:
            text = re.sub(pattern, value, text, flags=re.MULTILINE)
        told[name] = type(told[name])(told[name].argv, 0, text, "")

    of_gpus, of_memory = (rf"^({name} .* )(?:YES|NO)( +\S+ +\S+)$" for name in ("gpu", "h_vmem"))
    changed("complexes", (of_gpus, rf"\g<1>{consumed}\2"), (of_memory, rf"\g<1>{memory}\2"))
    changed("hosts", ("gpu=4,", "gpu=4,h_vmem=64G,"))
    [queue] = find_backend("sge").parse_survey(told).queues
    assert (dict(queue.keys), queue.cpus_per_gpu) == (keys, cores)
    assert queue.memory_per_gpu == (16 * 2**30 if memory != "NO" else 0)


@pytest.mark.parametrize("system", ["torque", "moab", "lsf", "cobalt", "htcondor", "kubernetes"])
def test_a_system_whose_answers_cannot_be_read_gets_a_template_of_questions(
    system: str, tmp_path: Path
) -> None:
    dialect = find_backend(system)
    assert dialect.survey("alice") == {}
    file = tmp_path / "site.yaml"
    file.write_text(template(dialect))
    job = read_profile(file).profile.job
    assert (job.queue, job.gpus, job.walltime) == ("", "auto", None)
    assert file.read_text().count("?") == 6


def test_a_folder_that_cannot_be_written_is_named(slurm: Path, home: Path) -> None:
    (home / "data").mkdir(exist_ok=True)
    (home / "data" / "gpucluster").write_text("a file")
    code, _, err = types("setup", "chem", "--yes")
    assert code == 2
    assert "slurm-chem.yaml cannot be written: Not a directory." in err
